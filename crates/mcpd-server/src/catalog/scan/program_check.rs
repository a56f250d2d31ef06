//! Faults that an interpreter finds in a program, with their place in the text that describes it.
//! A fault in another file has no place; its message says so.

use std::borrow::Cow;
use std::ops::Range;

use mcpd_scriptspec::dialect::Body;
use mcpd_scriptspec::{Diagnostic, Parsed, Severity};

use super::reading::{self, Description};
use crate::catalog::walk::Candidate;
use crate::script::interpreter::Check;

/// Returns the faults that `check` finds in the program that a description covers, or is part of.
/// Empty if the program is unreadable, which is reported elsewhere.
pub(super) fn faults(
    candidate: &Candidate,
    description: &Description,
    body: &Body,
    check: Check,
) -> Vec<Diagnostic> {
    let Ok(described) = str::from_utf8(&description.text) else {
        return Vec::new();
    };
    let programs = match body {
        Body::Code { variants, .. } => {
            let texts = variants.iter().map(|variant| variant.text.as_str());
            texts
                .map(|text| (Cow::Borrowed(text), described.find(text)))
                .collect()
        }
        _ if description.file == candidate.file => vec![(Cow::Borrowed(described), Some(0))],
        _ => match reading::read_whole(&candidate.file).map(String::from_utf8) {
            Ok(Ok(program)) => vec![(Cow::Owned(program), None)],
            _ => Vec::new(),
        },
    };
    let mut found: Vec<Diagnostic> = Vec::new();
    for (program, start) in programs {
        for mut fault in check(&program, description.dialect) {
            place(&mut fault, &program, start);
            // Variants of a program share most of their faults.
            if !found.contains(&fault) {
                found.push(fault);
            }
        }
    }
    found
}

/// Moves a fault to the program's position in the description, or puts its line into the message
/// if that position is unknown.
fn place(fault: &mut Diagnostic, program: &str, start: Option<usize>) {
    let span = &mut fault.location.span;
    if let Some(start) = start {
        *span = span.start + start..span.end + start;
    } else {
        let line = line(program.as_bytes(), span) + 1;
        fault.message = format!("line {line} of the program: {}", fault.message);
        *span = 0..0;
    }
}

/// Returns whether another error is known on the same line, so that one fault is reported once.
pub(super) fn is_reported(fault: &Diagnostic, parsed: &Parsed, description: &Description) -> bool {
    let place = |fault: &Diagnostic| line(&description.text, &fault.location.span);
    let errors = parsed.diagnostics.iter();
    let mut errors = errors.filter(|known| known.severity == Severity::Error);
    !fault.location.span.is_empty() && errors.any(|known| place(known) == place(fault))
}

/// Returns the number of lines before a place.
fn line(text: &[u8], span: &Range<usize>) -> usize {
    let before = &text[..span.start.min(text.len())];
    memchr::memchr_iter(b'\n', before).count()
}
