//! The limits of one run. Each has a default; none can be switched off, so that nothing is unbounded.

use std::time::Duration;

/// What one run may use.
///
/// Start from the default and change what matters:
///
/// ```
/// use std::time::Duration;
///
/// let mut limits = mcpd_exec::Limits::default();
/// limits.wall = Duration::from_secs(5);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How long the process may run, not counting the time it waited for its turn. 60 s.
    pub wall: Duration,
    /// How long the group may take between being asked to end and being killed. 2 s.
    pub grace: Duration,
    /// How long output is still read after the process has ended. 500 ms.
    ///
    /// Only a process that left something behind, still holding its pipes, takes any of it.
    pub drain: Duration,
    /// Bytes kept from the start of each output stream. 64 KiB.
    pub capture_head: usize,
    /// Bytes kept from the end of each output stream. 64 KiB.
    pub capture_tail: usize,
    /// Bytes of both output streams together at which the group is killed. 256 MiB.
    pub output_hard: u64,
    /// Bytes of one line handed to a line callback; a longer line comes in pieces. 64 KiB.
    pub line: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(60),
            grace: Duration::from_secs(2),
            drain: Duration::from_millis(500),
            capture_head: 64 * 1024,
            capture_tail: 64 * 1024,
            output_hard: 256 * 1024 * 1024,
            line: 64 * 1024,
        }
    }
}
