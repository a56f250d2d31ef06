//! Edits of configuration files that keep every byte they need not change: comments, order,
//! indentation, line endings, byte order mark, trailing commas and the end of the file.
//!
//! No edit writes a parsed document back. It finds the bytes of one entry in the parsed tree,
//! replaces these, parses the result again and compares it with what was meant; an edit that
//! would change anything else is refused.
//!
//! [`remove`] undoes [`insert`] byte for byte where the table had entries before, and where the
//! file had no table: the table that [`insert`] creates is the last of its parent, and an empty
//! table in that place goes with its last entry. Two originals can't be told from the text alone:
//! an empty table that was the last of several settings is taken away as well, and a file with an
//! empty or no table and nothing else keeps an empty one. [`crate::ConfigFile::remove`] restores
//! these too when it is given the original.

mod json;
mod node;
mod toml;
mod yaml;

use std::fmt;

use serde_json::{Map, Value};

/// Format of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// JSON as RFC 8259 has it.
    Json,
    /// JSON with comments and trailing commas.
    Jsonc,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "JSON",
            Self::Jsonc => "JSON with comments",
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
        })
    }
}

/// Place of entries within a file: a mapping of names, or a list of items that have a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    keys: Vec<String>,
    item_key: Option<String>,
}

impl Table {
    /// Mapping below these keys, whose keys are the names of the entries.
    #[must_use]
    pub fn map<I: IntoIterator<Item: Into<String>>>(keys: I) -> Self {
        Self {
            keys: keys.into_iter().map(Into::into).collect(),
            item_key: None,
        }
    }

    /// List below these keys, each item of which has its name at `item_key`.
    #[must_use]
    pub fn list<I: IntoIterator<Item: Into<String>>>(keys: I, item_key: &str) -> Self {
        Self {
            item_key: Some(item_key.to_owned()),
            ..Self::map(keys)
        }
    }

    /// Keys from the root of the file to the table.
    #[must_use]
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Key of the name within each item, if the table is a list.
    #[must_use]
    pub fn item_key(&self) -> Option<&str> {
        self.item_key.as_deref()
    }

    /// The missing part of a table with one entry: `keys[depth]` would have it as its value.
    fn nest(&self, depth: usize, name: &str, entry: &Value) -> Value {
        let innermost = match self.item_key {
            Some(_) => Value::Array(vec![entry.clone()]),
            None => Value::Object(Map::from_iter([(name.to_owned(), entry.clone())])),
        };
        let missing = self.keys.get(depth..).unwrap_or_default();
        missing.iter().rev().fold(innermost, |inner, key| {
            Value::Object(Map::from_iter([(key.clone(), inner)]))
        })
    }
}

/// Line and column, both from one; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Position {
    /// Line, from one.
    pub line: usize,
    /// Column in characters, from one.
    pub column: usize,
}

impl Position {
    fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Reason why a file is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The file is not of its format.
    #[error("{position}: not valid {format}: {message}; correct the file and try again")]
    Syntax {
        /// Format the file should have.
        format: Format,
        /// Place of the fault.
        position: Position,
        /// The parser's words.
        message: String,
    },
    /// A key on the way to the entry is there twice.
    #[error("{position}: `{key}` is defined twice; delete one of them and try again")]
    DuplicateKey {
        /// The key.
        key: String,
        /// Place of the second.
        position: Position,
    },
    /// A value on the way to the entry is of another type.
    #[error("{position}: {what} is {found}, not {expected}; correct it and try again")]
    WrongType {
        /// The value, as an operator would name it.
        what: String,
        /// Type it should have.
        expected: &'static str,
        /// Type it has.
        found: &'static str,
        /// Place of the value.
        position: Position,
    },
    /// The file has a form that can't be edited without changing more than the entry.
    #[error("{position}: {reason}")]
    Unsupported {
        /// Place of the form.
        position: Position,
        /// The form, and what to do.
        reason: String,
    },
}

