//! Sentences on the end of a run, for its caller.

use mcpd_exec::{Ending, Outcome, signal_name};

use super::text::tail;
use crate::observe::ending::Exit;

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

/// Describes the exit for the operator's log, with the end of stderr.
pub(crate) fn with_last_words(exit: &Exit, outcome: &Outcome) -> String {
    let mut text = exit.to_string();
    let stderr = tail(&outcome.stderr);
    if !stderr.is_empty() {
        text += &format!(": {stderr}");
    }
    text
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use mcpd_exec::{Command, Config, Executor};

    use super::*;

    #[tokio::test]
    async fn lost_run_is_not_cancelled() {
        let executor = Executor::new(Config::default()).unwrap();
        let mut outcome = executor.run(Command::new("true")).await.unwrap();
        (outcome.ending, outcome.status) = (Ending::Lost, None);
        let exit = Exit::of(&outcome);
        assert_eq!((exit.code, exit.name), (-1, "unknown"));
        let ending = describe_ending("The script", &outcome, &exit);
        assert_eq!(ending, "The script has ended, but its exit code was lost.");
    }
}
