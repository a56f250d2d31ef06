//! Faults for machines: one array of objects, each with every field.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::finding::{Finding, Place};

impl Serialize for Finding<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Finding", 8)?;
        object.serialize_field("path", &self.path)?;
        object.serialize_field("file", &self.file.map(|file| file.to_string_lossy()))?;
        object.serialize_field("code", self.code)?;
        object.serialize_field("severity", &self.severity.to_string())?;
        object.serialize_field("message", &self.message)?;
        object.serialize_field(
            "stream",
            &self.place.as_ref().map(|place| place.stream.to_string()),
        )?;
        object.serialize_field("span", &self.place.as_ref().map(Span::of))?;
        object.serialize_field("help", &self.help)?;
        object.end()
    }
}

/// Place of a fault, as editors expect it.
#[derive(Debug, Serialize)]
struct Span {
    /// Bytes from the beginning of the output or file.
    start: usize,
    end: usize,
    /// Counted from 1.
    line: usize,
    /// In characters, counted from 1.
    column: usize,
}

impl Span {
    fn of(place: &Place<'_>) -> Self {
        let start = place.start();
        Self {
            start: place.span.start,
            end: place.span.end,
            line: start.line,
            column: start.column,
        }
    }
}
