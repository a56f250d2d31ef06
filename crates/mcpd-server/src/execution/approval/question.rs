//! Question whether a call may run, as a form for a person, and its answer. Everything that a
//! caller or a tool wrote appears on one line each, shortened, and with hidden characters escaped.

use std::fmt::Write as _;
use std::time::Duration;

use mcpd_protocol::method::{InputMethod, InputRequest};
use mcpd_scriptspec::{excerpt, members};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::CallToApprove;
use crate::message::raw::raw;
use crate::policy::secret_arguments::is_secret;

/// Maximum number of characters of a name or title in the question.
const MAX_NAME_CHARS: usize = 100;
/// Maximum number of characters of a value in the question.
const MAX_VALUE_CHARS: usize = 400;
/// Maximum number of arguments in the question.
const MAX_ARGUMENTS: usize = 40;

/// Choices of a person how long an approval counts.
#[derive(Debug, Clone, Copy)]
pub(super) enum Choices {
    /// None: it counts for one call.
    None,
    Session,
    For(Duration),
}

/// Answer of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Declined,
    Cancelled,
    /// The call is approved.
    Once,
    /// The call is approved, and others with the same arguments.
    ForArguments,
    /// All calls of the tool are approved.
    ForTool,
}

impl Answer {
    /// Reads an answer that has the shape of one. An unknown choice means one call.
    pub(super) fn read(answer: &RawValue) -> Self {
        #[derive(Deserialize)]
        struct Result {
            action: String,
            content: Option<Content>,
        }
        #[derive(Deserialize)]
        struct Content {
            remember: Option<Box<RawValue>>,
        }
        let Ok(result) = serde_json::from_str::<Result>(answer.get()) else {
            return Self::Cancelled;
        };
        match result.action.as_str() {
            "accept" => {}
            "decline" => return Self::Declined,
            _ => return Self::Cancelled,
        }
        let choice = result.content.and_then(|content| content.remember);
        match choice.as_deref().map(RawValue::get) {
            Some(r#""arguments""#) => Self::ForArguments,
            Some(r#""tool""#) => Self::ForTool,
            _ => Self::Once,
        }
    }
}

/// Builds the question.
pub(super) fn question(call: &CallToApprove, choices: Choices) -> InputRequest {
    let lifetime = match choices {
        Choices::None => None,
        Choices::Session => Some("until this session ends".to_owned()),
        Choices::For(lifetime) => Some(format!("for {}", describe_time(lifetime))),
    };
    let properties = match lifetime {
        None => json!({}),
        Some(lifetime) => json!({"remember": {
            "type": "string",
            "title": "This approval counts",
            "oneOf": [
                {"const": "once", "title": "for this call only"},
                {"const": "arguments", "title": format!("for calls with these arguments, {lifetime}")},
                {"const": "tool", "title": format!("for all calls of this tool, {lifetime}")},
            ],
            "default": "once",
        }}),
    };
    let params = json!({
        "mode": "form",
        "message": message(call),
        "requestedSchema": {"type": "object", "properties": properties},
    });
    InputRequest::new(InputMethod::ElicitationCreate, raw(&params))
}

/// Describes the call.
fn message(call: &CallToApprove) -> String {
    let mut text = format!(
        "May the tool `{}`",
        excerpt(call.path.as_str(), MAX_NAME_CHARS)
    );
    let own_title = call.title.as_deref();
    if let Some(title) = own_title.filter(|title| *title != call.path.as_str()) {
        write_to(
            &mut text,
            format_args!(" ({})", quoted(title, MAX_NAME_CHARS)),
        );
    }
    let members = match members(call.arguments.as_deref()) {
        Ok(members) if members.is_empty() => {
            text.push_str(" run, without arguments?");
            return text;
        }
        Ok(members) => members,
        Err(_) => {
            text.push_str(" run, with arguments that cannot be shown?");
            return text;
        }
    };
    text.push_str(" run with these arguments?");
    for (name, value) in members.iter().take(MAX_ARGUMENTS) {
        let is_secret = call.spec.as_ref().is_some_and(|spec| is_secret(name, spec));
        let value = match is_secret {
            true => "(secret, not shown)".to_owned(),
            false => describe_value(value),
        };
        let name = excerpt(name, MAX_NAME_CHARS);
        write_to(&mut text, format_args!("\n- {name}: {value}"));
    }
    if let Some(more @ 1..) = members.len().checked_sub(MAX_ARGUMENTS) {
        write_to(&mut text, format_args!("\n- and {more} more, not shown"));
    }
    text
}

/// Describes a value on one line.
fn describe_value(value: &RawValue) -> String {
    match serde_json::from_str::<String>(value.get()) {
        Ok(text) => quoted(&text, MAX_VALUE_CHARS),
        Err(_) => shortened(value.get(), MAX_VALUE_CHARS),
    }
}

fn quoted(text: &str, max: usize) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            '"' | '\\' => escaped.extend(['\\', char]),
            _ => escaped.push(char),
        }
    }
    format!("\"{}\"", shortened(&escaped, max))
}

/// Returns a text without hidden characters, cut in the middle if it is too long: its end may
/// matter as much as its beginning.
fn shortened(text: &str, max: usize) -> String {
    let length = text.chars().count();
    if length <= max {
        return excerpt(text, max);
    }
    let beginning: String = text.chars().take(max / 2).collect();
    let end: String = text.chars().skip(length - max / 2).collect();
    format!(
        "{} … {} characters not shown … {}",
        excerpt(&beginning, max),
        length - 2 * (max / 2),
        excerpt(&end, max)
    )
}

fn describe_time(time: Duration) -> String {
    let (number, unit) = match time.as_secs() {
        seconds if seconds >= 3600 && seconds % 3600 == 0 => (seconds / 3600, "hour"),
        seconds if seconds >= 60 && seconds % 60 == 0 => (seconds / 60, "minute"),
        seconds => (seconds, "second"),
    };
    match number {
        1 => format!("1 {unit}"),
        number => format!("{number} {unit}s"),
    }
}

fn write_to(text: &mut String, added: std::fmt::Arguments<'_>) {
    text.write_fmt(added)
        .expect("a string takes all that is written");
}

#[cfg(test)]
mod tests;
