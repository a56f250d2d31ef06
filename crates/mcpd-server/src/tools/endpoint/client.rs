//! Client of an action endpoint: starts one process per request, and reads one object as its
//! answer. Failures have two messages, one for the caller and one for the operator.

use std::path::PathBuf;

use mcpd_exec::{Captured, Command, Ending, Outcome};
use mcpd_scriptspec::{OutputFormat, ScriptPath, ScriptSpec, excerpt};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::catalog::source::NO_SOURCES;
use crate::execution::call::describe_not_run;
use crate::execution::input_rounds::CallFailure;
use crate::execution::output;
use crate::observe::ending::RunError;
use crate::policy::{EffectivePolicy, Policy};

/// Message for the caller if the failure contains nothing useful to it.
const NO_ANSWER: &str = "The endpoint gave no valid response. The reason is in the server's log.";
/// Maximum length of an endpoint's message that is repeated, in characters.
const MAX_MESSAGE_CHARS: usize = 400;
/// Maximum length of an invalid answer that is repeated, in characters.
const MAX_EXCERPT_CHARS: usize = 80;
/// Maximum number of lines of stderr that are logged; of more, the last.
const MAX_LOGGED_LINES: usize = 20;

/// Configuration for running an endpoint.
#[derive(Debug)]
pub(super) struct EndpointClient {
    /// Name for people.
    pub(super) name: String,
    /// Program and its arguments.
    pub(super) command: Vec<String>,
    pub(super) directory: PathBuf,
    pub(super) policy: Policy,
}

/// Request in JSON.
#[derive(Debug, Serialize)]
pub(super) struct EndpointRequest<'a> {
    pub(super) action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<&'a RawValue>,
}

/// Members of an answer.
#[derive(Debug, Deserialize)]
pub(super) struct EndpointAnswer {
    r#type: String,
    error: Option<AnswerError>,
    pub(super) tools: Option<Box<RawValue>>,
    pub(super) result: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
struct AnswerError {
    message: String,
}

/// Reason why there is no answer.
#[derive(Debug)]
pub(super) struct NoAnswer {
    /// Message for the caller.
    pub(super) failure: CallFailure,
    /// Reason for the operator.
    pub(super) reason: String,
}

impl NoAnswer {
    pub(super) fn new(reason: String) -> Self {
        let failure = CallFailure::NoResult(NO_ANSWER.to_owned());
        Self { failure, reason }
    }
}

impl From<RunError> for NoAnswer {
    fn from(error: RunError) -> Self {
        Self {
            failure: describe_not_run("The endpoint", &error),
            reason: format!("failed to {error}"),
        }
    }
}

impl EndpointClient {
    /// Returns the policy for the tool at `path`.
    pub(super) fn policy_for(&self, path: &ScriptPath) -> EffectivePolicy {
        let mut spec = ScriptSpec::default();
        spec.output = OutputFormat::Json;
        self.policy
            .effective_policy(path, &self.directory, Some(&spec))
    }

    /// Builds the command that sends a request under these terms.
    pub(super) fn command(
        &self,
        policy: &EffectivePolicy,
        request: &EndpointRequest<'_>,
    ) -> Command {
        let mut words = self.command.iter();
        let program = words.next().map_or("", String::as_str);
        let command = match program.contains('/') {
            true => Command::new(self.directory.join(program)),
            false => Command::new(program),
        };
        let command = command.args(words).current_dir(&self.directory);
        let mut line = serde_json::to_vec(request).expect("a request has string keys only");
        // The line end is for a shell that reads a line.
        line.push(b'\n');
        policy.apply(command).env(NO_SOURCES, "1").stdin(line)
    }

