//! How a run ended, as a number and a name: the table of the script contract and what lies beyond it.

use mcpd_exec::{Ending, Outcome};

use super::text::tail;

/// The names of the exit codes 0 to 9 in the script contract.
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

/// The name of any other failure.
const FAILED: &str = "failed";

/// The exit code of a script that has not found what it was asked for.
pub(super) const NOT_FOUND: i32 = 4;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    /// The exit code, or 128 and the signal, as a shell counts.
    pub(crate) code: i32,
    /// What it means.
    pub(crate) name: &'static str,
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

    /// The same for the operator's log, with the last of what the script said.
    pub(crate) fn with_last_words(&self, outcome: &Outcome) -> String {
        let mut text = format!("exit code {} ({})", self.code, self.name);
        let stderr = tail(&outcome.stderr);
        if !stderr.is_empty() {
            text += &format!(": {stderr}");
        }
        text
    }

    /// The same of a program that knows nothing of the script contract.
    pub(crate) fn of_any_program(outcome: &Outcome) -> Self {
        match outcome.ending {
            Ending::Exited(code @ 1..=9) => Self { code, name: FAILED },
            _ => Self::of(outcome),
        }
    }
}

/// A sentence for endings that were not the program's own choice; `subject` is what its caller calls it, and what it
/// printed follows unless it `is_silent`.
pub(super) fn explanation(subject: &str, outcome: &Outcome, is_silent: bool) -> Option<String> {
    match outcome.ending {
        Ending::TimedOut { limit, .. } => Some(format!(
            "{subject} was stopped because it ran longer than its limit of {} s. {}",
            limit.as_secs_f64(),
            match is_silent {
                true => "It had printed nothing until then.",
                false => "What it printed until then follows.",
            }
        )),
        Ending::OutputLimit { limit, .. } => Some(format!(
            "{subject} was stopped because it printed more than its limit of {limit} bytes."
        )),
        Ending::OutOfMemory => Some(format!(
            "{subject} was stopped because it used more memory than it may."
        )),
        Ending::Signaled { signal, .. } => Some(format!("{subject} was ended by signal {signal}.")),
        Ending::Cancelled => Some(format!(
            "{subject} was stopped because the call was cancelled."
        )),
        Ending::Lost => Some(format!("{subject} has ended, and nobody knows how.")),
        _ => None,
    }
}

fn code_name(code: i32) -> &'static str {
    let contract = usize::try_from(code)
        .ok()
        .and_then(|code| CONTRACT.get(code).copied());
    match (contract, code) {
        (Some(name), _) => name,
        // What a shell says of a command it could not start.
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
        .map_or(-1, failed)
}

#[cfg(not(unix))]
fn status_code(outcome: &Outcome) -> i32 {
    outcome
        .status
        .and_then(|status| status.code())
        .map_or(-1, failed)
}

/// What was stopped has not succeeded, even if it says so in the end; it counts as ended by SIGTERM then.
fn failed(code: i32) -> i32 {
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
    fn what_was_stopped_has_not_succeeded() {
        assert_eq!([0, 3, 137].map(failed), [143, 3, 137]);
    }

    #[tokio::test]
    #[cfg(unix)]
    async fn what_was_lost_was_not_cancelled() {
        let executor = Executor::new(Config::default()).unwrap();
        let mut outcome = executor.run(Command::new("true")).await.unwrap();
        (outcome.ending, outcome.status) = (Ending::Lost, None);
        let exit = Exit::of(&outcome);
        assert_eq!((exit.code, exit.name), (-1, "unknown"));
        let explanation = explanation("The script", &outcome, true).unwrap();
        assert_eq!(explanation, "The script has ended, and nobody knows how.");
    }

    #[test]
    fn the_contract_names_ten_codes_and_the_shell_two() {
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
