//! Edits of YAML in block style: lines of entries, placed by the events of the parser. Flow style
//! (`{a: 1}`), anchors and aliases in the table are refused.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::Value;

use super::node::{Kind, Member, Node};
use super::{EditError, Format, Position, Table, indentation, line_end, line_start, newline_of};

mod parse;
mod render;

use parse::parse;
use render::{render_items, render_members};

pub(super) fn read(text: &str) -> Result<Value, EditError> {
    Ok(parse(text)?.map_or(Value::Null, |root| root.value()))
}

/// Fails where an edit of that table would, for its type or its keys; not yet for its style.
pub(super) fn check(text: &str, table: &Table) -> Result<(), EditError> {
    match parse(text)? {
        Some(root) if !root.is_null() => root.require_unique(table, text),
        _ => Ok(()),
    }
}

pub(super) fn insert(
    text: &str,
    table: &Table,
    name: &str,
    entry: &Value,
) -> Result<String, EditError> {
    let newline = newline_of(text);
    let root = match parse(text)? {
        Some(root) if !root.is_null() => root,
        _ => {
            let lines = render_members(&table.nest(0, name, entry), "");
            let gap = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                newline
            };
            return Ok(format!("{text}{gap}{}{newline}", lines.join(newline)));
        }
    };
    let descent = root.descend(table, text)?;
    let node = descent.node;
    let missing = table.nest(descent.depth, name, entry);
    if node.is_empty() {
        let indent = match descent.depth {
            0 => String::new(),
            _ => format!("{}  ", indentation(text, node.range.start)),
        };
        return Ok(fill(text, node, &render_block(&missing, &indent), newline));
    }
    require_block(node, text)?;
    let column = item_indentation(text, node);
    if descent.depth == table.keys().len()
        && let Some(index) = node.index_of(table, name, text)?
    {
        let lines = match node.members().get(index) {
            Some(_) => render_members(&missing, column),
            None => render_items(&missing, column),
        };
        let (start, end) = item_lines(text, node, index);
        return Ok(format!(
            "{}{}{}",
            &text[..start],
            lines.join(newline),
            &text[end..]
        ));
    }
    let lines = render_block(&missing, column);
    let place = last_line_end(text, node);
    let (before, after) = text.split_at(place);
    Ok(format!("{before}{newline}{}{after}", lines.join(newline)))
}

pub(super) fn remove(text: &str, table: &Table, name: &str) -> Result<String, EditError> {
    let Some(root) = parse(text)? else {
        return Ok(text.to_owned());
    };
    let node = root.descend(table, text)?.node;
    require_block(node, text)?;
    let Some(index) = node.index_of(table, name, text)? else {
        return Ok(text.to_owned());
    };
    let edited = cut_lines(text, item_lines(text, node, index));
    if node.items().len() > 1 {
        return Ok(edited);
    }
    drop_table(&root, text, table)
}

/// Takes away a table with its only entry if it is where [`insert`] would have put it; leaves an
/// empty one otherwise.
fn drop_table(root: &Node, text: &str, table: &Table) -> Result<String, EditError> {
    let mut keys = table.keys();
    while let Some((last, parents)) = keys.split_last() {
        let parent = root.descend(&Table::map(parents.iter()), text)?.node;
        require_block(parent, text)?;
        let members = parent.members();
        let Some(index) = members.iter().position(|member| member.key == *last) else {
            break;
        };
        if members.len() == 1 && !parents.is_empty() {
            keys = parents;
            continue;
        }
        let (start, end) = item_lines(text, parent, index);
        if members.len() > 1 && index + 1 == members.len() {
            return Ok(cut_lines(text, (start, end)));
        }
        let key_end = members[index].key_range.end;
        let colon = text[key_end..]
            .find(':')
            .map_or(key_end, |length| key_end + length + 1);
        let rest = &text[colon..line_end(text, colon)];
        let empty = if table.item_key().is_some() {
            " []"
        } else {
            " {}"
        };
        return Ok(format!("{}{empty}{rest}{}", &text[..colon], &text[end..]));
    }
    Ok(text.to_owned())
}

/// Lines of a mapping or of a list.
fn render_block(value: &Value, indent: &str) -> Vec<String> {
    if value.is_array() {
        render_items(value, indent)
    } else {
        render_members(value, indent)
    }
}

/// Puts lines below a key that has nothing, `null`, `{}` or `[]`.
fn fill(text: &str, node: &Node, lines: &[String], newline: &str) -> String {
    let (start, end) = (node.range.start, node.range.end);
    let before = text[..start].trim_end_matches([' ', '\t']);
    let place = line_end(text, end);
    let lines = lines.join(newline);
    let gap = if before.is_empty() || before.ends_with('\n') {
        ""
    } else {
        newline
    };
    format!(
        "{before}{}{gap}{lines}{}",
        &text[end..place],
        &text[place..]
    )
}

/// Start and end of the lines of an item, without the line ending of the last.
fn item_lines(text: &str, node: &Node, index: usize) -> (usize, usize) {
    let item = &node.items()[index];
    (
        line_start(text, item.start),
        content_end(text, item.start, item.end),
    )
}

fn last_line_end(text: &str, node: &Node) -> usize {
    node.items()
        .last()
        .map_or(text.len(), |item| content_end(text, item.start, item.end))
}

/// End of the line that has the last character of a range. Block scalars end at the start of the
/// line behind them.
fn content_end(text: &str, start: usize, end: usize) -> usize {
    let trimmed = text[..end].trim_end().len();
    line_end(text, trimmed.max(start))
}

/// Cuts lines with the line ending before them, or behind them at the start of the file.
fn cut_lines(text: &str, (start, end): (usize, usize)) -> String {
    match text[..start].strip_suffix('\n') {
        Some(before) => {
            format!(
                "{}{}",
                before.strip_suffix('\r').unwrap_or(before),
                &text[end..]
            )
        }
        None => {
            let rest = &text[end..];
            let rest = rest.strip_prefix('\r').unwrap_or(rest);
            rest.strip_prefix('\n').unwrap_or(rest).to_owned()
        }
    }
}

/// Indentation of the items of a container: that of its first.
fn item_indentation<'a>(text: &'a str, node: &Node) -> &'a str {
    indentation(
        text,
        node.items()
            .first()
            .map_or(node.range.start, |item| item.start),
    )
}

/// Fails for what can't be edited line by line.
fn require_block(node: &Node, text: &str) -> Result<(), EditError> {
    let unsupported = |offset: usize, reason: &str| {
        Err(EditError::Unsupported {
            position: Position::of(text, offset),
            reason: reason.to_owned(),
        })
    };
    let start = node.range.start;
    if text[start..].starts_with(['{', '[']) {
        return unsupported(
            start,
            "the settings are in braces; write them as indented lines and try again",
        );
    }
    if has_shared(node) {
        return unsupported(
            start,
            "the settings have an anchor (`&`) or an alias (`*`); edit the file by hand",
        );
    }
    let starts_line = |item: &std::ops::Range<usize>| {
        let before = &text[line_start(text, item.start)..item.start];
        before.trim().trim_start_matches('-').trim().is_empty()
    };
    if !node.items().iter().all(starts_line) {
        return unsupported(
            start,
            "the settings are not on lines of their own; edit the file by hand",
        );
    }
    Ok(())
}

fn has_shared(node: &Node) -> bool {
    node.is_shared
        || match &node.kind {
            Kind::Scalar(_) => false,
            Kind::List(items) => items.iter().any(has_shared),
            Kind::Map(members) => members.iter().any(|member| has_shared(&member.node)),
        }
}
