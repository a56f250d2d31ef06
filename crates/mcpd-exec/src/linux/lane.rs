//! Seccomp classes of spawner threads. A system call filter that is installed once on a thread
//! applies to all it starts, at no further cost.

use super::System;
use super::filter::Filter;
use crate::sandbox::{Level, Network, Sandbox};

/// Class of a spawner thread: the filter it is under.
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

    /// Returns the class for a sandbox, as an index into [`Lane::ALL`].
    pub(crate) fn of(sandbox: &Sandbox) -> usize {
        match (sandbox.level, sandbox.network) {
            (Level::Guarded, Network::Host) => 1,
            (Level::Guarded, Network::Off) => 2,
            _ => 0,
        }
    }

    /// Puts the calling thread into this class, permanently.
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

/// Class that a thread has entered.
#[derive(Debug)]
pub(crate) struct Entered {
    lane: Lane,
    /// The reason that it lacks the filter it should have.
    pub(crate) fault: Option<String>,
}

impl Entered {
    /// Returns whether the filter is missing although nothing else can replace it.
    pub(crate) fn is_needed(&self) -> bool {
        self.fault.is_some() && self.lane == Lane::Filtered(Network::Off)
    }
}
