//! Probe: one run of a script with `--help`, confined and within limits, and the causes of its
//! failure. The meaning of its output is left to the [inspector](super::inspector).

use bytes::Bytes;
use mcpd_exec::{
    Command, Ending, Enforcement, Executor, Level, MissingMechanism, Outcome, StartError,
};
use mcpd_scriptspec::{Diagnostic, HelpOutput, ScriptPath, Stream};

use crate::catalog::walk::Candidate;
use crate::database::rows::HelpText;
use crate::policy::{EffectivePolicy, ProbePolicy};
use crate::script::start_command::StartCommand;
use crate::support::error_chain::chain;

/// Maximum size of the output of a probe per stream, in bytes.
const MAX_OUTPUT: usize = 1 << 20;

/// Failure of a probe.
pub(super) enum ProbeFailure {
    NotStarted(StartError),
    Ended(Box<Outcome>),
}

/// Result of a probe, and the mechanisms of its confinement that the system lacks.
pub(super) struct ProbeOutcome {
    pub(super) answer: Result<HelpText, ProbeFailure>,
    /// Configuration key that helps if the script failed because of its confinement.
    pub(super) remedy: Option<&'static str>,
    pub(super) missing: Vec<MissingMechanism>,
}

/// Runs a script with `--help`.
pub(super) async fn probe(
    executor: &Executor,
    candidate: &Candidate,
    start_command: &StartCommand,
    policy: &ProbePolicy,
) -> ProbeOutcome {
    let mut command = start_command
        .command()
        .arg("--help")
        .current_dir(&candidate.root);
    if policy.level() > Level::None {
        command = command.start_in_temporary_directory();
    }
    let confined = with_limits(policy, policy.effective_policy(), command.clone());
    let mut ended = executor.run(confined.clone()).await;
    let mut missing = Vec::new();
    if let (Err(StartError::Unenforceable { missing: lacks, .. }), Some(fallback)) =
        (&ended, policy.fallback())
    {
        missing.clone_from(lacks);
        ended = executor.run(with_limits(policy, fallback, command)).await;
    }
    let outcome = match ended {
        Ok(outcome) => outcome,
        Err(error) => {
            return ProbeOutcome {
                answer: Err(ProbeFailure::NotStarted(error)),
                remedy: None,
                missing,
            };
        }
    };
    missing.extend(missing_for_probe(&outcome.enforced, policy));
    let remedy = policy
        .is_confined()
        .then(|| suggested_key(&outcome))
        .flatten();
    let answer = match outcome.ending {
        Ending::Exited(0) => Ok(HelpText::of(outcome)),
        // `env` in a first line ends this way if it cannot start the interpreter.
        Ending::Exited(126 | 127) => Err(match find_start_error(executor, confined).await {
            Err(error) => ProbeFailure::NotStarted(error),
            Ok(()) => ProbeFailure::Ended(Box::new(outcome)),
        }),
        _ => Err(ProbeFailure::Ended(Box::new(outcome))),
    };
    ProbeOutcome {
        answer,
        remedy,
        missing,
    }
}

fn with_limits(probe: &ProbePolicy, policy: &EffectivePolicy, command: Command) -> Command {
    let mut limits = policy.limits().clone();
    limits.wall = probe.time_limit();
    limits.capture_head = MAX_OUTPUT;
    limits.capture_tail = 0;
    limits.output_hard = MAX_OUTPUT as u64;
    policy.apply(command).limits(limits)
}

/// Returns the missing mechanisms of the confinement that only probes have. Those of calls, and
/// those of limits, are reported when calls run.
fn missing_for_probe(enforced: &Enforcement, policy: &ProbePolicy) -> Vec<MissingMechanism> {
    const LIMITS: [&str; 2] = ["cgroup", "process limit"];
    let mut missing = match policy.is_confined() {
        true => enforced.missing.clone(),
        false => Vec::new(),
    };
    missing.retain(|missing| !LIMITS.contains(&&*missing.mechanism));
    missing
}

/// Searches for the reason why `command` cannot be started.
async fn find_start_error(executor: &Executor, command: Command) -> Result<(), StartError> {
    let executor = executor.clone();
    let inspected = tokio::task::spawn_blocking(move || executor.inspect(&command));
    inspected.await.unwrap_or(Ok(()))
}

/// Diagnostic of a script that cannot be started.
pub(super) fn start_fault(error: &StartError) -> Diagnostic {
    Diagnostic::help_not_started(&format!("failed to {}", chain(error)))
}

impl HelpText {
    /// Output to parse.
    pub(super) fn output(&self) -> HelpOutput<'_> {
        HelpOutput {
            stdout: &self.stdout,
            stderr: &self.stderr,
        }
    }

    fn of(outcome: Outcome) -> Self {
        Self {
            stdout: outcome.stdout.head,
            stderr: outcome.stderr.head,
            source: Bytes::new(),
        }
    }
}

impl ProbeFailure {
    /// Returns whether the fault concerns the current state of the machine, not the script.
    pub(super) fn is_transient(&self) -> bool {
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
            Self::NotStarted(error) => start_fault(error),
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
                    Diagnostic::help_too_large(stream, MAX_OUTPUT)
                }
                Ending::OutOfMemory => {
                    Diagnostic::help_not_started("`--help` exceeded its memory limit")
                }
                Ending::Lost => {
                    Diagnostic::help_not_started("the exit status of `--help` was lost")
                }
                _ => Diagnostic::help_not_started("the server is shutting down"),
            },
        }
    }

    /// Returns its output all the same: often it explains the failure.
    pub(super) fn help(self) -> HelpText {
        match self {
            Self::NotStarted(_) => HelpText::default(),
            Self::Ended(outcome) => HelpText::of(*outcome),
        }
    }
}

/// Returns the advice for a script at `path` that failed because of its confinement, where `key`
/// helps.
pub(super) fn remedy_text(key: &str, path: &ScriptPath) -> String {
    format!(
        "`--help` runs in a sandbox, without a network and in an empty directory, which the output suggests as the cause; if you trust the script, permit what it needs in mcpd.toml: `[[tool]]`, `match = \"{path}\"`, `probe = {{ {key} }}`; or describe it in `NAME.mcpd.toml` beside it, so that `--help` is not run"
    )
}

/// Phrases by which programs report a refused file or system call, or a missing file.
const ACCESS_PHRASES: [&str; 6] = [
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "eacces",
    "eperm",
    "no such file or directory",
];
/// Phrases by which programs report a missing network.
const NETWORK_PHRASES: [&str; 12] = [
    "could not resolve",
    "name resolution",
    "name or service not known",
    "dns error",
    "failed to lookup address",
    "getaddrinfo",
    "network is unreachable",
    "connection refused",
    "connection error",
    "couldn't connect",
    "failed to fetch",
    "socket",
];

/// Returns the configuration key that helps a script that failed because of its confinement,
/// judged by its output.
///
/// A program without a network often fails to open a socket, which reads as a refused call, so
/// phrases for the network come first. A program that stores its downloads, such as `uv`, must
/// also write.
fn suggested_key(outcome: &Outcome) -> Option<&'static str> {
    let says = String::from_utf8_lossy(&outcome.stderr.head).to_lowercase()
        + &String::from_utf8_lossy(&outcome.stdout.head).to_lowercase();
    let says_any = |words: &[&str]| words.iter().any(|word| says.contains(word));
    if says_any(&NETWORK_PHRASES) {
        Some("network = \"host\"")
    } else if says_any(&ACCESS_PHRASES) {
        Some("sandbox = \"none\"")
    } else {
        None
    }
}
