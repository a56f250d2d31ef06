//! Headers: TOML in the comments of a program, between a line `# /// mcpd` and a line `# ///`,
//! with the fields of a sidecar. In a block `# /// script` of a Python program (PEP 723), the
//! table `[tool.mcpd]` is equivalent.

use toml::de::DeTable;

use super::{
    draft::{Draft, Literal, Node},
    sidecar, toml_text,
};
use crate::{edit::Edit, json::Span, parse::Parsed, rules::Code};

/// Comment leaders of scripting languages.
const LEADERS: &[&str] = &["#", "//", "--", ";", ";;", "%", "'", "::", "REM", "rem"];

/// Byte order mark, with which some editors start files.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Returns whether the bytes contain a header, valid or not.
pub(super) fn is_in(source: &[u8]) -> bool {
    // A cheap test before the search for blocks; few files pass it.
    let is_mark = |line: &[u8]| line.windows(5).any(|word| word == b" /// ");
    source.split(|byte| *byte == b'\n').any(is_mark)
        && !blocks(&String::from_utf8_lossy(source)).is_empty()
}

/// Maximum line number of a misspelt opening line: further down it is an example.
const MAX_OPENING_LINES: usize = 20;

/// Returns whether the bytes contain a misspelt header: without this check, such a program would
/// be probed and run.
pub(super) fn is_misspelt(source: &[u8]) -> bool {
    const MAX_BYTES: usize = 4096;
    let start = &source[..source.len().min(MAX_BYTES)];
    slip(&String::from_utf8_lossy(start)).is_some()
}

/// A misspelt opening line, and its leader.
fn slip(source: &str) -> Option<(Span, &'static str)> {
    let mut is_below_code = false;
    for (place, line) in lines(source).take(MAX_OPENING_LINES) {
        let text = line.trim_start_matches(BYTE_ORDER_MARK).trim();
        let is_indented = line.starts_with([' ', '\t']);
        // An indented line below code may be part of a text.
        if !(is_indented && is_below_code)
            && let Some(leader) = near_opening(text)
        {
            return Some((place..place + line.len(), leader));
        }
        let is_comment = LEADERS.iter().any(|leader| text.starts_with(leader));
        is_below_code |= !text.is_empty() && !is_comment;
    }
    None
}

/// The leader of a comment that consists of slashes and mcpd's name, such as `#/// mcpd`.
fn near_opening(line: &str) -> Option<&'static str> {
    let (comment, word) = line.split_at(line.rfind('/')? + 1);
    let is_name = |name: &&str| word.trim_start().eq_ignore_ascii_case(name);
    let slashes = comment.matches('/').count();
    if slashes < 2 || !["mcpd", "mcpd.toml"].iter().any(is_name) {
        return None;
    }
    LEADERS.iter().copied().find(|leader| {
        let rest = comment
            .strip_prefix(leader)
            .unwrap_or_default()
            .trim_start();
        !rest.is_empty() && rest.bytes().all(|byte| byte == b'/')
    })
}

pub(super) fn read(source: &str) -> Parsed {
    let mut blocks = blocks(source).into_iter();
    let Some(block) = blocks.next() else {
        let mut draft = Draft::new(0..0);
        let Some((place, leader)) = slip(source) else {
            return draft.finish();
        };
        let message = "a comment that resembles the first line of a header";
        let mark = source[place.clone()].starts_with(BYTE_ORDER_MARK);
        let start = place.start + if mark { BYTE_ORDER_MARK.len_utf8() } else { 0 };
        let edit = Edit::new(start..place.end, format!("{leader} /// mcpd"));
        let fault = draft.fault(Code::SourceSyntax, place, message);
        fault.help = Some(format!(
            "write `{leader} /// mcpd` at the beginning of the line"
        ));
        fault.edits = vec![edit];
        return draft.refuse();
    };
    let mut draft = Draft::new(block.opening.clone());
    for other in blocks {
        draft.fault(Code::SourceSyntax, other.opening, "a second header");
    }
    if let Some(place) = block.broken_at {
        let leader = block.leader;
        let message = format!("expected `{leader} ///`, or a line of the header after `{leader} `");
        draft.fault(Code::SourceSyntax, place, message);
        return draft.refuse();
    }
    let place = |span| block.content.place(span);
    let fields = toml_text::read(&block.content.text, place, &mut draft);
    let fields = match block.kind {
        HeaderKind::Mcpd => fields,
        HeaderKind::Script => fields.and_then(|fields| member(member(fields, "tool")?, "mcpd")),
    };
    sidecar::finish(draft, fields)
}

