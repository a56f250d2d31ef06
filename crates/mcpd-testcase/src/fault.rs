//! Faults of a file with cases, each with its place.

use std::fmt::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use mcpd_scriptspec::suggest;
use serde::Serialize;

/// Fault of a file with cases. It is displayed as `path:line:column: message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Fault {
    /// File with the fault.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Description of the fault and its remedy, as a fragment.
    pub message: String,
}

impl Fault {
    /// Makes a fault at a range of bytes in `text`.
    pub(crate) fn at(file: &Path, text: &str, span: Range<usize>, message: String) -> Self {
        let before = text.get(..span.start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
        }
    }

    /// Makes a fault of the whole file.
    pub(crate) fn of_file(file: &Path, message: impl Into<String>) -> Self {
        Self::at(file, "", 0..0, message.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            line,
            column,
            message,
        } = self;
        write!(f, "{}:{line}:{column}: {message}", file.display())
    }
}

impl std::error::Error for Fault {}

/// Renders faults, one per line.
#[must_use]
pub fn render_faults(faults: &[Fault]) -> String {
    faults.iter().fold(String::new(), |mut text, fault| {
        writeln!(text, "{fault}").expect("a string takes everything");
        text
    })
}

/// Suggestion of a known name after a fault, if one is similar to `given`.
pub(crate) fn suggestion<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match suggest(given, known) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    }
}
