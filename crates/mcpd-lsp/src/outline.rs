//! Outline of a TOML or JSON document that may be broken: its keys with their places, and the slot
//! that the cursor is in.

use std::ops::Range;

use crate::{json, toml};

/// Maximum nesting that is followed.
pub(crate) const MAX_DEPTH: usize = 64;

/// Part of a path in a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Segment {
    Key(String),
    Index(usize),
}

/// Format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Toml,
    Json,
}

/// Kind of what is expected at the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A key of an object.
    Key,
    /// A key in the name of a table, between brackets.
    Table,
    Value,
}

/// The token at the cursor, and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) slot: Slot,
    /// Path of the object of a key, or of the value.
    pub(crate) path: Vec<Segment>,
    /// Bytes of the token without its quotes; empty where there is none yet.
    pub(crate) token: Range<usize>,
    pub(crate) is_quoted: bool,
    /// The key is on a line of its own in TOML, outside of values.
    pub(crate) is_statement: bool,
}

/// A key of an object in the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyPlace {
    /// Path of the object.
    pub(crate) path: Vec<Segment>,
    pub(crate) key: String,
    pub(crate) span: Range<usize>,
}

/// Findings of a scan of a document.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) keys: Vec<KeyPlace>,
    pub(crate) cursor: Option<Cursor>,
    /// Byte of the cursor.
    at: usize,
    /// Tokens are keys at the beginning of a line, and not parts of a value.
    pub(crate) is_statement: bool,
}

impl Outline {
    /// Scans a document for its keys and what is at the byte `at`.
    pub(crate) fn of(format: Format, text: &str, at: usize) -> Self {
        let mut outline = Self {
            at,
            ..Self::default()
        };
        match format {
            Format::Toml => toml::scan(text, &mut outline),
            Format::Json => json::scan(text, &mut outline),
        }
        outline
    }

    /// Notes a token, which the cursor may be in or at the end of.
    pub(crate) fn note(
        &mut self,
        slot: Slot,
        path: &[Segment],
        token: Range<usize>,
        is_quoted: bool,
    ) {
        let is_at = token.start <= self.at && self.at <= token.end;
        // A word is nearer to the cursor than the blank before it.
        let is_better = |before: &Cursor| before.token.is_empty() && !token.is_empty();
        if is_at && self.cursor.as_ref().is_none_or(is_better) {
            self.cursor = Some(Cursor {
                slot,
                path: path.to_vec(),
                token,
                is_quoted,
                is_statement: self.is_statement,
            });
        }
    }

    /// Notes a blank in which a token could be.
    pub(crate) fn note_blank(&mut self, slot: Slot, path: &[Segment], blank: Range<usize>) {
        if blank.start <= self.at && self.at <= blank.end {
            self.note(slot, path, self.at..self.at, false);
        }
    }

    /// Forgets what was noted at the cursor if that is in `range`, such as a comment.
    pub(crate) fn exclude(&mut self, range: Range<usize>) {
        if range.start < self.at && self.at <= range.end {
            self.cursor = None;
            // Nothing that follows is at the cursor.
            self.at = usize::MAX;
        }
    }

    pub(crate) fn add_key(&mut self, path: &[Segment], key: &str, span: Range<usize>) {
        self.keys.push(KeyPlace {
            path: path.to_vec(),
            key: key.to_owned(),
            span,
        });
    }

    /// Keys of the object at `path`, except the one at `token`.
    pub(crate) fn keys_of<'a>(
        &'a self,
        path: &'a [Segment],
        token: &'a Range<usize>,
    ) -> impl Iterator<Item = &'a str> {
        let others = self.keys.iter().filter(move |place| place.path == path);
        others
            .filter(move |place| place.span.end < token.start || token.end < place.span.start)
            .map(|place| place.key.as_str())
    }
}
