//! Types and values as fragments of messages.

use std::fmt::Write as _;

use crate::{
    json::{Kind, Value},
    spec::{Bounds, ScriptOption, ValueType},
    text::{self, excerpt},
};

/// Maximum length of a quoted value in a message, in characters.
const MAX_QUOTED: usize = 40;

/// Maximum number of values or names in a message.
const MAX_LISTED: usize = 20;

/// Describes a value of this type: `an integer from 1 to 100`.
pub(crate) fn expectation(value_type: &ValueType) -> String {
    match value_type {
        ValueType::String { size, pattern, .. } => {
            let mut text = with_count("a string", size, "character");
            if let Some(pattern) = pattern {
                write!(text, " that matches `{}`", pattern.as_str())
                    .expect("a string takes all that is written");
            }
            text
        }
        ValueType::Integer { size } => with_bounds("an integer", size),
        ValueType::Float { size } => with_bounds("a number", size),
        ValueType::Boolean => "`true` or `false`".to_owned(),
        ValueType::Any { size } => with_bounds("a value", size),
        ValueType::Enum { values } => {
            format!("one of {}", list(values, |value| format!("{value:?}")))
        }
        ValueType::Array { size, .. } => with_count("an array", size, "element"),
        ValueType::Object { .. } => "an object".to_owned(),
    }
}

/// Describes a value: `the string "ten"`.
pub(crate) fn describe(value: Value<'_>) -> String {
    let text = excerpt(value.text(), MAX_QUOTED);
    match value.kind() {
        Kind::String => format!("the string {text}"),
        Kind::Number => format!("the number {text}"),
        Kind::Null | Kind::Boolean => format!("`{text}`"),
        Kind::Array | Kind::Object => value.kind().name().to_owned(),
    }
}

/// Lists the alternatives: ``one of the options `a`, `b` ``.
pub(crate) fn one_of(what: &str, options: &[ScriptOption]) -> String {
    if options.is_empty() {
        return format!("no {what} at all");
    }
    format!(
        "one of the {what} {}",
        list(options, |option| text::name(&option.name).to_string())
    )
}

/// A count with its unit: `1 character`.
pub(super) fn count(number: &str, unit: &str) -> String {
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

fn list<T>(items: &[T], word: impl Fn(&T) -> String) -> String {
    let mut words: Vec<_> = items.iter().take(MAX_LISTED).map(word).collect();
    if items.len() > MAX_LISTED {
        words.push("…".to_owned());
    }
    words.join(", ")
}

fn with_bounds(what: &str, size: &Bounds) -> String {
    match (&size.min, &size.max) {
        (Some(min), Some(max)) => format!("{what} from {min} to {max}"),
        (Some(min), None) => format!("{what} of at least {min}"),
        (None, Some(max)) => format!("{what} of at most {max}"),
        (None, None) => what.to_owned(),
    }
}

fn with_count(what: &str, size: &Bounds, unit: &str) -> String {
    match (&size.min, &size.max) {
        (Some(min), Some(max)) if min == max => format!("{what} of {}", count(max.as_str(), unit)),
        (Some(min), Some(max)) => format!("{what} of {min} to {}", count(max.as_str(), unit)),
        (Some(min), None) => format!("{what} of at least {}", count(min.as_str(), unit)),
        (None, Some(max)) => format!("{what} of at most {}", count(max.as_str(), unit)),
        (None, None) => what.to_owned(),
    }
}
