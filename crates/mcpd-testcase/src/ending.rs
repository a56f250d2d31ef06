//! Endings of calls, and what a call returned, as tests see them.

use std::fmt;
use std::time::Duration;

use mcpd_protocol::content::ContentBlock;
use mcpd_protocol::method::CallToolResult;
use serde_json::Value;

/// First words of a result for invalid arguments.
const INVALID_ARGUMENTS: &str = "Invalid arguments: ";

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

/// What one call returned.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    pub(crate) ending: Ending,
    /// All text of the script.
    pub(crate) text: String,
    /// Structured content, or else the text if it is JSON.
    pub(crate) json: Option<Value>,
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
            images,
            leftovers: meta
                .get("mcpd/leftovers")
                .and_then(Value::as_u64)
                .unwrap_or_default(),
            notes: notes.join("\n"),
            elapsed: Duration::ZERO,
        }
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