fn member(object: Node, key: &str) -> Option<Node> {
    let Literal::Object(entries) = object.value else {
        return None;
    };
    let entry = entries.into_iter().find(|entry| entry.key == key)?;
    Some(entry.value)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HeaderKind {
    Mcpd,
    /// A header of Python tools; relevant if it has a table for mcpd.
    Script,
}

/// A header block.
struct HeaderBlock<'a> {
    kind: HeaderKind,
    leader: &'a str,
    /// The first line.
    opening: Span,
    content: Content,
    /// Place where the closing line is missing.
    broken_at: Option<Span>,
}

impl HeaderBlock<'_> {
    /// Reads the lines up to the closing one, each with its place.
    fn read<'a>(&mut self, lines: impl Iterator<Item = (usize, &'a str)>) {
        for (place, line) in lines {
            let rest = line.strip_prefix(self.leader);
            if rest.is_some_and(|rest| rest.trim_end() == " ///") {
                self.broken_at = None;
                return;
            }
            let Some(content) = rest.and_then(content) else {
                self.broken_at = Some(place..place + line.len());
                return;
            };
            let start = place + line.len() - content.len();
            self.content.push(content, start);
        }
    }
}

/// The lines of a header without comment leaders, with the mapping back to the source.
#[derive(Default)]
struct Content {
    text: String,
    /// Start of each line, in this text and in the source.
    lines: Vec<(usize, usize)>,
}

impl Content {
    fn push(&mut self, line: &str, start: usize) {
        self.lines.push((self.text.len(), start));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn place(&self, span: Span) -> Span {
        let start = self.place_of(span.start);
        let end = match span.end.checked_sub(1).filter(|_| !span.is_empty()) {
            Some(last) => self.place_of(last) + 1,
            None => start,
        };
        start..end
    }

    fn place_of(&self, at: usize) -> usize {
        place_of(&self.lines, at)
    }
}

/// The place in the source of a byte of the content, from the starts of the lines in both.
fn place_of(lines: &[(usize, usize)], at: usize) -> usize {
    let line = lines.partition_point(|(start, _)| *start <= at);
    let line = line.checked_sub(1).and_then(|line| lines.get(line));
    line.map_or(0, |(start, source)| source + (at - start))
}

/// The lines without their ends, each with its place.
fn lines(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    source.split_inclusive('\n').map(move |line| {
        let place = start;
        start += line.len();
        (place, line.trim_end_matches(['\r', '\n']))
    })
}

fn blocks(source: &str) -> Vec<HeaderBlock<'_>> {
    let mut blocks = Vec::new();
    let mut lines = lines(source);
    while let Some((place, line)) = lines.next() {
        let Some((kind, leader)) = parse_opening(line) else {
            continue;
        };
        let mut block = HeaderBlock {
            kind,
            leader,
            opening: place..place + line.len(),
            content: Content::default(),
            broken_at: Some(source.len()..source.len()),
        };
        block.read(&mut lines);
        if kind == HeaderKind::Mcpd || has_our_table(&block.content.text) {
            blocks.push(block);
        }
    }
    blocks
}

fn parse_opening(line: &str) -> Option<(HeaderKind, &str)> {
    let line = line.trim_start_matches(BYTE_ORDER_MARK).trim_end();
    let (leader, kind) = line.split_once(" /// ")?;
    let kind = match kind {
        "mcpd" => HeaderKind::Mcpd,
        "script" => HeaderKind::Script,
        _ => return None,
    };
    LEADERS.contains(&leader).then_some((kind, leader))
}

