//! Conversion of examples and defaults, such as a quoted number, to values of the declared type. A
//! text that is no value of the type stays unchanged, for the rules to check.

use crate::{
    dialect::draft::{Literal, Node},
    json::{self, Span},
};

/// Adds an example to an option. An example of a list or an object that is not JSON becomes part
/// of the description: hosts of BASIC accept formats that JSON lacks.
pub(super) fn add(option: &mut Node, keyword: Span, mut example: Node, value_type: &Node) {
    convert(&mut example, value_type);
    if let (Some("array" | "object"), Some(text)) = (name(value_type), example.text()) {
        let told = match option.member("description").and_then(Node::text) {
            Some(description) => format!("{description} (for example {text})"),
            None => format!("For example {text}"),
        };
        match option.member_mut("description") {
            Some(description) => description.value = Literal::String(told),
            None => option.add("description", keyword, Node::string(example.span, told)),
        }
        return;
    }
    let examples = Node::new(example.span.clone(), Literal::Array(vec![example]));
    option.add("examples", keyword, examples);
}

/// Converts a text to a value of the type, if it is exactly one.
pub(super) fn convert(value: &mut Node, value_type: &Node) {
    let converted = match (name(value_type), &value.value) {
        (Some("integer" | "float"), Literal::String(text)) => number(text).map(Literal::Number),
        (Some("string"), Literal::Number(text)) => Some(Literal::String(text.clone())),
        (Some("string"), Literal::Boolean(value)) => Some(Literal::String(value.to_string())),
        (Some("boolean"), Literal::String(text)) => {
            text.to_ascii_lowercase().parse().ok().map(Literal::Boolean)
        }
        (Some("array" | "object"), Literal::String(text)) => {
            let document = json::read(text, 0).ok();
            document.map(|document| {
                let mut node = Node::from(document.root);
                place_at(&mut node, &value.span);
                node.value
            })
        }
        _ => None,
    };
    if let Some(converted) = converted {
        value.value = converted;
    }
}

/// Gives every part the place of the whole: with escapes in a text, its parts
/// have no places of their own.
fn place_at(node: &mut Node, span: &Span) {
    node.span = span.clone();
    match &mut node.value {
        Literal::Array(items) => items.iter_mut().for_each(|item| place_at(item, span)),
        Literal::Object(entries) => {
            for entry in entries {
                entry.key_span = span.clone();
                place_at(&mut entry.value, span);
            }
        }
        _ => {}
    }
}

fn name(value_type: &Node) -> Option<&str> {
    value_type.member("value_type").and_then(Node::text)
}

/// Formats a number for JSON, without leading zeros.
fn number(text: &str) -> Option<String> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit())
        && digits.ends_with(|last: char| last.is_ascii_digit())
        && digits
            .chars()
            .all(|char| char.is_ascii_digit() || char == '.')
        && digits.matches('.').count() <= 1;
    let significant = digits.trim_start_matches('0');
    let zero = match significant.chars().next() {
        Some('1'..='9') => "",
        _ => "0",
    };
    is_number.then(|| format!("{sign}{zero}{significant}"))
}
