//! `#MISE` comments: TOML keys with their values, each on one line or on several.

use toml::de::DeTable;

use super::{Draft, Node, Text, marked_text, report_unknown};
use crate::{
    dialect::{draft::Entry, toml_text},
    json::Span,
    rules::Code,
};

/// Keys about mise's actions before or around a task, which mcpd does not perform.
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

/// Keys about mise's scheduling and display of a task.
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

/// Maximum number of lines of one value.
const MAX_VALUE_LINES: usize = 100;

/// The description of the task, with the place of its key. Everything else is left to mise.
pub(super) fn read(source: &str, draft: &mut Draft) -> Option<(Span, Node)> {
    let mut description = None;
    let lines = comments(source);
    let mut rest = lines.as_slice();
    while let Some((first, _)) = rest.split_first() {
        let count = value_lines(source, rest);
        let text = match count {
            1 => source[first.clone()].to_owned(),
            _ => without_leaders(source, &rest[..count]),
        };
        let found = field(&text, first.start, draft);
        description = found.or(description);
        rest = &rest[count..];
    }
    description
}

/// The places of the comments' texts, without their leaders.
fn comments(source: &str) -> Vec<Span> {
    let mut comments = Vec::new();
    let mut start = 0;
    for line in source.split_inclusive('\n') {
        let end = start + line.trim_end().len();
        if let Some(text) = marked_text(line.trim_end(), "MISE") {
            comments.push(end - text.len()..end);
        }
        start += line.len();
    }
    comments
}

/// Number of lines of the first value: one, unless more of them form valid TOML and one does not.
fn value_lines(source: &str, lines: &[Span]) -> usize {
    let most = lines.len().min(MAX_VALUE_LINES);
    let is_toml = |count: &usize| {
        let text = without_leaders(source, &lines[..*count]);
        DeTable::parse(&text).is_ok()
    };
    (1..=most).find(is_toml).unwrap_or(1)
}

/// The lines as one text, with spaces in place of the leaders, so that all offsets stay the same.
fn without_leaders(source: &str, lines: &[Span]) -> String {
    let Some(first) = lines.first() else {
        return String::new();
    };
    let mut text = source[first.clone()].to_owned();
    for line in &lines[1..] {
        let end = first.start + text.len();
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', line.start - end - 1));
        text.push_str(&source[line.clone()]);
    }
    text
}

fn field(text: &str, start: usize, draft: &mut Draft) -> Option<(Span, Node)> {
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
                let message = format!("mcpd does not support `{name}`, unlike mise");
                draft.fault(Code::SourceUnsupported, key_span, message);
            }
            name if SKIPPED.contains(&name) => {}
            _ => {
                let known = ["description"].iter().chain(UNSUPPORTED).chain(SKIPPED);
                let key = Text {
                    text: key,
                    span: key_span,
                };
                report_unknown(&key, known, draft);
            }
        }
    }
    description
}
