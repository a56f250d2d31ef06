//! Seccomp classes of spawner threads. A system call filter that is installed once on a thread
//! applies to all it starts, at no further cost.

use super::System;
use super::filter::{Filter, Sockets};
use crate::sandbox::{Level, Network, Sandbox};

/// Class of a spawner thread: the filter it is under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpawnerClass {
    Open,
    Filtered(Sockets),
}

impl SpawnerClass {
    pub(crate) const ALL: [Self; 3] = [
        Self::Open,
        Self::Filtered(Sockets::All),
        Self::Filtered(Sockets::None),
    ];

    /// Returns the class for a sandbox, as an index into [`SpawnerClass::ALL`].
    pub(crate) fn index_for(sandbox: &Sandbox) -> usize {
        match (sandbox.level, sandbox.network) {
            (Level::Guarded, Network::Host) => 1,
            (Level::Guarded, Network::Off) => 2,
            // The filter would refuse a network namespace.
            _ => 0,
        }
    }

    /// Puts the calling thread into this class, permanently.
    pub(crate) fn install(self, system: &System) -> InstalledClass {
        let fault = match self {
            Self::Open => None,
            Self::Filtered(sockets) => Filter::new(sockets, Some(system.secret))
                .and_then(|filter| filter.install())
                .err()
                .map(|error| format!("system calls are not filtered: {error}")),
        };
        InstalledClass { class: self, fault }
    }
}

/// Class of the calling thread, with its filter installed if that was possible.
#[derive(Debug)]
pub(crate) struct InstalledClass {
    class: SpawnerClass,
    /// The reason that it lacks the filter it should have.
    pub(crate) fault: Option<String>,
}

impl InstalledClass {
    /// Class of a process that installs its filter itself.
    pub(crate) fn without_filter() -> Self {
        Self {
            class: SpawnerClass::Open,
            fault: None,
        }
    }

    /// Returns whether the calling thread is under no filter.
    pub(crate) fn is_open(&self) -> bool {
        self.class == SpawnerClass::Open
    }

    /// Returns whether the filter is missing although nothing else can replace it.
    pub(crate) fn lacks_required_filter(&self) -> bool {
        self.fault.is_some() && self.class == SpawnerClass::Filtered(Sockets::None)
    }
}
