//! Capabilities of the system, found once for each executor.

use std::fs::File;

use super::{raw, tree};

/// Capabilities of this system, for the start of processes.
#[derive(Debug)]
pub(super) struct Capabilities {
    /// Processes can be told apart by their marks.
    pub(super) marks: bool,
    /// `/proc` exists, in which processes are found.
    pub(super) sees_processes: bool,
    /// No descriptor of this process leaks into a child.
    pub(super) marks_descriptors: bool,
    /// This process has a terminal, from which its children must be detached.
    ///
    /// A session for each child would be harmless without a terminal too. But the scheduler
    /// treats each session as a group (`sched_autogroup`), and each group gets as much time as
    /// that of this process and its clients: they would wait for tens of milliseconds.
    pub(super) has_terminal: bool,
}

impl Capabilities {
    /// Detects the capabilities.
    pub(super) fn detect() -> Self {
        Self {
            marks: tree::can_mark(),
            sees_processes: tree::sees_processes(),
            marks_descriptors: raw::marks_descriptors(),
            has_terminal: File::open("/dev/tty").is_ok(),
        }
    }
}
