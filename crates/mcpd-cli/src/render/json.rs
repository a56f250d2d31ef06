//! Faults for machines: one array of objects, each with every field.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::{Finding, Place};

impl Serialize for Finding<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Finding", 8)?;
        object.serialize_field("path", &self.path)?;
        object.serialize_field("file", &self.file.map(|file| file.to_string_lossy()))?;
        object.serialize_field("code", self.code)?;
        object.serialize_field("severity", &self.severity.to_string())?;
        object.serialize_field("message", self.message)?;
        object.serialize_field(
            "stream",
            &self.place.as_ref().map(|place| place.stream.to_string()),
        )?;
        object.serialize_field("span", &self.place.as_ref().map(Span::of))?;
        object.serialize_field("help", &self.help)?;
        object.end()
    }
}

/// A place as editors want it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Span {
    /// Bytes from the beginning of the output.
    start: usize,
    end: usize,
    /// Counted from 1.
    line: usize,
    /// In characters, counted from 1.
    column: usize,
}

impl Span {
    fn of(place: &Place<'_>) -> Self {
        let before = String::from_utf8_lossy(&place.text[..place.span.start]);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self {
            start: place.span.start,
            end: place.span.end,
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use mcpd_scriptspec::Stream;

    use super::*;

    #[track_caller]
    fn check(text: &str, span: std::ops::Range<usize>, line: usize, column: usize) {
        let place = Place {
            stream: Stream::Stdout,
            text: text.as_bytes(),
            span: span.clone(),
        };
        assert_eq!(
            Span::of(&place),
            Span {
                start: span.start,
                end: span.end,
                line,
                column
            }
        );
    }

    #[test]
    fn lines_and_characters_count_from_one() {
        check("{}", 0..2, 1, 1);
        check("{\n\"größe\": x}", 12..13, 2, 9);
        check("{\n", 2..2, 2, 1);
    }
}
