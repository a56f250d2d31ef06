//! Limits of one run. Time and output always have one, so that nothing is unbounded.

use std::time::Duration;

use crate::sandbox::Level;

/// Limits of what one run may use.
///
/// Start from the default and change what matters:
///
/// ```
/// use std::time::Duration;
///
/// let mut limits = mcpd_exec::Limits::default();
/// limits.wall = Duration::from_secs(5);
/// ```
///
/// The kernel's own limits are optional. At [`Level::None`], `None` leaves the limits of the
/// caller in force; at the other levels it means the second number given below.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
#[non_exhaustive]
pub struct Limits {
    /// Time the process may run, without its time in the queue. 60 s.
    pub wall: Duration,
    /// Time between TERM and KILL to the group. 2 s.
    pub grace: Duration,
    /// Time that output is still read after the process has ended. 500 ms.
    ///
    /// Data in the pipes at its end is still read. Only a process whose leftover children hold
    /// its pipes needs all of it.
    pub drain: Duration,
    /// Bytes kept from the start of each output stream. 64 KiB.
    pub capture_head: usize,
    /// Bytes kept from the end of each output stream. 64 KiB.
    pub capture_tail: usize,
    /// Bytes kept on disk from the start of an output stream that is longer than head and tail.
    /// 0, nothing.
    ///
    /// The file size limit of this process bounds it too.
    pub keep: u64,
    /// Bytes of both output streams together at which the group is killed. 256 MiB.
    pub output_hard: u64,
    /// Bytes of one line handed to a line callback, at least one. A longer line comes in pieces.
    /// 64 KiB.
    pub line: usize,
    /// Processor time of each process, in whole seconds, at least one. None; 300 s.
    ///
    /// A process that passes it is ended by SIGXCPU, or a second later by SIGKILL. It has no
    /// [`Ending`](crate::Ending) of its own.
    pub cpu: Option<Duration>,
    /// Bytes of address space of each process. None; none. Programs that reserve much and use
    /// little, such as Java, need a lot.
    pub address_space: Option<u64>,
    /// Bytes of the largest file a process may write. None; 1 GiB.
    pub file_size: Option<u64>,
    /// Descriptors a process may have open. None; 1024.
    pub open_files: Option<u64>,
    /// Processes and threads of the whole run. None; none at `guarded`, 256 at `strict`.
    ///
    /// The limit is exact in a control group, and at `strict` unless the host is root or
    /// [`Sandbox::run_as`](crate::Sandbox::run_as) is set. Otherwise the kernel counts all
    /// processes of the user, and none of root's; with a backend there is no limit without a
    /// control group.
    pub processes: Option<u64>,
    /// Bytes of memory of the whole run. None; none. Needs a control group.
    pub memory: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(60),
            grace: Duration::from_secs(2),
            drain: Duration::from_millis(500),
            capture_head: 64 * 1024,
            capture_tail: 64 * 1024,
            keep: 0,
            output_hard: 256 * 1024 * 1024,
            line: 64 * 1024,
            cpu: None,
            address_space: None,
            file_size: None,
            open_files: None,
            processes: None,
            memory: None,
        }
    }
}

impl Limits {
    /// Returns the limits with the defaults of a level filled in.
    pub(crate) fn at(&self, level: Level) -> Self {
        let mut limits = self.clone();
        if level >= Level::Guarded {
            limits.cpu.get_or_insert(Duration::from_secs(300));
            limits.file_size.get_or_insert(1 << 30);
            limits.open_files.get_or_insert(1024);
        }
        if level >= Level::Strict {
            limits.processes.get_or_insert(256);
        }
        limits
    }
}
