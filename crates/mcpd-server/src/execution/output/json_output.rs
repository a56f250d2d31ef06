//! Parser of JSON output, piece by piece, with a message for a faulty piece.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use mcpd_exec::{Captured, Outcome};
use mcpd_scriptspec::excerpt;
use mcpd_scriptspec::output::{OutputFault, json_output};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::media::is_text;

/// Maximum length of a faulty piece in a message, in characters.
const MAX_EXCERPT_CHARS: usize = 120;

/// Reason why an output does not fit its format, as a fragment.
#[derive(Debug)]
pub(super) struct OutputError(String);

impl OutputError {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// Builds a fault of `piece`, located at `place`.
    fn at(place: impl fmt::Display, what: impl fmt::Display, piece: &str) -> Self {
        Self(format!(
            "`{place}`: {what}, in `{}`",
            excerpt(piece, MAX_EXCERPT_CHARS)
        ))
    }
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<OutputFault> for OutputError {
    fn from(fault: OutputFault) -> Self {
        Self(fault.to_string())
    }
}

/// Returns the complete output; a part of it would mean nothing.
pub(super) fn whole(output: &Captured) -> Result<Bytes, OutputError> {
    output.whole().ok_or_else(|| {
        let total = output.total_bytes;
        let omitted = output.omitted_bytes;
        OutputError(format!(
            "it is {total} bytes long, of which {omitted} were omitted"
        ))
    })
}

/// Returns the complete output: of a text the characters that a terminal would show, and any
/// other bytes unchanged.
pub(super) fn readable(output: &Captured) -> Result<Bytes, OutputError> {
    let bytes = whole(output)?;
    match output.terminal_view().whole() {
        Some(shown) if is_text(&bytes) => Ok(shown),
        _ => Ok(bytes),
    }
}

/// Returns the complete output of a run that must print something.
pub(super) fn require_output(outcome: &Outcome) -> Result<Bytes, OutputError> {
    let whole = whole(&outcome.stdout)?;
    if !whole.trim_ascii().is_empty() {
        return Ok(whole);
    }
    Err(OutputError(match outcome.stderr.total_bytes {
        0 => "stdout is empty".to_owned(),
        bytes => format!("stdout is empty, but stderr has {bytes} bytes"),
    }))
}

/// Parses an output that is one JSON value.
pub(super) fn parse_value(output: &[u8]) -> Result<&RawValue, OutputError> {
    let text = json_output(output)?;
    serde_json::from_str(text).map_err(|error| OutputError(error.to_string()))
}

/// Output that is one JSON object.
pub(super) struct OutputObject<'a> {
    members: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

impl<'a> OutputObject<'a> {
    pub(super) fn read(output: &'a [u8]) -> Result<Self, OutputError> {
        let value = parse_value(output)?;
        let members = serde_json::from_str(value.get()).map_err(|_| {
            OutputError(format!(
                "expected a JSON object, found `{}`",
                excerpt(value.get(), MAX_EXCERPT_CHARS)
            ))
        })?;
        Ok(Self { members })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Parses the member `name`, if it is present.
    pub(super) fn member<T: Deserialize<'a>>(&self, name: &str) -> Result<Option<T>, OutputError> {
        let Some(raw) = self.members.get(name) else {
            return Ok(None);
        };
        serde_json::from_str(raw.get()).map(Some).map_err(|error| {
            OutputError::at(name, json_terms(&without_position(&error)), raw.get())
        })
    }

    /// Parses the elements of the member `name`; `prepare` changes each before, `check` checks it
    /// afterwards.
    pub(super) fn elements<T: for<'de> Deserialize<'de>>(
        &self,
        name: &str,
        mut prepare: impl FnMut(&mut Value) -> Result<(), String>,
        check: impl Fn(&T) -> Result<(), String>,
    ) -> Result<Option<Vec<T>>, OutputError> {
        let Some(elements) = self.member::<Vec<Value>>(name)? else {
            return Ok(None);
        };
        let read = |(index, mut element): (usize, Value)| {
            prepare(&mut element)
                .and_then(|()| {
                    T::deserialize(&element).map_err(|error| json_terms(&error.to_string()))
                })
                .and_then(|read| check(&read).map(|()| read))
                .map_err(|what| {
                    OutputError::at(format_args!("{name}[{index}]"), what, &element.to_string())
                })
        };
        elements
            .into_iter()
            .enumerate()
            .map(read)
            .collect::<Result<_, _>>()
            .map(Some)
    }
}

/// Formats the error without its position, which counts from the beginning of the piece. The
/// author does not see the piece as a text.
pub(crate) fn without_position(error: &serde_json::Error) -> String {
    let position = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}

/// Translates a message of serde from Rust's terms into those of JSON.
pub(super) fn json_terms(message: &str) -> String {
    if let Some(rest) = message.strip_prefix("invalid type: ")
        && let Some((found, expected)) = rest.rsplit_once(", expected ")
    {
        let expected = match expected {
            "a sequence" => "an array",
            "a map" => "an object",
            other => other,
        };
        let found = match found {
            "sequence" => "an array".to_owned(),
            "map" => "an object".to_owned(),
            "null" => "`null`".to_owned(),
            other => format!("the {}", excerpt(other, MAX_EXCERPT_CHARS)),
        };
        return format!("expected {expected}, found {found}");
    }
    match message.strip_prefix("unknown variant ") {
        Some(rest) => rest.replacen("`, expected ", "` is unknown, expected ", 1),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_errors_use_terms_of_json() {
        for (said, expected) in [
            (
                r#"invalid type: string "a, expected b", expected a sequence"#,
                r#"expected an array, found the string "a, expected b""#,
            ),
            (
                "invalid type: map, expected a string",
                "expected a string, found an object",
            ),
            (
                "invalid type: null, expected a boolean",
                "expected a boolean, found `null`",
            ),
            (
                "invalid type: integer `7`, expected a map",
                "expected an object, found the integer `7`",
            ),
            (
                "unknown variant `txt`, expected `text` or `image`",
                "`txt` is unknown, expected `text` or `image`",
            ),
            ("missing field `text`", "missing field `text`"),
        ] {
            assert_eq!(json_terms(said), expected);
        }
    }
}
