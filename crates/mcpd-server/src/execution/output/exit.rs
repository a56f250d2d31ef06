//! Exit of a run as a number and a name: the table of the script contract, and the endings beyond
//! it.

use std::fmt;

use mcpd_exec::{Ending, Outcome, signal_name};

use super::text::tail;

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
pub(super) const NOT_FOUND: i32 = 4;

/// Ending of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    /// Exit code, or 128 plus the signal, as in a shell.
    pub(crate) code: i32,
    /// Meaning of the code.
    pub(crate) name: &'static str,
}

/// Names the configuration key that gives a run access to the hidden paths it failed on, if there
/// are any.
pub(crate) fn describe_hidden_paths(outcome: &Outcome) -> Option<String> {
    let paths = outcome.hidden.iter();
    let paths: Vec<_> = paths
        .map(|path| format!("\"{}\"", path.display()))
        .collect();
    let is = match paths.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    let paths = paths.join(", ");
    Some(format!(
        "{paths} {is} hidden from sandboxed scripts. The operator can make it readable with `read = [{paths}]` in the script's `[sandbox.NAME]`."
    ))
}

impl Exit {
    pub(super) fn with_code(code: i32) -> Self {
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

    /// Describes the exit for the operator's log, with the end of stderr.
    pub(crate) fn with_last_words(&self, outcome: &Outcome) -> String {
        let mut text = self.to_string();
        let stderr = tail(&outcome.stderr);
        if !stderr.is_empty() {
            text += &format!(": {stderr}");
        }
        text
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

/// Returns a sentence on the end of a failed run, with `subject` as its subject.
pub(super) fn describe_ending(subject: &str, outcome: &Outcome, exit: &Exit) -> String {
    match outcome.ending {
        Ending::TimedOut { limit, .. } => format!(
            "{subject} was stopped because it ran longer than its limit of {} s.",
            limit.as_secs_f64()
        ),
        Ending::OutputLimit { limit, .. } => format!(
            "{subject} was stopped because it printed more than its limit of {limit} bytes."
        ),
        Ending::OutOfMemory => {
            format!("{subject} was stopped because it exceeded its memory limit.")
        }
        Ending::Signaled { signal, .. } => match signal_name(signal) {
            Some(name) => format!("{subject} was killed by signal {name} ({signal})."),
            None => format!("{subject} was killed by signal {signal}."),
        },
        Ending::Cancelled => format!("{subject} was stopped because the call was cancelled."),
        Ending::Lost => format!("{subject} has ended, but its exit code was lost."),
        _ => describe_exit(subject, exit),
    }
}

/// Returns a sentence on a program that failed by itself.
pub(super) fn describe_exit(subject: &str, exit: &Exit) -> String {
    format!("{subject} failed with {exit}.")
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
    #[cfg(unix)]
    use mcpd_exec::{Command, Config, Executor};

    use super::*;

    #[test]
    fn stopped_run_has_not_succeeded() {
        assert_eq!([0, 3, 137].map(failure_code), [143, 3, 137]);
    }

    #[tokio::test]
    #[cfg(unix)]
    async fn lost_run_is_not_cancelled() {
        let executor = Executor::new(Config::default()).unwrap();
        let mut outcome = executor.run(Command::new("true")).await.unwrap();
        (outcome.ending, outcome.status) = (Ending::Lost, None);
        let exit = Exit::of(&outcome);
        assert_eq!((exit.code, exit.name), (-1, "unknown"));
        let ending = describe_ending("The script", &outcome, &exit);
        assert_eq!(ending, "The script has ended, but its exit code was lost.");
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