/// Outcome of a removal: the rest of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removal {
    /// There is no entry of that name: nothing to do.
    Missing,
    /// Text of the file without the entry.
    Text(String),
    /// The file has no settings and no comments left: it may be deleted, or get this text.
    Empty(String),
}

/// Value of a whole file; an empty file has an empty mapping.
///
/// # Errors
///
/// The text is not of its format.
pub fn read(text: &str, format: Format) -> Result<Value, EditError> {
    let text = split_bom(text).1;
    let value = match format {
        Format::Json | Format::Jsonc => json::read(text, format)?,
        Format::Toml => toml::read(text)?,
        Format::Yaml => yaml::read(text)?,
    };
    Ok(if value.is_null() {
        Value::Object(Map::new())
    } else {
        value
    })
}

/// Names and values of the entries of a table, in the order of the file; none if it is missing.
///
/// # Errors
///
/// The text is not of its format, or what should be the table is something else.
pub fn entries(
    text: &str,
    format: Format,
    table: &Table,
) -> Result<Vec<(String, Value)>, EditError> {
    let bare = split_bom(text).1;
    match format {
        Format::Json | Format::Jsonc => json::check(bare, format, table)?,
        Format::Toml => toml::check(bare, table)?,
        Format::Yaml => yaml::check(bare, table)?,
    }
    let mut value = read(text, format)?;
    for key in table.keys() {
        value = match value {
            Value::Object(mut members) => members.remove(key).unwrap_or_default(),
            _ => Value::Null,
        };
    }
    Ok(match (value, table.item_key()) {
        (Value::Object(members), None) => members.into_iter().collect(),
        (Value::Array(items), Some(item_key)) => items
            .into_iter()
            .filter_map(|item| Some((item.get(item_key)?.as_str()?.to_owned(), item)))
            .collect(),
        _ => Vec::new(),
    })
}

/// Text with the entry of that name in the table: added at its end, or in the place of the entry
/// that has the name. The text itself if it has just that entry already.
///
/// An entry of a list must have `name` at its item key.
///
/// # Errors
///
/// The text is not of its format, or of a form that can't be edited.
pub fn insert(
    text: &str,
    format: Format,
    table: &Table,
    name: &str,
    entry: &Value,
) -> Result<String, EditError> {
    let existing = entries(text, format, table)?
        .into_iter()
        .find(|(key, _)| key == name);
    if existing.is_some_and(|(_, value)| value == *entry) {
        return Ok(text.to_owned());
    }
    let (bom, bare) = split_bom(text);
    let edited = match format {
        Format::Json | Format::Jsonc => json::insert(bare, format, table, name, entry)?,
        Format::Toml => toml::insert(bare, table, name, entry)?,
        Format::Yaml => yaml::insert(bare, table, name, entry)?,
    };
    let mut expected = read(bare, format)?;
    set_entry(&mut expected, table, name, entry);
    require_equal(&edited, format, table, &expected)?;
    Ok(format!("{bom}{edited}"))
}

/// Text without the entry of that name.
///
/// # Errors
///
/// The text is not of its format, or of a form that can't be edited.
pub fn remove(text: &str, format: Format, table: &Table, name: &str) -> Result<Removal, EditError> {
    if !entries(text, format, table)?
        .iter()
        .any(|(key, _)| key == name)
    {
        return Ok(Removal::Missing);
    }
    let (bom, bare) = split_bom(text);
    let edited = match format {
        Format::Json | Format::Jsonc => json::remove(bare, format, table, name)?,
        Format::Toml => toml::remove(bare, table, name)?,
        Format::Yaml => yaml::remove(bare, table, name)?,
    };
    let mut expected = read(bare, format)?;
    unset_entry(&mut expected, table, name);
    require_equal(&edited, format, table, &expected)?;
    let is_empty = is_blank(&edited, format, table);
    let edited = format!("{bom}{edited}");
    Ok(if is_empty {
        Removal::Empty(edited)
    } else {
        Removal::Text(edited)
    })
}

