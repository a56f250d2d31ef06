//! Every way a run can end, as a value. A script that fails is an outcome, not an error.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::capture::Captured;
use crate::enforcement::Enforcement;
use crate::warm::Warmth;

/// Result of a finished run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Outcome {
    /// The reason that it is over.
    pub ending: Ending,
    /// Exit status of the process itself, also after a time-out or a cancellation.
    ///
    /// `None` if the run was cancelled before the start, or the process could not even be killed.
    #[cfg_attr(feature = "serde", serde(with = "crate::encoding::exit_status"))]
    pub status: Option<ExitStatus>,
    /// The bytes written to standard output.
    pub stdout: Captured,
    /// The bytes written to standard error.
    pub stderr: Captured,
    /// The amount of input that the process was given.
    pub stdin: StdinReport,
    /// A descendant outlived the process and still held its output pipes when the drain limit was
    /// up.
    pub pipes_held: bool,
    /// Number of descendants that were alive when the process had ended. Those of a confined run
    /// have been killed since. Others live on, and processes that they have started are not
    /// counted.
    ///
    /// `None` if that can't be known: it needs [`Config::reaper`](crate::Config::reaper).
    pub leftovers: Option<u32>,
    /// Resources used by the process and the descendants that it waited for.
    pub usage: Usage,
    /// The confinement that was in force.
    pub enforced: Enforcement,
    /// Hidden files that the process complains of. Empty at first: a caller that
    /// [searches](crate::Sandbox::find_hidden) the output stores them here.
    #[cfg_attr(feature = "serde", serde(with = "crate::encoding::lossy_paths"))]
    pub hidden: Vec<PathBuf>,
    /// Start of the process, if the command asked for a [warm](crate::Command::warm) one.
    #[cfg_attr(feature = "serde", serde(default))]
    pub warmth: Option<Warmth>,
    /// Durations of the parts of the run.
    pub timing: Timing,
}

impl Outcome {
    /// Returns whether the process ended on its own with exit code 0.
    pub fn success(&self) -> bool {
        self.ending == Ending::Exited(0)
    }
}

/// Reason that a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Ending {
    /// The process ended on its own with this exit code.
    Exited(i32),
    /// The process was ended by a signal that the executor did not send.
    #[non_exhaustive]
    Signaled {
        /// Number of the signal.
        signal: i32,
        /// The system reports a core file.
        core_dumped: bool,
    },
    /// [`Limits::wall`](crate::Limits::wall) was up.
    #[non_exhaustive]
    TimedOut {
        /// The limit it ran into.
        limit: Duration,
    },
    /// The caller cancelled, or the executor was shut down.
    Cancelled,
    /// [`Limits::output_hard`](crate::Limits::output_hard) was passed.
    #[non_exhaustive]
    OutputLimit {
        /// The limit it ran into, in bytes.
        limit: u64,
    },
    /// [`Limits::memory`](crate::Limits::memory) was passed, and the kernel killed the run.
    OutOfMemory,
    /// The process is gone, and its status was taken elsewhere: the host ignores SIGCHLD, or
    /// waits for every child.
    Lost,
}

/// Name of a signal, such as `SIGSEGV`; `None` for a number without a name.
#[cfg(unix)]
#[must_use]
pub fn signal_name(signal: i32) -> Option<&'static str> {
    let signal = nix::sys::signal::Signal::try_from(signal).ok()?;
    Some(signal.as_str())
}

/// Returns `None`, as this system has no signals.
#[cfg(not(unix))]
#[must_use]
pub fn signal_name(_: i32) -> Option<&'static str> {
    None
}

/// Report on the standard input of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct StdinReport {
    /// Bytes the pipe took; the process need not have read them.
    pub written: u64,
    /// The process closed its end, or ended, before everything was written. That is no error.
    pub closed_early: bool,
}

/// Resources used by a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Usage {
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// Largest resident memory of any one of its processes, in bytes.
    ///
    /// `None` if the system does not report it. Linux counts in the peak of this process, so a
    /// smaller value is unknown there.
    pub peak_memory: Option<u64>,
}

/// Durations of the parts of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Timing {
    /// Time in the queue: from the call to the start.
    pub queued: Duration,
    /// Time to create the process.
    pub spawn: Duration,
    /// Time from the start of the process to the outcome.
    pub wall: Duration,
}
