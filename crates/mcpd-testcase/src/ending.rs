//! Endings of calls, and what a call returned, as tests see them.

use std::fmt;
use std::time::Duration;

use mcpd_protocol::content::{ContentBlock, ResourceBody};
use mcpd_protocol::jsonrpc::{ErrorCode, ErrorObject};
use mcpd_protocol::method::{CallToolResult, GetPromptResult, ReadResourceResult};
use serde_json::{Value, json};

/// First words of a result for invalid arguments.
const INVALID_ARGUMENTS: &str = "Invalid arguments: ";

/// Message of the error for a resource that is not there.
const UNKNOWN_RESOURCE: &str = "resource not found";

/// Exit code of a script that has not found the requested item.
const NOT_FOUND: i32 = 4;

/// Ending of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// The script ended with this exit code.
    Exited(i32),
    /// The script was ended: by a signal of its own, or at a limit of the server. The name is
    /// that of `_meta["mcpd/exit"]`.
    Stopped(String),
    /// The output of the script is not as its format or its schema declares.
    InvalidOutput(String),
    /// The script ended with exit code 0 and reported a failure in its result.
    ReportedError,
    /// Nothing ran, because the arguments are invalid.
    Refused(String),
    /// The call took longer than the limit of the case.
    TimedOut(Duration),
    /// The script asked a question without an answer.
    Unanswered(String),
    /// The call was not possible.
    Failed(String),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Stopped(name) => write!(f, "the script was stopped ({name})"),
            Self::ReportedError => f.write_str("the result is an error"),
            Self::InvalidOutput(why) => f.write_str(why),
            Self::Refused(why) => write!(f, "the call was refused: {why}"),
            Self::TimedOut(limit) => {
                write!(f, "the call took longer than {} s", limit.as_secs_f64())
            }
            Self::Unanswered(why) => f.write_str(why),
            Self::Failed(why) => write!(f, "the call failed: {why}"),
        }
    }
}

/// Result of one call.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    pub(crate) ending: Ending,
    /// All text of the script.
    pub(crate) text: String,
    /// Structured content, or else the text if it is JSON.
    pub(crate) json: Option<Value>,
    /// Messages of a prompt: the role, and the text or the content of another kind.
    pub(crate) messages: Option<Value>,
    /// Types of images.
    pub(crate) images: Vec<String>,
    /// Number of processes that the script has left behind.
    pub(crate) leftovers: u64,
    /// Notes of the server, such as the end of stderr.
    pub(crate) notes: String,
    pub(crate) elapsed: Duration,
}

impl Observed {
    /// Makes an observation without a result.
    pub(crate) fn without_result(ending: Ending) -> Self {
        Self {
            ending,
            text: String::new(),
            json: None,
            messages: None,
            images: Vec::new(),
            leftovers: 0,
            notes: String::new(),
            elapsed: Duration::ZERO,
        }
    }

    /// Reads the result of a tool.
    pub(crate) fn of_result(result: &CallToolResult) -> Self {
        let (mut texts, mut notes, mut images) = (Vec::new(), Vec::new(), Vec::new());
        for block in &result.content {
            match block {
                ContentBlock::Text(block) => {
                    let meta = block.meta.as_ref();
                    let is_note = meta.is_some_and(|meta| meta.contains_key("mcpd/note"));
                    let into = if is_note { &mut notes } else { &mut texts };
                    into.push(block.text.as_str());
                }
                ContentBlock::Image(image) => images.push(image.mime_type.clone()),
                _ => {}
            }
        }
        let text = texts.join("\n");
        let structured = result.structured_content.as_deref();
        let json = structured.map_or(text.as_str(), |value| value.get());
        let meta = &result.meta.other;
        Self {
            ending: ending_of(result, &text),
            json: serde_json::from_str(json).ok(),
            text,
            messages: None,
            images,
            leftovers: meta
                .get("mcpd/leftovers")
                .and_then(Value::as_u64)
                .unwrap_or_default(),
            notes: notes.join("\n"),
            elapsed: Duration::ZERO,
        }
    }

    /// Reads the messages of a prompt.
    pub(crate) fn of_prompt(result: &GetPromptResult) -> Self {
        let (mut texts, mut images, mut messages) = (Vec::new(), Vec::new(), Vec::new());
        for message in &result.messages {
            messages.push(match &message.content {
                ContentBlock::Text(block) => {
                    texts.push(block.text.as_str());
                    json!({"role": message.role, "text": block.text})
                }
                content => json!({"role": message.role, "content": content}),
            });
            if let ContentBlock::Image(image) = &message.content {
                images.push(image.mime_type.clone());
            }
        }
        Self {
            messages: Some(Value::Array(messages)),
            ..Self::of_output(texts.join("\n"), images)
        }
    }

    /// Reads the contents of a resource.
    pub(crate) fn of_resource(result: &ReadResourceResult) -> Self {
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        for contents in &result.contents {
            match (&contents.body, &contents.mime_type) {
                (ResourceBody::Text(text), _) => texts.push(text.as_str()),
                (ResourceBody::Blob(_), Some(kind)) if kind.starts_with("image/") => {
                    images.push(kind.clone());
                }
                (ResourceBody::Blob(_), _) => {}
            }
        }
        Self::of_output(texts.join("\n"), images)
    }

