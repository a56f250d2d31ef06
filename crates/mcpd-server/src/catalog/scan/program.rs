//! What is wrong with a program as its interpreter would see it, and where in the text that describes it. A fault in another
//! file than that says so, and has no place.

use std::borrow::Cow;
use std::ops::Range;

use mcpd_scriptspec::{Body, Diagnostic, Parsed, Severity};

use super::reading::{self, Description};
use crate::catalog::walk::Candidate;
use crate::interpreter::Check;

/// What `check` finds in the program that a description is about, or is a part of. Nothing if the program can't be read:
/// that is found elsewhere.
pub(super) fn faults(
    candidate: &Candidate,
    description: &Description,
    body: &Body,
    check: Check,
) -> Vec<Diagnostic> {
    let Ok(described) = str::from_utf8(&description.text) else {
        return Vec::new();
    };
    let (program, start) = match body {
        Body::Code { text, .. } => (Cow::Borrowed(text.as_str()), described.find(text)),
        _ if description.file == candidate.file => (Cow::Borrowed(described), Some(0)),
        _ => match reading::whole(&candidate.file).map(String::from_utf8) {
            Ok(Ok(program)) => (Cow::Owned(program), None),
            _ => return Vec::new(),
        },
    };
    let mut faults = check(&program, description.dialect);
    for fault in &mut faults {
        let span = &mut fault.location.span;
        if let Some(start) = start {
            *span = span.start + start..span.end + start;
        } else {
            let line = line(program.as_bytes(), span) + 1;
            fault.message = format!("line {line} of the program: {}", fault.message);
            *span = 0..0;
        }
    }
    faults
}

/// Whether something is known to be wrong on the same line: one fault is told once.
pub(super) fn is_known(fault: &Diagnostic, parsed: &Parsed, description: &Description) -> bool {
    let place = |fault: &Diagnostic| line(&description.text, &fault.location.span);
    let errors = parsed.diagnostics.iter();
    let mut errors = errors.filter(|known| known.severity == Severity::Error);
    !fault.location.span.is_empty() && errors.any(|known| place(known) == place(fault))
}

/// How many lines are before a place.
fn line(text: &[u8], span: &Range<usize>) -> usize {
    let before = &text[..span.start.min(text.len())];
    memchr::memchr_iter(b'\n', before).count()
}