/// The content of a line after its leader: one space and anything, or nothing at all.
fn content(rest: &str) -> Option<&str> {
    match rest.strip_prefix(' ') {
        Some(rest) => Some(rest),
        None => rest.trim_end().is_empty().then_some(""),
    }
}

/// The first header of a program as TOML, without the comment leaders of its lines: what an editor
/// completes while it is typed, closed or not.
#[derive(Debug)]
pub struct HeaderText {
    toml: String,
    /// Start of each line, in the TOML and in the program.
    lines: Vec<(usize, usize)>,
    table: &'static [&'static str],
}

impl HeaderText {
    /// Finds the header of a program.
    #[must_use]
    pub fn find(source: &str) -> Option<Self> {
        let block = blocks(source).into_iter().next()?;
        let table: &[&str] = match block.kind {
            HeaderKind::Mcpd => &[],
            HeaderKind::Script => &["tool", "mcpd"],
        };
        Some(Self {
            toml: block.content.text,
            lines: block.content.lines,
            table,
        })
    }

    /// The text of the header, each line with its end.
    #[must_use]
    pub fn toml(&self) -> &str {
        &self.toml
    }

    /// Path of the table with the fields of a sidecar: none, or `tool.mcpd`.
    #[must_use]
    pub fn table(&self) -> &[&'static str] {
        self.table
    }

    /// The byte of the program for a byte of the TOML.
    #[must_use]
    pub fn to_source(&self, at: usize) -> usize {
        place_of(&self.lines, at)
    }

    /// The byte of the TOML for a byte of the program; none outside of the header and in the
    /// comment leaders.
    #[must_use]
    pub fn from_source(&self, at: usize) -> Option<usize> {
        let line = self.lines.partition_point(|(_, source)| *source <= at);
        let (start, source) = *self.lines.get(line.checked_sub(1)?)?;
        let rest = self.toml.get(start..)?;
        let length = rest.find('\n').unwrap_or(rest.len());
        (at - source <= length).then_some(start + (at - source))
    }
}

/// Returns whether the TOML has a table for mcpd; if it is malformed, its lines decide.
fn has_our_table(text: &str) -> bool {
    match DeTable::parse(text) {
        Ok(table) => {
            let tool = table.get_ref().get("tool").map(|tool| tool.get_ref());
            tool.and_then(|tool| tool.get("mcpd")).is_some()
        }
        Err(_) => text.lines().any(|line| line.starts_with("[tool.mcpd")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: Option<&str>) {
        let dialect = is_in(source.as_bytes()) || is_misspelt(source.as_bytes());
        let found = slip(source).map(|(_, leader)| leader);
        assert_eq!((dialect, found), (expected.is_some(), expected), "{source}");
    }

    #[test]
    fn misspelt_header_differs_from_other_comments() {
        for (source, leader) in [
            ("#!/bin/sh\n#/// mcpd\n", "#"),
            ("# ///mcpd\r\n", "#"),
            ("#  /// MCPD", "#"),
            ("# // mcpd", "#"),
            ("# //// mcpd.toml", "#"),
            ("\u{feff}#/// mcpd", "#"),
            ("\n  # /// mcpd", "#"),
            ("/// mcpd", "//"),
            (";;/// mcpd", ";;"),
            ("<?php\n// ///  mcpd", "//"),
        ] {
            check(source, Some(leader));
        }
        for source in [
            "# mcpd",
            "// mcpd",
            "# / mcpd",
            "# /// mcpdd",
            "# /// for mcpd",
            "# https://mcpd",
            "# see docs//mcpd.toml",
            "//",
            "echo <<END\n  # /// mcpd",
        ] {
            check(source, None);
        }
        check(
            &format!("{}#/// mcpd", "\n".repeat(MAX_OPENING_LINES)),
            None,
        );
    }
}
