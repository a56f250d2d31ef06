//! Asking a script with `--help`, within limits, and why that may fail.

use std::time::Duration;

use bytes::Bytes;
use mcpd_exec::{Ending, Executor, Outcome, StartError};
use mcpd_scriptspec::{Diagnostic, Stream};

use crate::catalog::walk::Candidate;
use crate::error::chain;
use crate::launch::Launch;
use crate::policy::Terms;

/// How long a script may take to describe itself.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// How much it may print for that, per stream, in bytes.
const OUTPUT_LIMIT: usize = 1 << 20;

/// What a script says of itself: what it printed when it was asked for `--help`, or what stands in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HelpText {
    /// The metadata, if all went well.
    pub stdout: Bytes,
    /// The options, if all went well.
    pub stderr: Bytes,
    /// The file, of a script that was not asked.
    pub source: Bytes,
}

/// Why a script could not be asked.
pub(super) enum ProbeFault {
    NotStarted(StartError),
    Ended(Box<Outcome>),
}

/// Asks a script what it says of itself.
pub(super) async fn probe(
    executor: &Executor,
    candidate: &Candidate,
    launch: &Launch,
    terms: &Terms,
) -> Result<HelpText, ProbeFault> {
    let command = launch.command().arg("--help").current_dir(&candidate.root);
    let mut limits = terms.limits().clone();
    limits.wall = TIME_LIMIT;
    limits.capture_head = OUTPUT_LIMIT;
    limits.capture_tail = 0;
    limits.output_hard = OUTPUT_LIMIT as u64;
    let command = terms.apply(command).limits(limits);
    let outcome = match executor.run(command.clone()).await {
        Ok(outcome) if matches!(outcome.ending, Ending::Exited(0)) => {
            return Ok(HelpText::of(outcome));
        }
        Ok(outcome) => outcome,
        Err(error) => return Err(ProbeFault::NotStarted(error)),
    };
    if matches!(outcome.ending, Ending::Exited(126 | 127)) {
        // So ends `env` in a first line when it can't start the interpreter.
        let executor = executor.clone();
        let looked = tokio::task::spawn_blocking(move || executor.look(&command));
        if let Ok(Err(error)) = looked.await {
            return Err(ProbeFault::NotStarted(error));
        }
    }
    Err(ProbeFault::Ended(Box::new(outcome)))
}

/// What is said of a script that can't be started.
pub(super) fn not_started(error: &StartError) -> Diagnostic {
    Diagnostic::help_not_started(&format!("failed to {}", chain(error)))
}

impl HelpText {
    fn of(outcome: Outcome) -> Self {
        Self {
            stdout: outcome.stdout.head,
            stderr: outcome.stderr.head,
            source: Bytes::new(),
        }
    }
}

impl ProbeFault {
    /// Whether it says something of the machine at this moment, and nothing of the script.
    pub(super) fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::NotStarted(
                StartError::Busy { .. }
                    | StartError::Resource { .. }
                    | StartError::TextBusy { .. }
                    | StartError::TooManyProcesses { .. }
                    | StartError::ShuttingDown
            )
        )
    }

    pub(super) fn is_time_out(&self) -> bool {
        matches!(self, Self::Ended(outcome) if matches!(outcome.ending, Ending::TimedOut { .. }))
    }

    pub(super) fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::NotStarted(error) => not_started(error),
            Self::Ended(outcome) => match outcome.ending {
                Ending::Exited(code) => Diagnostic::help_failed(code),
                Ending::Signaled { signal, .. } => Diagnostic::help_killed(signal),
                Ending::TimedOut { limit, .. } => Diagnostic::help_timed_out(limit),
                Ending::OutputLimit { .. } => {
                    let stdout_is_larger = outcome.stdout.total_bytes >= outcome.stderr.total_bytes;
                    let stream = if stdout_is_larger {
                        Stream::Stdout
                    } else {
                        Stream::Stderr
                    };
                    Diagnostic::help_too_large(stream, OUTPUT_LIMIT)
                }
                Ending::OutOfMemory => Diagnostic::help_not_started("`--help` ran out of memory"),
                Ending::Lost => Diagnostic::help_not_started("nobody knows how `--help` has ended"),
                _ => Diagnostic::help_not_started("the server is shutting down"),
            },
        }
    }

    /// What it printed all the same: often it says what is wrong.
    pub(super) fn help(self) -> HelpText {
        match self {
            Self::NotStarted(_) => HelpText::default(),
            Self::Ended(outcome) => HelpText::of(*outcome),
        }
    }
}
