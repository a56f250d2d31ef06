//! Edits of JSON and JSON with comments: items of objects and arrays, placed by the ranges that
//! the parser gives.

use jsonc_parser::ast;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use super::node::{Kind, Member, Node};
use super::{EditError, Format, Position, Table, indentation, line_end, newline_of};

pub(super) fn read(text: &str, format: Format) -> Result<Value, EditError> {
    Ok(parse(text, format)?.map_or(Value::Null, |root| root.value()))
}

/// Fails where an edit of that table would.
pub(super) fn check(text: &str, format: Format, table: &Table) -> Result<(), EditError> {
    match parse(text, format)? {
        Some(root) => root.require_unique(table, text),
        None => Ok(()),
    }
}

pub(super) fn insert(
    text: &str,
    format: Format,
    table: &Table,
    name: &str,
    entry: &Value,
) -> Result<String, EditError> {
    let Some(root) = parse(text, format)? else {
        let newline = newline_of(text);
        let style = Style {
            unit: "  ".to_owned(),
            newline,
            layout: Layout::Lines,
        };
        let document = style.render(&table.nest(0, name, entry), "");
        let gap = if text.trim().is_empty() || text.ends_with('\n') {
            ""
        } else {
            newline
        };
        let before = if text.trim().is_empty() { "" } else { text };
        return Ok(format!("{before}{gap}{document}{newline}"));
    };
    let style = Style::of(text, &root);
    let descent = root.descend(table, text)?;
    let node = descent.node;
    if let Some(key) = table.keys().get(descent.depth) {
        let value = table.nest(descent.depth + 1, name, entry);
        return Ok(style.add_item(text, node, Some(key), &value));
    }
    if let Some(index) = node.index_of(table, name, text)?
        && let Some(old) = node.item(index)
    {
        let value = style.render(entry, indentation(text, old.range.start));
        return Ok(splice(text, old.range.start, old.range.end, &value));
    }
    if node.is_null() {
        let value = table.nest(table.keys().len(), name, entry);
        let value = style.render(&value, indentation(text, node.range.start));
        return Ok(splice(text, node.range.start, node.range.end, &value));
    }
    let key = table.item_key().is_none().then_some(name);
    Ok(style.add_item(text, node, key, entry))
}

pub(super) fn remove(
    text: &str,
    format: Format,
    table: &Table,
    name: &str,
) -> Result<String, EditError> {
    let Some(root) = parse(text, format)? else {
        return Ok(text.to_owned());
    };
    let node = root.descend(table, text)?.node;
    let Some(index) = node.index_of(table, name, text)? else {
        return Ok(text.to_owned());
    };
    let edited = cut_item(text, node, index);
    drop_table(edited, format, table.keys())
}

/// Takes away the table of these keys if it is empty and where [`insert`] would have put it.
fn drop_table(text: String, format: Format, keys: &[String]) -> Result<String, EditError> {
    let Some((last, parents)) = keys.split_last() else {
        return Ok(text);
    };
    let parent_table = Table::map(parents.iter());
    let Some(root) = parse(&text, format)? else {
        return Ok(text);
    };
    let parent = root.descend(&parent_table, &text)?.node;
    let members = parent.members();
    let Some(index) = members.iter().position(|member| member.key == *last) else {
        return Ok(text);
    };
    let end = members[index].node.range.end;
    let is_blank = !text[members[index].key_range.end..end].contains('/');
    let is_last = index + 1 == members.len();
    let is_only_setting = parents.is_empty() && members.len() == 1;
    if !is_blank || !members[index].node.is_empty() || !is_last || is_only_setting {
        return Ok(text);
    }
    let edited = cut_item(&text, parent, index);
    drop_table(edited, format, parents)
}

/// Ways to lay out a new item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Lines,
    /// On one line, with a space after `:` and `,`.
    Spaced,
    /// On one line without spaces.
    Minified,
}

/// Manners of a document that new text follows.
struct Style {
    unit: String,
    newline: &'static str,
    layout: Layout,
}

impl Style {
    fn of(text: &str, root: &Node) -> Self {
        let inside = &text[root.range.clone()];
        let layout = if inside.contains('\n') || root.is_empty() {
            Layout::Lines
        } else if inside.contains("\":") && !inside.contains("\": ") {
            Layout::Minified
        } else {
            Layout::Spaced
        };
        let first = root
            .items()
            .first()
            .map_or(root.range.start, |item| item.start);
        let unit = match indentation(text, first) {
            "" => "  ",
            unit => unit,
        };
        Self {
            unit: unit.to_owned(),
            newline: newline_of(text),
            layout,
        }
    }

    fn on_one_line(&self) -> Self {
        let layout = if self.layout == Layout::Minified {
            Layout::Minified
        } else {
            Layout::Spaced
        };
        Self {
            unit: self.unit.clone(),
            newline: self.newline,
            layout,
        }
    }

