//! Lines of YAML in block style for a value.

use super::Value;

/// Lines of the members of a mapping.
pub(super) fn render_members(value: &Value, indent: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        let key = render_string(key);
        let inner = format!("{indent}  ");
        match value {
            Value::Object(members) if !members.is_empty() => {
                lines.push(format!("{indent}{key}:"));
                lines.extend(render_members(value, &inner));
            }
            Value::Array(items) if !items.is_empty() => {
                lines.push(format!("{indent}{key}:"));
                lines.extend(render_items(value, &inner));
            }
            _ => lines.push(format!("{indent}{key}: {}", render_scalar(value))),
        }
    }
    lines
}

/// Lines of the items of a list.
pub(super) fn render_items(value: &Value, indent: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for item in value.as_array().into_iter().flatten() {
        let inner = format!("{indent}  ");
        let mut block = match item {
            Value::Object(members) if !members.is_empty() => render_members(item, &inner),
            Value::Array(items) if !items.is_empty() => render_items(item, &inner),
            _ => vec![format!("{inner}{}", render_scalar(item))],
        };
        if let Some(first) = block.first_mut() {
            first.replace_range(..inner.len(), &format!("{indent}- "));
        }
        lines.append(&mut block);
    }
    lines
}

fn render_scalar(value: &Value) -> String {
    match value {
        Value::String(text) => render_string(text),
        Value::Object(_) => "{}".to_owned(),
        Value::Array(_) => "[]".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A string without quotes where no reader takes it for anything else; in single quotes
/// otherwise, and in double quotes if it has control characters.
fn render_string(text: &str) -> String {
    if text.chars().any(char::is_control) {
        // Every JSON string is a double-quoted scalar of YAML.
        return Value::from(text).to_string();
    }
    let is_plain_char =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '@' | '=' | '~');
    let starts_plain = text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '/'));
    let is_word = matches!(
        text.to_ascii_lowercase().as_str(),
        "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    // A URL has a colon without a space behind it.
    let is_url = text.contains("://") && text.chars().all(|c| is_plain_char(c) || c == ':');
    let has_plain_chars = text.chars().all(is_plain_char) || is_url && !text.ends_with(':');
    if starts_plain && has_plain_chars && !is_word {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}
