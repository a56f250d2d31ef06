//! Headers: TOML in the comments of a program, between a line `# /// mcpd` and a line `# ///`, in the fields of a sidecar.
//! In a block `# /// script`, as Python programs have it (PEP 723), the table `[tool.mcpd]` is the same.

use toml::de::DeTable;

use super::{
    draft::{Draft, Literal, Node},
    sidecar, toml_text,
};
use crate::{json::Span, parse::Parsed, rules::Code};

/// What comments begin with, in languages that people write scripts in.
const LEADERS: &[&str] = &["#", "//", "--", ";", ";;", "%", "'", "::", "REM", "rem"];

/// Whether the bytes hold a header, whatever may be wrong with it.
pub(super) fn is_in(source: &[u8]) -> bool {
    // Cheaper than blocks, and true of few files.
    let is_mark = |line: &[u8]| line.windows(5).any(|word| word == b" /// ");
    source.split(|byte| *byte == b'\n').any(is_mark)
        && !blocks(&String::from_utf8_lossy(source)).is_empty()
}

pub(super) fn read(source: &str) -> Parsed {
    let mut blocks = blocks(source).into_iter();
    let Some(block) = blocks.next() else {
        return Draft::new(0..0).finish();
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
        Kind::Mcpd => fields,
        Kind::Script => fields.and_then(|fields| member(member(fields, "tool")?, "mcpd")),
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
enum Kind {
    Mcpd,
    /// Of Python's tools; ours if it has a table for us.
    Script,
}

/// A header.
struct Block<'a> {
    kind: Kind,
    leader: &'a str,
    /// The first line.
    opening: Span,
    content: Content,
    /// What stands in place of its last line, if there is none.
    broken_at: Option<Span>,
}

impl Block<'_> {
    /// Takes the lines up to the last one, each with its place.
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

/// The lines of a header without what makes comments of them, and the way back.
#[derive(Default)]
struct Content {
    text: String,
    /// Where each line begins, here and in the source.
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
        let line = self.lines.partition_point(|(start, _)| *start <= at);
        let line = line.checked_sub(1).and_then(|line| self.lines.get(line));
        line.map_or(0, |(start, source)| source + (at - start))
    }
}

fn blocks(source: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut start = 0;
    let mut lines = source.split_inclusive('\n').map(|line| {
        let place = start;
        start += line.len();
        (place, line.trim_end_matches(['\r', '\n']))
    });
    while let Some((place, line)) = lines.next() {
        let Some((kind, leader)) = opening(line) else {
            continue;
        };
        let mut block = Block {
            kind,
            leader,
            opening: place..place + line.len(),
            content: Content::default(),
            broken_at: Some(source.len()..source.len()),
        };
        block.read(&mut lines);
        if kind == Kind::Mcpd || has_our_table(&block.content.text) {
            blocks.push(block);
        }
    }
    blocks
}

fn opening(line: &str) -> Option<(Kind, &str)> {
    let (leader, kind) = line.trim_end().split_once(" /// ")?;
    let kind = match kind {
        "mcpd" => Kind::Mcpd,
        "script" => Kind::Script,
        _ => return None,
    };
    LEADERS.contains(&leader).then_some((kind, leader))
}

/// What a line has after its leader: one space and anything, or nothing at all.
fn content(rest: &str) -> Option<&str> {
    match rest.strip_prefix(' ') {
        Some(rest) => Some(rest),
        None => rest.trim_end().is_empty().then_some(""),
    }
}

/// Of a text that can't be read, its lines must tell.
fn has_our_table(text: &str) -> bool {
    match DeTable::parse(text) {
        Ok(table) => {
            let tool = table.get_ref().get("tool").map(|tool| tool.get_ref());
            tool.and_then(|tool| tool.get("mcpd")).is_some()
        }
        Err(_) => text.lines().any(|line| line.starts_with("[tool.mcpd")),
    }
}
