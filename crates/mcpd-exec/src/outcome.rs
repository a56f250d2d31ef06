//! Every way a run can end, as a value. A script that fails is an outcome, not an error.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::capture::Captured;
use crate::enforced::Enforced;

/// A run that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Why it is over.
    pub ending: Ending,
    /// What the process itself ended with, also after a time-out or a cancellation.
    ///
    /// `None` if it was cancelled before it started, or could not even be killed.
    pub status: Option<ExitStatus>,
    /// What was written to standard output.
    pub stdout: Captured,
    /// What was written to standard error.
    pub stderr: Captured,
    /// How much of its input the process was given.
    pub stdin: StdinReport,
    /// Something the process started outlived it and still held its output pipes when the drain limit was up.
    pub pipes_held: bool,
    /// How many processes it had started were alive when it had ended. Of a confined run they have been killed since;
    /// otherwise they live on, and what they have started themselves is not counted.
    ///
    /// `None` if that can't be known: only the reaper of its orphans can ([`Config::reaper`](crate::Config::reaper)).
    pub leftovers: Option<u32>,
    /// What the process and those of its descendants it waited for used.
    pub usage: Usage,
    /// What held it in.
    pub enforced: Enforced,
    /// Files that the process complains of and that are hidden from it, for the reader who
    /// [looks](crate::Sandbox::find_hidden) for them to keep. Nothing at first.
    pub hidden: Vec<PathBuf>,
    /// Where the time went.
    pub timing: Timing,
}

impl Outcome {
    /// The process ended on its own with exit code 0.
    pub fn success(&self) -> bool {
        self.ending == Ending::Exited(0)
    }
}

/// Why a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The process ended on its own with this exit code.
    Exited(i32),
    /// The process was ended by a signal that was not ours.
    #[non_exhaustive]
    Signaled {
        /// The signal's number.
        signal: i32,
        /// The system says it wrote a core file.
        core_dumped: bool,
    },
    /// [`Limits::wall`](crate::Limits::wall) was up.
    #[non_exhaustive]
    TimedOut {
        /// The limit it ran into.
        limit: Duration,
    },
    /// The caller asked for it, or the executor was shut down.
    Cancelled,
    /// [`Limits::output_hard`](crate::Limits::output_hard) was passed.
    #[non_exhaustive]
    OutputLimit {
        /// The limit it ran into, in bytes.
        limit: u64,
    },
    /// [`Limits::memory`](crate::Limits::memory) was passed, and the kernel killed the run.
    OutOfMemory,
    /// The process is gone, but somebody else took its status: the host ignores SIGCHLD, or waits for every child.
    Lost,
}

/// Name of a signal, such as `SIGSEGV`; `None` for one that has no name here.
#[cfg(unix)]
#[must_use]
pub fn signal_name(signal: i32) -> Option<&'static str> {
    let signal = nix::sys::signal::Signal::try_from(signal).ok()?;
    Some(signal.as_str())
}

/// No name, as this system has no signals.
#[cfg(not(unix))]
#[must_use]
pub fn signal_name(_: i32) -> Option<&'static str> {
    None
}

/// What became of the input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StdinReport {
    /// Bytes the pipe took; the process need not have read them.
    pub written: u64,
    /// The process closed its end, or ended, before everything was written. That is not a fault.
    pub closed_early: bool,
}

/// What a process used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Processor time in the program.
    pub user: Duration,
    /// Processor time in the kernel on its behalf.
    pub system: Duration,
    /// The most memory one of its processes had resident at a time, in bytes.
    ///
    /// `None` where the system does not tell. On Linux that is so for less than the most this process has had itself,
    /// as the kernel counts that in.
    pub peak_memory: Option<u64>,
}

/// How long the parts of a run took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// From the call to the start: waiting for a turn.
    pub queued: Duration,
    /// Creating the process.
    pub spawn: Duration,
    /// From the process's start to the outcome.
    pub wall: Duration,
}
