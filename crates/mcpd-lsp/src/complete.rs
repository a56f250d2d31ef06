//! Completion and hover: keys that a document may still have, values that its schema lists, and
//! their descriptions.

use std::ops::Range;

use serde_json::Value;

use crate::outline::{Cursor, Format, Outline, Segment, Slot};
use crate::schema::Schema;

/// A word for the place of the cursor.
#[derive(Debug, PartialEq)]
pub(crate) struct Completion {
    pub(crate) label: String,
    pub(crate) kind: Kind,
    pub(crate) description: Option<String>,
    /// Replaced bytes of the document.
    pub(crate) span: Range<usize>,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Key,
    Table,
    Value,
}

/// A part of a file in a format, with its schema: the file itself, or the header of a script.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    pub(crate) text: &'a str,
    pub(crate) format: Format,
    pub(crate) schema: &'a Schema,
    /// Path of the table that the schema describes.
    pub(crate) table: &'a [&'static str],
}

impl Part<'_> {
    /// Returns the outline, and the path of the cursor below the described table.
    fn outline(&self, at: usize) -> Option<(Outline, Cursor, Vec<Segment>)> {
        let outline = Outline::of(self.format, self.text, at);
        let cursor = outline.cursor.clone()?;
        let mut path = cursor.path.iter();
        for name in self.table {
            let is_same = path.next() == Some(&Segment::Key((*name).to_owned()));
            is_same.then_some(())?;
        }
        let below = path.cloned().collect();
        Some((outline, cursor, below))
    }

    /// Returns the words that fit at a byte.
    pub(crate) fn complete(&self, at: usize) -> Vec<Completion> {
        let Some((outline, cursor, path)) = self.outline(at) else {
            return Vec::new();
        };
        match cursor.slot {
            Slot::Value => self.values(&cursor, &path),
            Slot::Key | Slot::Table => {
                let present: Vec<_> = outline.keys_of(&cursor.path, &cursor.token).collect();
                let keys = self.schema.keys(&path).into_iter();
                let absent =
                    keys.filter(|key| cursor.slot == Slot::Table || !present.contains(key));
                absent
                    .filter_map(|key| self.key(&cursor, &path, key))
                    .collect()
            }
        }
    }

    fn key(&self, cursor: &Cursor, path: &[Segment], key: &str) -> Option<Completion> {
        let inner = join(path, key);
        let is_table = self.schema.is_object(&inner) || self.schema.is_array_of_objects(&inner);
        let is_list = self.schema.is_array_of_objects(&inner);
        let is_top = cursor
            .path
            .iter()
            .all(|segment| matches!(segment, Segment::Key(_)));
        let follows_equals =
            self.text[cursor.token.end..].trim_start_matches(['"', '\'', ' ', '\t']);
        let (text, span) = match (self.format, cursor.slot) {
            (_, Slot::Table) if !is_table => return None,
            // A rename: the value is there already.
            _ if follows_equals.starts_with(['=', ':', '.']) || cursor.slot == Slot::Table => {
                (key.to_owned(), cursor.token.clone())
            }
            (Format::Json, _) => {
                let colon = if cursor.is_quoted { "" } else { ": " };
                (format!("\"{key}\"{colon}"), with_quotes(self.text, cursor))
            }
            // A table of its own, below the tables of the path.
            _ if is_table && is_top && cursor.is_statement && !cursor.is_quoted => {
                let names = cursor.path.iter().filter_map(|segment| match segment {
                    Segment::Key(name) => Some(bare_or_quoted(name)),
                    Segment::Index(_) => None,
                });
                let names: Vec<_> = names.chain([key.to_owned()]).collect();
                let name = names.join(".");
                let header = if is_list {
                    format!("[[{name}]]")
                } else {
                    format!("[{name}]")
                };
                (header, cursor.token.clone())
            }
            _ => (format!("{key} = "), with_quotes(self.text, cursor)),
        };
        Some(Completion {
            label: key.to_owned(),
            kind: if is_table { Kind::Table } else { Kind::Key },
            description: self.schema.description(&inner),
            span,
            text,
        })
    }

    fn values(&self, cursor: &Cursor, path: &[Segment]) -> Vec<Completion> {
        let choices = self.schema.choices(path).into_iter();
        let words = choices.filter_map(|choice| {
            let (text, span) = match choice.value {
                Value::String(word) if cursor.is_quoted => (word.clone(), cursor.token.clone()),
                _ if cursor.is_quoted => return None,
                Value::Object(_) | Value::Null => return None,
                // Scalars and arrays have the same form in TOML.
                value => (value.to_string(), cursor.token.clone()),
            };
            let label = choice
                .value
                .as_str()
                .map_or_else(|| text.clone(), str::to_owned);
            Some(Completion {
                label,
                kind: Kind::Value,
                description: choice.description.map(|text| text.replace('\n', " ")),
                span,
                text,
            })
        });
        words.collect()
    }

    /// Returns the description of the key or value at a byte, in Markdown, and the place of it.
    pub(crate) fn hover(&self, at: usize) -> Option<(String, Range<usize>)> {
        let (_, cursor, path) = self.outline(at)?;
        let token = self
            .text
            .get(cursor.token.clone())
            .filter(|token| !token.is_empty())?;
        let path = match cursor.slot {
            Slot::Value => path,
            Slot::Key | Slot::Table => join(&path, token),
        };
        if cursor.slot == Slot::Value {
            let choices = self.schema.choices(&path);
            let chosen = choices
                .iter()
                .find(|choice| choice.value.as_str() == Some(token));
            if let Some(description) = chosen.and_then(|choice| choice.description) {
                return Some((description.replace('\n', " "), cursor.token));
            }
        }
        let mut parts = Vec::new();
        parts.extend(self.schema.description(&path));
        let types = self.schema.types(&path);
        if !types.is_empty() {
            parts.push(format!("Type: {types}."));
        }
        let choices = self.schema.choices(&path);
        let words: Vec<_> = choices
            .iter()
            .filter_map(|choice| choice.value.as_str())
            .map(|word| format!("`{word}`"))
            .collect();
        if words.len() > 1 {
            parts.push(format!("Values: {}.", words.join(", ")));
        }
        if let Some(default) = self.schema.default(&path) {
            parts.push(format!("Default: `{default}`."));
        }
        (!parts.is_empty()).then(|| (parts.join("\n\n"), cursor.token))
    }
}

fn join(path: &[Segment], key: &str) -> Vec<Segment> {
    let mut path = path.to_vec();
    path.push(Segment::Key(key.to_owned()));
    path
}

/// The token with its quotes, as far as they are there.
fn with_quotes(text: &str, cursor: &Cursor) -> Range<usize> {
    let token = cursor.token.clone();
    if !cursor.is_quoted {
        return token;
    }
    let has_end = text[token.end..].starts_with(['"', '\'']);
    token.start - 1..token.end + usize::from(has_end)
}

/// A part of a key as TOML writes it.
fn bare_or_quoted(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !name.is_empty() && name.bytes().all(is_bare) {
        name.to_owned()
    } else {
        Value::from(name).to_string()
    }
}
