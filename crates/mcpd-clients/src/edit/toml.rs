//! Edits of TOML: tables with a header of their own, added at the end of the file, cut from their
//! header to their last line.

use std::ops::Range;

use serde_json::{Map, Value};
use toml_edit::{Array, Document, InlineTable, Item, Key, TableLike, Value as TomlValue};

use super::{EditError, Format, Position, Table, line_end, line_start, newline_of, show_keys};

pub(super) fn read(text: &str) -> Result<Value, EditError> {
    Ok(table_value(parse(text)?.as_table()))
}

/// Fails where an edit of that table would, for its type.
pub(super) fn check(text: &str, table: &Table) -> Result<(), EditError> {
    let document = parse(text)?;
    let mut item = document.as_item();
    for (depth, key) in table.keys().iter().enumerate() {
        match item.get(key) {
            None => return Ok(()),
            Some(next) if next.is_table_like() => item = next,
            Some(next) => {
                return Err(EditError::WrongType {
                    what: show_keys(&table.keys()[..=depth]),
                    expected: "a table",
                    found: next.type_name(),
                    position: Position::of(text, next.span().unwrap_or_default().start),
                });
            }
        }
    }
    Ok(())
}

pub(super) fn insert(
    text: &str,
    table: &Table,
    name: &str,
    entry: &Value,
) -> Result<String, EditError> {
    let document = parse(text)?;
    let newline = newline_of(text);
    let lines = render_table(text, table, name, entry)?;
    let Some(entries) = find_table(&document, text, table)? else {
        return Ok(append(text, &lines, newline));
    };
    match entries.get_key_value(name) {
        None => Ok(append(text, &lines, newline)),
        Some((_, Item::Table(old))) if !old.is_dotted() => {
            let mut ranges = table_lines(text, &document, old);
            if old.is_implicit() || ranges.is_empty() {
                return Err(unsupported(text, 0, "the entry has no table of its own"));
            }
            let first = ranges.remove(0);
            let rest = ranges
                .iter()
                .rev()
                .fold(text.to_owned(), |text, range| cut(&text, range));
            let block = lines.join(newline);
            Ok(format!(
                "{}{block}{}",
                &rest[..first.start],
                &rest[first.end..]
            ))
        }
        Some((_, Item::Value(old))) if old.span().is_some() => {
            let range = old.span().unwrap_or_default();
            let value = to_toml(text, entry)?;
            Ok(format!(
                "{}{value}{}",
                &text[..range.start],
                &text[range.end..]
            ))
        }
        Some((key, _)) => Err(unsupported(
            text,
            key.span().unwrap_or_default().start,
            "the entry is written with dotted keys",
        )),
    }
}

pub(super) fn remove(text: &str, table: &Table, name: &str) -> Result<String, EditError> {
    let document = parse(text)?;
    let Some(entries) = find_table(&document, text, table)? else {
        return Ok(text.to_owned());
    };
    match entries.get_key_value(name) {
        None => Ok(text.to_owned()),
        Some((_, Item::Table(old))) if !old.is_dotted() => {
            let ranges = table_lines(text, &document, old);
            Ok(ranges
                .iter()
                .rev()
                .fold(text.to_owned(), |text, range| cut(&text, range)))
        }
        Some((key, Item::Value(old))) if old.span().is_some() => {
            let start = line_start(text, key.span().unwrap_or_default().start);
            let end = line_end(text, old.span().unwrap_or_default().end);
            Ok(cut_lines(text, start, end))
        }
        Some((key, _)) => Err(unsupported(
            text,
            key.span().unwrap_or_default().start,
            "the entry is written with dotted keys",
        )),
    }
}

fn parse(text: &str) -> Result<Document<&str>, EditError> {
    Document::parse(text).map_err(|error| EditError::Syntax {
        format: Format::Toml,
        position: Position::of(text, error.span().unwrap_or_default().start),
        message: error.message().replace('\n', ", "),
    })
}

fn unsupported(text: &str, offset: usize, form: &str) -> EditError {
    EditError::Unsupported {
        position: Position::of(text, offset),
        reason: format!("{form}; write it under a [header] of its own and try again"),
    }
}

/// Table of the entries, if there is one; an inline table can't take a table with a header.
fn find_table<'a>(
    document: &'a Document<&str>,
    text: &str,
    table: &Table,
) -> Result<Option<&'a dyn TableLike>, EditError> {
    let mut item = document.as_item();
    for key in table.keys() {
        let Some(next) = item.get(key) else {
            return Ok(None);
        };
        if let Item::Value(value) = next {
            let offset = value.span().unwrap_or_default().start;
            return Err(unsupported(
                text,
                offset,
                &format!("`{key}` is an inline table"),
            ));
        }
        item = next;
    }
    Ok(item.as_table_like())
}

/// Adds a table behind an empty line at the end. Always one line, so that its removal is exact.
fn append(text: &str, lines: &[String], newline: &str) -> String {
    let block = lines.join(newline);
    if text.trim().is_empty() {
        format!("{block}{newline}")
    } else if text.ends_with('\n') {
        format!("{text}{newline}{block}{newline}")
    } else {
        format!("{text}{newline}{newline}{block}")
    }
}

