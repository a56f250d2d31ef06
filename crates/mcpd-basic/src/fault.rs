//! Faults of a program, for people: the line, the place in it, and advice.

use std::fmt;
use std::ops::Range;

use crate::error::{Error, Span};

/// Maximum length of a quoted line, in characters.
const MAX_QUOTE_LENGTH: usize = 100;

/// Fault of a program, found at compile time or at run time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
#[non_exhaustive]
pub struct Fault {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// Bytes of the program that it refers to.
    pub span: Range<usize>,
    /// Description of the fault.
    pub message: String,
    /// Advice.
    pub help: Option<String>,
    quote: Quote,
}

/// Quoted part of the line, and the marked part of it; both in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Quote {
    text: String,
    indent: usize,
    width: usize,
}

impl Fault {
    pub(crate) fn new(error: Error, source: &str) -> Self {
        let span = error.span.unwrap_or_default();
        let start = source.floor_char_boundary(span.start);
        let before = source.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(line_start..).unwrap_or_default().chars().count();
        Self {
            line: before.matches('\n').count() + 1,
            column: column + 1,
            message: error.message,
            help: error.help,
            quote: Quote::new(source, line_start, column, &span),
            span,
        }
    }

    /// Makes a fault that another component found at these bytes of a program.
    #[must_use]
    pub fn at(source: &str, span: Range<usize>, message: String, help: Option<String>) -> Self {
        let error = Error {
            span: Some(span),
            message,
            help,
        };
        Self::new(error, source)
    }

    /// Renders the fault as several lines of text, including the line of the program.
    #[must_use]
    pub fn report(&self, file: &str) -> String {
        Report { fault: self, file }.to_string()
    }
}

impl Quote {
    fn new(source: &str, line_start: usize, column: usize, span: &Span) -> Self {
        let line = source.get(line_start..).unwrap_or_default();
        let line = line.lines().next().unwrap_or_default();
        let skipped = column.saturating_sub(MAX_QUOTE_LENGTH / 2);
        let text: String = line
            .chars()
            .skip(skipped)
            .take(MAX_QUOTE_LENGTH)
            .map(|char| if char.is_control() { ' ' } else { char })
            .collect();
        let indent = column - skipped;
        let marked = source.get(span.clone()).unwrap_or_default();
        let marked = marked.lines().next().unwrap_or_default().chars().count();
        let room = text.chars().count().saturating_sub(indent);
        Self {
            text: text.trim_end().to_owned(),
            indent,
            width: marked.min(room).max(1),
        }
    }
}

struct Report<'a> {
    fault: &'a Fault,
    file: &'a str,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault {
            line,
            column,
            message,
            help,
            quote,
            ..
        } = self.fault;
        writeln!(f, "{}:{line}:{column}: {message}", self.file)?;
        if !quote.text.is_empty() {
            // No blank before the bar: log readers trim it, and the mark would be displaced.
            let (indent, width) = (quote.indent, quote.width);
            writeln!(f, "| {}", quote.text)?;
            writeln!(f, "| {:indent$}{:^<width$}", "", "")?;
        }
        if let Some(help) = help {
            writeln!(f, "help: {help}")?;
        }
        Ok(())
    }
}
