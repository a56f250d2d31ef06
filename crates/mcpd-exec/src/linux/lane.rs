//! Threads that start processes come in lanes: a system call filter, once on a thread, is on all it starts, for free.

use super::System;
use super::filter::Filter;
use crate::sandbox::{Level, Network, Sandbox};

/// What the threads of a lane are held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Open,
    Filtered(Network),
}

impl Lane {
    pub(crate) const ALL: [Self; 3] = [
        Self::Open,
        Self::Filtered(Network::Host),
        Self::Filtered(Network::Off),
    ];

    /// The lane for a sandbox, as an index into [`Lane::ALL`].
    pub(crate) fn of(sandbox: &Sandbox) -> usize {
        match (sandbox.level, sandbox.network) {
            (Level::Guarded, Network::Host) => 1,
            (Level::Guarded, Network::Off) => 2,
            _ => 0,
        }
    }

    /// Puts the calling thread into this lane, for good.
    pub(crate) fn enter(self, system: &System) -> Entered {
        let fault = match self {
            Self::Open => None,
            Self::Filtered(network) => Filter::new(network, Some(system.secret))
                .and_then(|filter| filter.install())
                .err()
                .map(|error| format!("system calls are not filtered: {error}")),
        };
        Entered { lane: self, fault }
    }
}

/// A lane a thread is in.
#[derive(Debug)]
pub(crate) struct Entered {
    lane: Lane,
    /// Why it has no filter though it should.
    pub(crate) fault: Option<String>,
}

impl Entered {
    /// There is a filter to be had, and nothing else does what it does.
    pub(crate) fn is_needed(&self) -> bool {
        self.fault.is_some() && self.lane == Lane::Filtered(Network::Off)
    }
}