    /// Text of a value whose first line starts at that indentation.
    fn render(&self, value: &Value, indent: &str) -> String {
        if self.layout == Layout::Minified {
            return value.to_string();
        }
        let is_spaced = self.layout == Layout::Spaced;
        let (open, between, close) = if is_spaced {
            (String::new(), ", ".to_owned(), String::new())
        } else {
            let inner = format!("{}{indent}{}", self.newline, self.unit);
            (
                inner.clone(),
                format!(",{inner}"),
                format!("{}{indent}", self.newline),
            )
        };
        let inner_indent = format!("{indent}{}", self.unit);
        match value {
            Value::Object(members) if !members.is_empty() => {
                let items: Vec<_> = members
                    .iter()
                    .map(|(key, value)| self.render_item(Some(key), value, &inner_indent))
                    .collect();
                format!("{{{open}{}{close}}}", items.join(&between))
            }
            // The words of a command are on one line, as people write them.
            Value::Array(items) if items.iter().all(Value::is_string) => {
                let items: Vec<_> = items.iter().map(Value::to_string).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Array(items) => {
                let items: Vec<_> = items
                    .iter()
                    .map(|item| self.render(item, &inner_indent))
                    .collect();
                format!("[{open}{}{close}]", items.join(&between))
            }
            _ => value.to_string(),
        }
    }

    fn render_item(&self, key: Option<&str>, value: &Value, indent: &str) -> String {
        let value = self.render(value, indent);
        match key {
            None => value,
            Some(key) if self.layout == Layout::Minified => format!("{}:{value}", Value::from(key)),
            Some(key) => format!("{}: {value}", Value::from(key)),
        }
    }

    /// Adds an item behind the last of a container.
    fn add_item(&self, text: &str, node: &Node, key: Option<&str>, value: &Value) -> String {
        let items = node.items();
        let (Some(first), Some(last)) = (items.first(), items.last()) else {
            return self.fill(text, node, key, value);
        };
        let close = node.range.end - 1;
        let comma = find_comma(text, last.end, close);
        if !text[node.range.clone()].contains('\n') {
            let item = self.on_one_line().render_item(key, value, "");
            let gap = if self.layout == Layout::Minified {
                ""
            } else {
                " "
            };
            return match comma {
                Some(comma) => splice(text, comma + 1, comma + 1, &format!("{gap}{item},")),
                None => splice(text, last.end, last.end, &format!(",{gap}{item}")),
            };
        }
        let indent = [last, first]
            .into_iter()
            .find(|item| starts_line(text, item.start))
            .map(|item| indentation(text, item.start).to_owned())
            .unwrap_or_else(|| format!("{}{}", indentation(text, node.range.start), self.unit));
        let item = format!(
            "{}{indent}{}",
            self.newline,
            self.render_item(key, value, &indent)
        );
        match comma {
            Some(comma) => {
                let place = end_of_comments(text, comma + 1);
                splice(text, place, place, &format!("{item},"))
            }
            None => {
                let place = end_of_comments(text, last.end);
                let with_item = splice(text, place, place, &item);
                splice(&with_item, last.end, last.end, ",")
            }
        }
    }

    /// Puts the first item into an empty container; comments in it stay above the item.
    fn fill(&self, text: &str, node: &Node, key: Option<&str>, value: &Value) -> String {
        let (open, close) = (node.range.start + 1, node.range.end - 1);
        let inside = &text[open..close];
        if self.layout != Layout::Lines {
            return splice(text, close, close, &self.render_item(key, value, ""));
        }
        let outer = indentation(text, node.range.start);
        let indent = format!("{outer}{}", self.unit);
        let item = format!(
            "{}{indent}{}",
            self.newline,
            self.render_item(key, value, &indent)
        );
        if inside.trim().is_empty() && !inside.contains('\n') {
            return splice(text, open, close, &format!("{item}{}{outer}", self.newline));
        }
        let place = open + inside.trim_end().len();
        let has_newline = text[place..close].contains('\n');
        let end = if has_newline {
            String::new()
        } else {
            format!("{}{outer}", self.newline)
        };
        splice(text, place, place, &format!("{item}{end}"))
    }
}

/// Cuts an item with its comma, or with the comma before it if it is the last.
fn cut_item(text: &str, node: &Node, index: usize) -> String {
    let items = node.items();
    let item = items[index].clone();
    let (open, close) = (node.range.start + 1, node.range.end - 1);
    let own_comma = find_comma(text, item.end, close);
    let end = own_comma.map_or(item.end, |comma| comma + 1);
    if items.len() == 1
        && text[open..item.start].trim().is_empty()
        && text[end..close].trim().is_empty()
    {
        return splice(text, open, close, "");
    }
    let before = text[..item.start].trim_end().len().max(open);
    let rest = &text[end..line_end(text, end)];
    let previous = index.checked_sub(1).map_or(open, |index| items[index].end);
    let has_next = index + 1 < items.len();
    // The rest of the line must not get into a comment at the end of the line before, and a next
    // item stays on a line of its own.
    let must_stay = !rest.trim().is_empty()
        && !rest.trim_start().starts_with("//")
        && (ends_in_line_comment(text, previous, before)
            || has_next && (index == 0 || text[before..item.start].contains('\n')));
    let start = if must_stay { item.start } else { before };
    let end = if must_stay {
        end + rest.len() - rest.trim_start().len()
    } else {
        end
    };
    let cut = splice(text, start, end, "");
    match (own_comma, index.checked_sub(1)) {
        (None, Some(previous)) => match find_comma(text, items[previous].end, item.start) {
            Some(comma) => splice(&cut, comma, comma + 1, ""),
            None => cut,
        },
        _ => cut,
    }
}

/// Text between two items, up to `end`, ends in a `//` comment.
fn ends_in_line_comment(text: &str, start: usize, end: usize) -> bool {
    let mut offset = start;
    while offset < end {
        let rest = &text[offset..];
        match comment_length(rest) {
            Some(length) if rest.starts_with("//") && offset + length >= end => return true,
            Some(length) => offset += length,
            None => offset += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    false
}

fn splice(text: &str, start: usize, end: usize, replacement: &str) -> String {
    format!("{}{replacement}{}", &text[..start], &text[end..])
}

fn starts_line(text: &str, offset: usize) -> bool {
    text[super::line_start(text, offset)..offset]
        .trim()
        .is_empty()
}

/// Offset of the comma between `start` and `end`, where there are only commas and comments.
fn find_comma(text: &str, start: usize, end: usize) -> Option<usize> {
    let mut offset = start;
    while offset < end {
        let rest = &text[offset..end];
        if rest.starts_with(',') {
            return Some(offset);
        }
        offset += comment_length(rest).or_else(|| rest.chars().next().map(char::len_utf8))?;
    }
    None
}

/// Offset behind the comments on the rest of the line; they belong to what is before them.
fn end_of_comments(text: &str, start: usize) -> usize {
    let mut end = start;
    let mut offset = start;
    loop {
        let rest = &text[offset..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        match comment_length(&rest[blank..]) {
            Some(length) if !rest[..blank + length].contains('\n') => {
                offset += blank + length;
                end = offset;
            }
            _ => return end,
        }
    }
}

/// Length of the comment that a text starts with, without the end of its line.
fn comment_length(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        Some(line_end(text, 0))
    } else if text.starts_with("/*") {
        Some(text.find("*/").map_or(text.len(), |end| end + 2))
    } else {
        None
    }
}

fn parse(text: &str, format: Format) -> Result<Option<Node>, EditError> {
    let is_lenient = format == Format::Jsonc;
    let options = ParseOptions {
        allow_comments: is_lenient,
        allow_trailing_commas: is_lenient,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let syntax = |offset: usize, message: String| EditError::Syntax {
        format,
        position: Position::of(text, offset),
        message,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options)
        .map_err(|error| syntax(error.range().start, error.kind().to_string()))?;
    parsed
        .value
        .map(|value| convert(&value).map_err(|offset| syntax(offset, "invalid number".to_owned())))
        .transpose()
}

/// Tree of a parsed value, or the offset of a number that is none.
fn convert(value: &ast::Value<'_>) -> Result<Node, usize> {
    let (range, kind) = match value {
        ast::Value::StringLit(literal) => (
            literal.range,
            Kind::Scalar(Value::from(literal.value.as_ref())),
        ),
        ast::Value::NumberLit(literal) => {
            let number = serde_json::from_str(literal.value).map_err(|_| literal.range.start)?;
            (literal.range, Kind::Scalar(number))
        }
        ast::Value::BooleanLit(literal) => {
            (literal.range, Kind::Scalar(Value::Bool(literal.value)))
        }
        ast::Value::NullKeyword(literal) => (literal.range, Kind::Scalar(Value::Null)),
        ast::Value::Array(array) => {
            let items = array
                .elements
                .iter()
                .map(convert)
                .collect::<Result<_, _>>()?;
            (array.range, Kind::List(items))
        }
        ast::Value::Object(object) => {
            let members = object.properties.iter().map(convert_member);
            (object.range, Kind::Map(members.collect::<Result<_, _>>()?))
        }
    };
    Ok(Node {
        range: range.start..range.end,
        kind,
        is_shared: false,
    })
}

fn convert_member(property: &ast::ObjectProp<'_>) -> Result<Member, usize> {
    let key_range = match &property.name {
        ast::ObjectPropName::String(name) => name.range,
        ast::ObjectPropName::Word(name) => name.range,
    };
    Ok(Member {
        key: property.name.as_str().to_owned(),
        key_range: key_range.start..key_range.end,
        node: convert(&property.value)?,
    })
}