/// Nothing but an empty table: no other settings, no comments.
fn is_blank(text: &str, format: Format, table: &Table) -> bool {
    let Ok(mut value) = read(text, format) else {
        return false;
    };
    drop_empty_tables(&mut value, table.keys());
    let is_comment = |line: &str| match format {
        Format::Json | Format::Jsonc => line.contains("//") || line.contains("/*"),
        Format::Toml | Format::Yaml => line.contains('#'),
    };
    value.as_object().is_some_and(Map::is_empty) && !text.lines().any(is_comment)
}

fn require_equal(
    edited: &str,
    format: Format,
    table: &Table,
    expected: &Value,
) -> Result<(), EditError> {
    let mut expected = expected.clone();
    let mut actual = read(edited, format).unwrap_or_default();
    drop_empty_tables(&mut expected, table.keys());
    drop_empty_tables(&mut actual, table.keys());
    if actual == expected {
        return Ok(());
    }
    Err(EditError::Unsupported {
        position: Position { line: 1, column: 1 },
        reason: format!(
            "an edit of {} would change other settings too; edit the file by hand",
            show_keys(table.keys())
        ),
    })
}

fn set_entry(root: &mut Value, table: &Table, name: &str, entry: &Value) {
    let mut value = root;
    for key in table.keys() {
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
        let Value::Object(members) = value else {
            return;
        };
        value = members.entry(key.clone()).or_insert(Value::Null);
    }
    match table.item_key() {
        None => {
            if !value.is_object() {
                *value = Value::Object(Map::new());
            }
            value[name] = entry.clone();
        }
        Some(item_key) => {
            if !value.is_array() {
                *value = Value::Array(Vec::new());
            }
            let Value::Array(items) = value else { return };
            match items.iter_mut().find(|item| item[item_key] == name) {
                Some(item) => *item = entry.clone(),
                None => items.push(entry.clone()),
            }
        }
    }
}

fn unset_entry(root: &mut Value, table: &Table, name: &str) {
    let mut value = root;
    for key in table.keys() {
        let Some(next) = value.get_mut(key) else {
            return;
        };
        value = next;
    }
    match (value, table.item_key()) {
        (Value::Object(members), None) => drop(members.shift_remove(name)),
        (Value::Array(items), Some(item_key)) => items.retain(|item| item[item_key] != name),
        _ => {}
    }
}

/// Takes away a table that is empty or null, and what becomes empty by that.
fn drop_empty_tables(value: &mut Value, keys: &[String]) {
    let Some((first, rest)) = keys.split_first() else {
        return;
    };
    let Value::Object(members) = value else {
        return;
    };
    let Some(inner) = members.get_mut(first) else {
        return;
    };
    drop_empty_tables(inner, rest);
    let is_empty = match inner {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if is_empty {
        members.shift_remove(first);
    }
}

fn show_keys(keys: &[String]) -> String {
    if keys.is_empty() {
        "the root of the file".to_owned()
    } else {
        format!("`{}`", keys.join("."))
    }
}

/// Byte order mark, and the text behind it.
fn split_bom(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    })
}

/// Line ending of a text: that of its first line.
fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(end) if text[..end].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Offset of the start of the line that has that offset.
fn line_start(text: &str, offset: usize) -> usize {
    text[..offset].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Offset of the end of the line that has that offset, before its line ending.
fn line_end(text: &str, offset: usize) -> usize {
    let end = text[offset..]
        .find('\n')
        .map_or(text.len(), |length| offset + length);
    if end > offset && text[..end].ends_with('\r') && end < text.len() {
        end - 1
    } else {
        end
    }
}

/// White space at the start of the line that has that offset.
fn indentation(text: &str, offset: usize) -> &str {
    let line = &text[line_start(text, offset)..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

#[cfg(test)]
mod tests;
