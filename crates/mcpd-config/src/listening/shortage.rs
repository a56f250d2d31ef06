//! Limit of open files: every connection takes one, and so does every pipe of a script.

use std::fmt;

use serde::Serialize;

/// Minimum number of files reserved for purposes besides connections; a quarter of
/// the limit, if that is more.
const MIN_RESERVED_FILES: u64 = 64;

/// Fewer connections at a time than requested, because the system allows too few open files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Shortage {
    /// Number of connections that are possible.
    pub connections: usize,
    open_files: u64,
}

impl Shortage {
    /// Returns the shortage for this number of `wanted` connections, if there is one.
    pub fn of(wanted: usize) -> Option<Self> {
        Self::within(limit()?, wanted)
    }

    /// Reserves enough files for scripts, sources, the catalog and the logs: a connection that
    /// waits is better than a script that can't be started.
    fn within(open_files: u64, wanted: usize) -> Option<Self> {
        let others = (open_files / 4).max(MIN_RESERVED_FILES);
        let connections = open_files.saturating_sub(others).max(1);
        let connections = usize::try_from(connections).unwrap_or(usize::MAX);
        (connections < wanted).then_some(Self {
            connections,
            open_files,
        })
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            connections,
            open_files,
        } = self;
        write!(
            f,
            "at most {connections} connections, because only {open_files} files may be open (`ulimit -n`)"
        )
    }
}

/// Maximum number of open files of this process, if there is a limit.
#[cfg(unix)]
fn limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// This system has no relevant limit.
#[cfg(not(unix))]
fn limit() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_limit_reserves_files() {
        let connections = |open_files| Some(Shortage::within(open_files, 1000)?.connections);
        assert_eq!(connections(1024), Some(768));
        assert_eq!(connections(1332), Some(999));
        assert_eq!(connections(1334), None);
        assert_eq!(connections(u64::MAX), None);
        assert_eq!(connections(100), Some(36));
        assert_eq!(connections(10), Some(1));
    }
}