/// Lines of each part of a table that has a header, in the order of the file: the table and those
/// below it. Comments and empty lines before the next header belong to that.
fn table_lines(
    text: &str,
    document: &Document<&str>,
    table: &toml_edit::Table,
) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    collect_headers(document.as_table(), &mut all);
    all.sort_unstable();
    let mut own = Vec::new();
    collect_headers(table, &mut own);
    own.sort_unstable();
    let lines = own.into_iter().map(|start| {
        let next = all
            .iter()
            .copied()
            .find(|&header| header > start)
            .unwrap_or(text.len());
        let mut end = next;
        while end > start {
            let line = line_start(text, end.saturating_sub(1));
            let content = text[line..end].trim();
            if !content.is_empty() && !content.starts_with('#') {
                break;
            }
            end = line;
        }
        start..text[..end].trim_end_matches(['\n', '\r']).len()
    });
    lines.collect()
}

/// Offset of the header of a table and of those below it.
fn collect_headers(table: &toml_edit::Table, headers: &mut Vec<usize>) {
    if !table.is_implicit()
        && !table.is_dotted()
        && table.position().is_some()
        && let Some(span) = table.span()
    {
        headers.push(span.start);
    }
    for (_, item) in table.iter() {
        match item {
            Item::Table(table) => collect_headers(table, headers),
            Item::ArrayOfTables(tables) => {
                tables
                    .iter()
                    .for_each(|table| collect_headers(table, headers));
            }
            Item::None | Item::Value(_) => {}
        }
    }
}

/// Cuts a table with the empty line before it.
fn cut(text: &str, range: &Range<usize>) -> String {
    let before = &text[..range.start];
    let gap = ["\r\n", "\n"].into_iter().find_map(|newline| {
        let rest = before.strip_suffix(newline)?;
        (rest.is_empty() || rest.ends_with('\n')).then_some(rest.len())
    });
    cut_lines(text, gap.unwrap_or(range.start), range.end)
}

/// Cuts lines with the line ending behind them, or before them at the end of the file.
fn cut_lines(text: &str, start: usize, end: usize) -> String {
    let rest = &text[end..];
    let rest_of_line = rest.strip_prefix('\r').unwrap_or(rest);
    if let Some(rest) = rest_of_line.strip_prefix('\n') {
        return format!("{}{rest}", &text[..start]);
    }
    let before = &text[..start];
    let before = before.strip_suffix('\n').unwrap_or(before);
    format!("{}{rest}", before.strip_suffix('\r').unwrap_or(before))
}

fn render_table(
    text: &str,
    table: &Table,
    name: &str,
    entry: &Value,
) -> Result<Vec<String>, EditError> {
    let keys = table.keys().iter().map(String::as_str).chain([name]);
    let header: Vec<String> = keys.map(render_key).collect();
    let mut lines = vec![format!("[{}]", header.join("."))];
    for (key, value) in entry.as_object().into_iter().flatten() {
        lines.push(format!("{} = {}", render_key(key), to_toml(text, value)?));
    }
    Ok(lines)
}

fn render_key(key: &str) -> String {
    Key::new(key).display_repr().into_owned()
}

fn to_toml(text: &str, value: &Value) -> Result<TomlValue, EditError> {
    Ok(match value {
        Value::Null => return Err(unsupported(text, 0, "TOML has no null")),
        Value::Bool(value) => TomlValue::from(*value),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => TomlValue::from(integer),
            None => TomlValue::from(number.as_f64().unwrap_or_default()),
        },
        Value::String(value) => TomlValue::from(value),
        Value::Array(items) => {
            let items = items.iter().map(|item| to_toml(text, item));
            TomlValue::from(items.collect::<Result<Array, _>>()?)
        }
        Value::Object(members) => {
            let mut table = InlineTable::new();
            for (key, value) in members {
                table.insert(key, to_toml(text, value)?);
            }
            TomlValue::from(table)
        }
    })
}

fn item_value(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => inline_value(value),
        Item::Table(table) => table_value(table),
        Item::ArrayOfTables(tables) => tables.iter().map(table_value).collect(),
    }
}

fn table_value(table: &toml_edit::Table) -> Value {
    let members = table
        .iter()
        .map(|(key, item)| (key.to_owned(), item_value(item)));
    Value::Object(members.collect::<Map<_, _>>())
}

fn inline_value(value: &TomlValue) -> Value {
    match value {
        TomlValue::String(value) => Value::from(value.value().as_str()),
        TomlValue::Integer(value) => Value::from(*value.value()),
        TomlValue::Float(value) => Value::from(*value.value()),
        TomlValue::Boolean(value) => Value::from(*value.value()),
        TomlValue::Datetime(value) => Value::from(value.value().to_string()),
        TomlValue::Array(items) => items.iter().map(inline_value).collect(),
        TomlValue::InlineTable(table) => {
            let members = table
                .iter()
                .map(|(key, value)| (key.to_owned(), inline_value(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}
