//! Programs that the configuration names, run to completion.

use std::path::Path;
use std::time::Duration;

use mcpd_exec::{Command, Ending, Executor, Limits, Outcome};

/// Timeout of a program.
pub(crate) const PROGRAM_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a program with its arguments in `directory`, with the environment of mcpd. A relative path
/// of a program is resolved in the directory, too.
///
/// # Errors
///
/// The program could not be run or failed; the message is a fragment, and has none of its output.
pub(crate) async fn run(
    words: &[String],
    directory: &Path,
    executor: &Executor,
) -> Result<Outcome, String> {
    let (program, arguments) = words.split_first().ok_or("the command is empty")?;
    let mut limits = Limits::default();
    limits.wall = PROGRAM_TIMEOUT;
    let command = if program.contains('/') {
        Command::new(directory.join(program))
    } else {
        Command::new(program)
    };
    let command = command
        .args(arguments)
        .current_dir(directory)
        .limits(limits);
    let outcome = executor
        .run(command)
        .await
        .map_err(|error| format!("failed to {error}"))?;
    match outcome.ending {
        Ending::Exited(0) => Ok(outcome),
        Ending::Exited(code) => Err(format!("`{program}` failed with the exit code {code}")),
        Ending::TimedOut { limit, .. } => Err(format!(
            "`{program}` took longer than {} s",
            limit.as_secs()
        )),
        _ => Err(format!(
            "`{program}` was killed by a signal or printed too much"
        )),
    }
}

/// Runs a program as [`run`] does, and returns the text that it printed.
///
/// # Errors
///
/// As [`run`], or the output is too long or not UTF-8.
pub(crate) async fn output(
    words: &[String],
    directory: &Path,
    executor: &Executor,
) -> Result<String, String> {
    let outcome = run(words, directory, executor).await?;
    let whole = outcome.stdout.whole();
    let text = whole.and_then(|bytes| String::from_utf8(bytes.into()).ok());
    text.ok_or_else(|| {
        format!(
            "`{}` printed output that is too long or not UTF-8",
            words[0]
        )
    })
}