    fn of_output(text: String, images: Vec<String>) -> Self {
        Self {
            json: serde_json::from_str(&text).ok(),
            text,
            images,
            ..Self::without_result(Ending::Exited(0))
        }
    }

    /// Reads an error, which is how prompts and resources fail. Its text is the end of what the
    /// script printed, or else the message.
    pub(crate) fn of_error(error: &ErrorObject) -> Self {
        let message = &*error.message;
        let failure = |exit: Ending| {
            let printed = message.split_once(":\n").map_or("", |(_, printed)| printed);
            Self {
                text: printed.to_owned(),
                notes: message.to_owned(),
                ..Self::without_result(exit)
            }
        };
        let with_message = |ending: Ending| Self {
            text: message.to_owned(),
            ..Self::without_result(ending)
        };
        if is_about_invalid_output(message) {
            return Self::without_result(Ending::InvalidOutput(message.to_owned()));
        }
        match error.code {
            ErrorCode::INTERNAL_ERROR => match ending_in_words(message) {
                Some(ending) => failure(ending),
                None => Self::without_result(Ending::Failed(message.to_owned())),
            },
            // A script says so with its exit code.
            _ if message == UNKNOWN_RESOURCE => failure(Ending::Exited(NOT_FOUND)),
            ErrorCode::INVALID_PARAMS => with_message(Ending::Refused(message.to_owned())),
            // Codes that the output `mcp` chose.
            code if code.is_free() => with_message(Ending::ReportedError),
            _ => Self::without_result(Ending::Failed(message.to_owned())),
        }
    }
}

/// Ending in the sentence of the server on a failed script.
fn ending_in_words(message: &str) -> Option<Ending> {
    let rest = message.strip_prefix("the script `")?;
    let (_, rest) = rest.split_once("` ")?;
    let code = rest.strip_prefix("failed with exit code ").map(|rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit());
        rest[..digits.unwrap_or(rest.len())].parse()
    });
    match code {
        Some(code) => Some(Ending::Exited(code.ok()?)),
        None if rest.starts_with("was stopped because it ran longer") => {
            Some(Ending::Stopped("time-limit".to_owned()))
        }
        None if rest.starts_with("was stopped because it printed") => {
            Some(Ending::Stopped("output-limit".to_owned()))
        }
        None if rest.starts_with("was stopped because it exceeded its memory") => {
            Some(Ending::Stopped("memory-limit".to_owned()))
        }
        None if rest.starts_with("was killed by signal") => {
            Some(Ending::Stopped("killed-by-signal".to_owned()))
        }
        None => None,
    }
}

fn ending_of(result: &CallToolResult, text: &str) -> Ending {
    let meta = &result.meta.other;
    if let Some(exit) = meta.get("mcpd/exit") {
        let code = exit["code"]
            .as_i64()
            .and_then(|code| i32::try_from(code).ok());
        let name = exit["name"].as_str().unwrap_or_default();
        return match name {
            "killed-by-signal" | "time-limit" | "output-limit" | "memory-limit" | "cancelled"
            | "unknown" => Ending::Stopped(name.to_owned()),
            _ => Ending::Exited(code.unwrap_or(-1)),
        };
    }
    match result.is_error {
        Some(true) if text.starts_with(INVALID_ARGUMENTS) => Ending::Refused(text.to_owned()),
        Some(true) if is_about_invalid_output(text) => Ending::InvalidOutput(text.to_owned()),
        Some(true) => Ending::ReportedError,
        _ => Ending::Exited(0),
    }
}

/// Returns whether the server wrote a text about an output that is not as it is declared.
fn is_about_invalid_output(text: &str) -> bool {
    let rest = text.strip_prefix("The output of the script `");
    rest.is_some_and(|rest| rest.contains("` is not valid: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: &ErrorObject, ending: Ending, text: &str) {
        let observed = Observed::of_error(error);
        assert_eq!((observed.ending, &*observed.text), (ending, text));
    }

    #[test]
    fn error_has_the_ending_of_the_script() {
        let failed = |text: &str| ErrorObject::internal_error(format!("the script `a/b` {text}"));
        let code =
            "failed with exit code 3 (forbidden). The end of its stderr:\nno: this\nnor that";
        check(&failed(code), Ending::Exited(3), "no: this\nnor that");
        for (text, name) in [
            (
                "was stopped because it ran longer than its limit of 1 s.",
                "time-limit",
            ),
            (
                "was stopped because it printed more than its limit of 9 bytes.",
                "output-limit",
            ),
            (
                "was stopped because it exceeded its memory limit.",
                "memory-limit",
            ),
            ("was killed by signal SIGKILL (9).", "killed-by-signal"),
        ] {
            check(&failed(text), Ending::Stopped(name.to_owned()), "");
        }
        let other = ErrorObject::internal_error("the server is busy");
        check(&other, Ending::Failed("the server is busy".to_owned()), "");
        let chosen = ErrorObject::new(ErrorCode::new(7), "later");
        check(&chosen, Ending::ReportedError, "later");
    }
}
