//! JSON output of a script under the contract: one value, parsed as strictly as its help.

use std::{fmt, ops::Range};

use crate::{json, text};

/// Maximum length of the excerpt in a fault, in characters.
const MAX_EXCERPT: usize = 80;

/// Reason why an output is not one strict JSON value.
///
/// Displayed, it is a fragment: ``line 2, column 7: expected `,` or `}`, found
/// `"b"`, in `{"a": 1 "b": 2}` ``.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputFault {
    /// Byte range in the output.
    pub span: Range<usize>,
    /// The line of the fault, from 1.
    pub line: usize,
    /// The character in that line, from 1.
    pub column: usize,
    /// The fault, as a fragment.
    pub message: String,
    /// The output around the fault.
    pub excerpt: String,
}

impl OutputFault {
    fn new(text: &str, span: Range<usize>, message: String) -> Self {
        let before = &text[..text.floor_char_boundary(span.start)];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let excerpt_start = before.floor_char_boundary(span.start.saturating_sub(MAX_EXCERPT / 2));
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            excerpt: text::excerpt(
                text[line_start.max(excerpt_start)..].trim_end(),
                MAX_EXCERPT,
            ),
            span,
            message,
        }
    }
}

impl fmt::Display for OutputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            column,
            message,
            excerpt,
            ..
        } = self;
        write!(f, "line {line}, column {column}: {message}")?;
        if excerpt.is_empty() {
            Ok(())
        } else {
            write!(f, ", in `{excerpt}`")
        }
    }
}

impl std::error::Error for OutputFault {}

/// Checks that `output` is one JSON value, and returns its text without surrounding whitespace.
///
/// # Errors
///
/// The first fault: not UTF-8, not JSON, more than one value, nested too deep, or a duplicate key.
pub fn json_output(output: &[u8]) -> Result<&str, OutputFault> {
    let text = std::str::from_utf8(output).map_err(|error| {
        let start = error.valid_up_to();
        let end = start + error.error_len().unwrap_or(output.len() - start);
        let message = "a byte that is not UTF-8".to_owned();
        OutputFault::new(&String::from_utf8_lossy(output), start..end, message)
    })?;
    let document =
        json::read(text, 0).map_err(|error| OutputFault::new(text, error.span, error.message))?;
    match document.duplicates.into_iter().next() {
        Some(duplicate) => {
            let message = format!("the duplicate key {}", text::name(&duplicate.key));
            Err(OutputFault::new(text, duplicate.span, message))
        }
        None => Ok(document.root.text()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &[u8], expected: Result<&str, &str>) {
        let read = json_output(output).map_err(|fault| fault.to_string());
        assert_eq!(read, expected.map_err(str::to_owned));
    }

    #[test]
    fn json_output_keeps_the_text_of_the_value() {
        check(b" {\"a\": [1.0, 1e400]}\n", Ok("{\"a\": [1.0, 1e400]}"));
        check(b"null", Ok("null"));
    }

    #[test]
    fn output_fault_has_a_place_and_an_excerpt() {
        check(
            b"",
            Err("line 1, column 1: expected a JSON value, found the end of the text"),
        );
        check(
            "{\n \"a\": 1,\n \"ü\": 2 3}".as_bytes(),
            Err("line 3, column 9: expected `,` or `}`, found `3`, in ` \"ü\": 2 3}`"),
        );
        check(
            br#"{"a": {"b": 1, "b": 2}}"#,
            Err(r#"line 1, column 16: the duplicate key `b`, in `{"a": {"b": 1, "b": 2}}`"#),
        );
        check(
            b"{} {}",
            Err("line 1, column 4: `{` after the end of the JSON value, in `{} {}`"),
        );
        check(
            b"{\"a\": \"\xff\"}",
            Err("line 1, column 8: a byte that is not UTF-8, in `{\"a\": \"\u{fffd}\"}`"),
        );
    }
}
