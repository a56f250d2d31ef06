//! `#MISE` comments: one TOML key with its value on each line.

use super::{Draft, Part, Text, marked, unknown};
use crate::{
    dialect::{draft::Entry, toml_text},
    json::Span,
    rules::Code,
};

/// What mise does before or around a task, and nobody does here.
const UNSUPPORTED: &[&str] = &[
    "depends",
    "depends_post",
    "wait_for",
    "dir",
    "env",
    "tools",
    "shell",
    "confirm",
    "timeout",
    "usage",
];

/// What only says when mise runs a task, and what it shows of it.
const SKIPPED: &[&str] = &[
    "alias",
    "aliases",
    "hide",
    "quiet",
    "silent",
    "raw",
    "interactive",
    "sources",
    "outputs",
    "extends",
    "file",
];

/// The description of the task, with the place of its key. Everything else is left to mise.
pub(super) fn read(source: &str, draft: &mut Draft) -> Option<(Span, Part)> {
    let mut description = None;
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        let end = start + line.trim_end().len();
        if let Some(text) = marked(line.trim_end(), "MISE") {
            let found = field(text, end - text.len(), draft);
            description = found.or(description);
        }
        start += line.len();
    }
    description
}

fn field(text: &str, start: usize, draft: &mut Draft) -> Option<(Span, Part)> {
    let place = |span: Span| span.start + start..span.end + start;
    let mut description = None;
    for Entry {
        key,
        key_span,
        value,
    } in toml_text::read(text, place, draft)?.into_entries()
    {
        match key.as_str() {
            "description" => description = Some((key_span, value)),
            name if UNSUPPORTED.contains(&name) => {
                let message = format!("mise applies `{name}`, and mcpd does not");
                draft.fault(Code::SourceUnsupported, key_span, message);
            }
            name if SKIPPED.contains(&name) => {}
            _ => {
                let known = ["description"].iter().chain(UNSUPPORTED).chain(SKIPPED);
                let key = Text {
                    text: key,
                    span: key_span,
                };
                unknown(&key, known, draft);
            }
        }
    }
    description
}
