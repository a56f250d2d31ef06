//! Ending of a run as records, metrics and spans name it: the exit codes of the script contract,
//! the endings beyond them, and the reasons for which nothing ran.

use std::fmt;

use mcpd_exec::{Ending, Outcome, StartError, signal_name};
use tokio::task::JoinError;

use crate::limits::run_queue::Busy;
use crate::remote::NotRun;

/// Names of the exit codes 0 to 9 in the script contract.
pub(crate) const CONTRACT: [&str; 10] = [
    "success",
    "internal-error",
    "bad-request",
    "forbidden",
    "not-found",
    "service-unavailable",
    "not-acceptable",
    "not-implemented",
    "conflict",
    "timeout",
];

/// Name of any other failure.
const FAILED: &str = "failed";

/// Exit code of a script that has not found the requested item.
pub(crate) const NOT_FOUND: i32 = 4;

/// Ending of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    /// Exit code, or 128 plus the signal, as in a shell.
    pub(crate) code: i32,
    /// Meaning of the code.
    pub(crate) name: &'static str,
}

impl Exit {
    pub(crate) fn with_code(code: i32) -> Self {
        Self {
            code,
            name: code_name(code),
        }
    }

    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome.ending {
            Ending::Exited(code) => Self::with_code(code),
            Ending::Signaled { signal, .. } => Self {
                code: 128 + signal,
                name: "killed-by-signal",
            },
            Ending::TimedOut { .. } => Self {
                code: status_code(outcome),
                name: "time-limit",
            },
            Ending::OutputLimit { .. } => Self {
                code: status_code(outcome),
                name: "output-limit",
            },
            Ending::OutOfMemory => Self {
                code: status_code(outcome),
                name: "memory-limit",
            },
            Ending::Cancelled => Self {
                code: status_code(outcome),
                name: "cancelled",
            },
            _ => Self {
                code: status_code(outcome),
                name: "unknown",
            },
        }
    }

    /// Returns the exit of a program that does not follow the script contract.
    pub(crate) fn of_any_program(outcome: &Outcome) -> Self {
        match outcome.ending {
            Ending::Exited(code @ 1..=9) => Self { code, name: FAILED },
            _ => Self::of(outcome),
        }
    }
}

/// Exit code with its meaning, if known: that of the contract, or the signal in a shell's
/// encoding.
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}", self.code)?;
        match (self.name, signal_name(self.code - 128)) {
            (FAILED, Some(signal)) => write!(f, " (128 + {signal})"),
            (FAILED, None) => Ok(()),
            (name, _) => write!(f, " ({name})"),
        }
    }
}

fn code_name(code: i32) -> &'static str {
    let contract = usize::try_from(code)
        .ok()
        .and_then(|code| CONTRACT.get(code).copied());
    match (contract, code) {
        (Some(name), _) => name,
        // These are the codes of a shell for a command that it could not start.
        (None, 126) => "command-not-executable",
        (None, 127) => "command-not-found",
        (None, _) => FAILED,
    }
}

/// Reason for a missing outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The process could not be started.
    #[error(transparent)]
    Start(StartError),
    /// The run queue is full.
    #[error(transparent)]
    Busy(Busy),
    /// The output could not be searched for secrets, and is withheld.
    #[error("redact secrets in an output: {0}")]
    Redaction(JoinError),
    /// The input files could not be written.
    #[error("write the files of a run: {0}")]
    Files(std::io::Error),
    /// The script differs from what its operator approved.
    #[error("run it: it has changed since it was approved: {0}; see `mcpd approve`")]
    NotApproved(String),
    /// It was to run on another machine.
    #[error(transparent)]
    Elsewhere(NotRun),
}

impl From<StartError> for RunError {
    fn from(error: StartError) -> Self {
        match error {
            // The only check before a start is that of its version.
            StartError::Refused { reason, .. } => Self::NotApproved(reason),
            error => Self::Start(error),
        }
    }
}

impl RunError {
    /// Name of this ending in metrics and in the audit log.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Busy(_) | Self::Start(StartError::Busy { .. }) => Busy::NAME,
            Self::Start(StartError::ShuttingDown) => "shutting-down",
            Self::Redaction(_) => "not-redacted",
            Self::NotApproved(_) => "not-approved",
            Self::Elsewhere(NotRun::Busy { .. }) => Busy::NAME,
            Self::Elsewhere(NotRun::Unreachable { .. }) => "unreachable",
            Self::Elsewhere(NotRun::Lost { .. }) => "lost",
            Self::Elsewhere(NotRun::Denied { .. }) => "denied",
            Self::Elsewhere(NotRun::Arguments { .. }) => "invalid-arguments",
            _ => "not-started",
        }
    }
}

#[cfg(unix)]
fn status_code(outcome: &Outcome) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    let status = outcome.status;
    status
        .and_then(|s| s.code().or_else(|| s.signal().map(|signal| 128 + signal)))
        .map_or(-1, failure_code)
}

#[cfg(not(unix))]
fn status_code(outcome: &Outcome) -> i32 {
    outcome
        .status
        .and_then(|status| status.code())
        .map_or(-1, failure_code)
}

/// Maps the code of a stopped run: it has not succeeded, even if it exits with 0; then it counts
/// as ended by SIGTERM.
fn failure_code(code: i32) -> i32 {
    match code {
        0 => 128 + 15,
        code => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stopped_run_has_not_succeeded() {
        assert_eq!([0, 3, 137].map(failure_code), [143, 3, 137]);
    }

    #[test]
    #[cfg(unix)]
    fn exit_code_has_its_meaning_beside_it() {
        for (code, shown) in [
            (3, "exit code 3 (forbidden)"),
            (10, "exit code 10"),
            (127, "exit code 127 (command-not-found)"),
            (128, "exit code 128"),
            (139, "exit code 139 (128 + SIGSEGV)"),
            (255, "exit code 255"),
        ] {
            assert_eq!(Exit::with_code(code).to_string(), shown);
        }
    }

    #[test]
    fn exit_codes_have_names_of_contract_and_shell() {
        let names: Vec<_> = (0..=10)
            .chain([125, 126, 127, 255])
            .map(code_name)
            .collect();
        assert_eq!(names[..10], CONTRACT);
        assert_eq!(
            names[10..],
            [
                "failed",
                "failed",
                "command-not-executable",
                "command-not-found",
                "failed"
            ]
        );
    }
}