    /// Reads the answer in the output, and logs stderr.
    pub(super) fn answer(&self, outcome: &Outcome) -> Result<EndpointAnswer, NoAnswer> {
        let said = output::tail(&outcome.stderr);
        let lines: Vec<_> = said.lines().collect();
        for line in &lines[lines.len().saturating_sub(MAX_LOGGED_LINES)..] {
            tracing::info!("{} says: {}", self.name, excerpt(line, MAX_MESSAGE_CHARS));
        }
        read(&outcome.stdout, &outcome.stderr, outcome.ending)
    }
}

/// Finds the one object of the output: on stdout, or an error on stderr, perhaps after other
/// lines.
fn read(stdout: &Captured, stderr: &Captured, ending: Ending) -> Result<EndpointAnswer, NoAnswer> {
    let answer = stdout.whole().and_then(|text| object(&text));
    let said = stderr.whole().unwrap_or_default();
    let is_error = |answer: &&EndpointAnswer| answer.r#type == "error";
    let on_stderr = || object(&said).or_else(|| object(last_line(&said)));
    if let Some(error) = answer.as_ref().filter(is_error) {
        return Err(error_answer(error));
    }
    if let Some(error) = on_stderr().as_ref().filter(is_error) {
        return Err(error_answer(error));
    }
    match answer.filter(|answer| answer.r#type == "result") {
        _ if ending != Ending::Exited(0) => Err(no_answer_after(ending)),
        Some(answer) => Ok(answer),
        None => Err(NoAnswer::new(format!(
            "expected an object of the type `result`, found {}",
            describe_output(stdout)
        ))),
    }
}

/// Parses an answer, which must be an object. (Serde would accept an array as well.)
fn object(text: &[u8]) -> Option<EndpointAnswer> {
    let text = text.trim_ascii();
    let answer = text.starts_with(b"{").then(|| serde_json::from_slice(text));
    answer?.ok()
}

fn last_line(text: &[u8]) -> &[u8] {
    let mut lines = text.trim_ascii_end().rsplit(|byte| *byte == b'\n');
    lines.next().unwrap_or_default()
}

fn error_answer(answer: &EndpointAnswer) -> NoAnswer {
    let message = answer.error.as_ref().map(|error| error.message.as_str());
    let message = message.unwrap_or("no reason given");
    NoAnswer {
        failure: CallFailure::NoResult(message.to_owned()),
        reason: format!(
            "it responded with an error: {}",
            excerpt(message, MAX_MESSAGE_CHARS)
        ),
    }
}

fn describe_output(stdout: &Captured) -> String {
    match stdout.total_bytes {
        0 => "nothing".to_owned(),
        total if stdout.omitted_bytes > 0 => format!("{total} bytes"),
        _ => {
            let text = stdout.to_text_lossy();
            format!("`{}`", excerpt(text.trim_end(), MAX_EXCERPT_CHARS))
        }
    }
}

/// Describes an ending without an answer. The caller learns of a timeout too: another call may
/// take less.
fn no_answer_after(ending: Ending) -> NoAnswer {
    let no_answer = NoAnswer::new(describe_ending(ending));
    match ending {
        Ending::TimedOut { limit, .. } => NoAnswer {
            failure: CallFailure::NoResult(format!(
                "The endpoint was stopped because it ran longer than its limit of {} s.",
                limit.as_secs_f64()
            )),
            ..no_answer
        },
        _ => no_answer,
    }
}

fn describe_ending(ending: Ending) -> String {
    match ending {
        Ending::Exited(code) => format!("it failed with exit code {code}"),
        Ending::Signaled { signal, .. } => format!("it was killed by signal {signal}"),
        Ending::TimedOut { limit, .. } => format!("it took more than {} s", limit.as_secs_f64()),
        Ending::OutputLimit { limit, .. } => format!("it printed more than {limit} bytes"),
        Ending::OutOfMemory => "it exceeded its memory limit".to_owned(),
        _ => "it was stopped".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(text: &str) -> Captured {
        let mut captured = Captured::default();
        captured.head = text.to_owned().into();
        captured.total_bytes = text.len() as u64;
        captured
    }

    /// Checks the answer or the reason for these outputs and this exit code.
    #[track_caller]
    fn check(stdout: &str, stderr: &str, code: i32, expected: Result<&str, &str>) {
        let read = read(&capture(stdout), &capture(stderr), Ending::Exited(code));
        let result = read.map(|answer| answer.result.map(|result| result.get().to_owned()));
        let result = result.map_err(|no_answer| no_answer.reason);
        assert_eq!(
            result,
            expected
                .map(|result| Some(result.to_owned()))
                .map_err(str::to_owned)
        );
    }

    #[test]
    fn result_is_passed_on_unchanged() {
        check(
            " {\"type\": \"result\", \"result\": {\"n\": 1.50}}\n",
            "a line\n",
            0,
            Ok("{\"n\": 1.50}"),
        );
    }

    #[test]
    fn error_is_read_from_either_stream() {
        let error = r#"{"type": "error", "error": {"name": "n", "category": "fatal", "message": "no\nway"}}"#;
        let expected = Err("it responded with an error: no\\u{a}way");
        check(error, "", 1, expected);
        check(error, "", 0, expected);
        check("", error, 1, expected);
        check("", &format!("a line\n{error}\n"), 1, expected);
        check(r#"{"type": "result", "result": {}}"#, error, 0, expected);
    }

    #[test]
    fn other_output_is_no_answer() {
        let nothing = |shown| format!("expected an object of the type `result`, found {shown}");
        for (stdout, shown) in [
            ("", "nothing"),
            ("garbage", "`garbage`"),
            ("[\"result\"]", "`[\"result\"]`"),
            ("{\"type\": \"other\"}", "`{\"type\": \"other\"}`"),
            ("{\"type\": \"result\"} {}", "`{\"type\": \"result\"} {}`"),
        ] {
            check(stdout, "", 0, Err(&nothing(shown)));
        }
        check(
            "{\"type\": \"result\"}",
            "",
            3,
            Err("it failed with exit code 3"),
        );
        check(
            "",
            "{\"type\": \"result\", \"result\": {}}",
            0,
            Err(&nothing("nothing")),
        );
    }
}
