//! Lines of help texts and manual pages, with their places.

use std::{borrow::Cow, collections::BTreeMap, ops::Range};

/// Signs before the items of a list.
const BULLETS: &[char] = &['○', '•', '·', '◦', '▪'];

/// A line without its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'t> {
    pub(super) text: &'t str,
    pub(super) start: usize,
}

impl<'t> Line<'t> {
    pub(super) fn trimmed(self) -> &'t str {
        self.text.trim()
    }

    pub(super) fn indent(self) -> usize {
        self.text.len() - self.text.trim_start().len()
    }

    pub(super) fn span(self) -> Range<usize> {
        let start = self.start + self.indent();
        start..start + self.trimmed().len()
    }

    /// Returns whether this is the first line of a manual page: `JQ(1)   General Commands   JQ(1)`.
    pub(super) fn is_page_header(self) -> bool {
        let mut words = self.text.split_whitespace();
        let (first, last) = (words.next(), words.next_back());
        let is_page = |word: &str| {
            let section = word.split_once('(').map_or("", |(_, section)| section);
            section.starts_with(|first: char| first.is_ascii_digit()) && section.ends_with(')')
        };
        self.indent() == 0 && first == last && first.is_some_and(is_page)
    }
}

/// Splits a text into its lines.
pub(super) fn split(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let line_start = start;
        start += line.len();
        Line {
            text: line.trim_end(),
            start: line_start,
        }
    });
    lines.collect()
}

/// The text with flags in place of the bullets before them. Lines keep their length in bytes, so
/// that the places of all other lines stay.
pub(super) fn without_bullets(text: &str) -> Cow<'_, str> {
    if !text.contains(BULLETS) {
        return Cow::Borrowed(text);
    }
    let lines = text.split_inclusive('\n').map(|line| {
        let Some((before, rest)) = line.split_once(BULLETS) else {
            return line.to_owned();
        };
        if !before.trim().is_empty() || !rest.trim_start().starts_with('-') {
            return line.to_owned();
        }
        let body = rest.trim();
        let lost = line.trim_end().len() - before.len() - body.len();
        let end = &rest[rest.trim_end().len()..];
        format!("{before}{body}{:lost$}{end}", "")
    });
    Cow::Owned(lines.collect())
}

/// Offsets at which descriptions of flags often begin.
pub(super) fn description_columns(lines: &[Line<'_>]) -> Vec<usize> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.trimmed().starts_with('-')) {
        let indent = line.indent();
        let body = &line.text[indent..];
        let gap = body.find("  ");
        // The second column of pandoc has the long spellings.
        if let Some(gap) = gap.filter(|gap| !body[*gap..].trim_start().starts_with("--")) {
            let column = indent + gap + body[gap..].len() - body[gap..].trim_start().len();
            *counts.entry(column).or_default() += 1;
        }
    }
    let all: usize = counts.values().sum();
    let is_usual = |count: usize| count >= 2 && count * 8 >= all;
    let usual = counts.into_iter().filter(|(_, count)| is_usual(*count));
    usual.map(|(column, _)| column).collect()
}
