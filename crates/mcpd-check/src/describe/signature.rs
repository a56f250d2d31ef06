//! Signatures of tools and prompts, such as `shout(text: string, times?: integer)`.

use mcpd_protocol::method::{Prompt, Tool};
use serde_json::{Map, Value};

/// Longest signature with types, in characters; a longer one has names only.
const MAX_TYPED: usize = 48;

/// Longest list of names, in characters; the rest of it is left out.
const MAX_NAMES: usize = 48;

/// Signature of a tool: its name, and its arguments with their types, the required ones first.
#[must_use]
pub fn tool_signature(tool: &Tool) -> String {
    let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
    let required = schema["required"].as_array();
    let is_required =
        |name: &str| required.is_some_and(|required| required.iter().any(|one| one == name));
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let arguments = properties.iter().map(|(name, schema)| Argument {
        name,
        is_required: is_required(name),
        kind: Some(kind(schema)),
    });
    render(&tool.name, arguments.collect())
}

/// Signature of a prompt, whose arguments are texts.
#[must_use]
pub fn prompt_signature(prompt: &Prompt) -> String {
    let arguments = prompt.arguments.iter().map(|argument| Argument {
        name: &argument.name,
        is_required: argument.required == Some(true),
        kind: None,
    });
    render(&prompt.name, arguments.collect())
}

struct Argument<'a> {
    name: &'a str,
    is_required: bool,
    kind: Option<String>,
}

impl Argument<'_> {
    fn mark(&self) -> &'static str {
        if self.is_required { "" } else { "?" }
    }

    fn with_kind(&self) -> String {
        let kind = self.kind.iter().map(|kind| format!(": {kind}"));
        format!("{}{}{}", self.name, self.mark(), kind.collect::<String>())
    }
}

fn render(name: &str, mut arguments: Vec<Argument<'_>>) -> String {
    // A stable sort keeps the order in which the script names them.
    arguments.sort_by_key(|argument| !argument.is_required);
    let typed: Vec<_> = arguments.iter().map(Argument::with_kind).collect();
    let typed = typed.join(", ");
    if typed.chars().count() <= MAX_TYPED {
        return format!("{name}({typed})");
    }
    let mut names = String::new();
    for argument in &arguments {
        let separator = if names.is_empty() { "" } else { ", " };
        let next = format!("{separator}{}{}", argument.name, argument.mark());
        if names.chars().count() + next.chars().count() > MAX_NAMES {
            return format!("{name}({names}{separator}…)");
        }
        names += &next;
    }
    format!("{name}({names})")
}

/// Type of an argument in a few words.
fn kind(schema: &Value) -> String {
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<_> = choices.iter().map(Value::to_string).collect();
        return choices.join("|");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("{}[]", kind(&schema["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
            names.join("|")
        }
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    #[track_caller]
    fn check(properties: &Value, required: &[&str], expected: &str) {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let tool = Tool::new("x", to_raw_value(&schema).unwrap());
        assert_eq!(tool_signature(&tool), expected);
    }

    #[test]
    fn signature_has_required_arguments_first() {
        check(&json!({}), &[], "x()");
        check(
            &json!({"times": {"type": "integer"}, "text": {"type": "string"}}),
            &["text"],
            "x(text: string, times?: integer)",
        );
        check(
            &json!({"way": {"enum": ["up", 1]}, "all": {"type": "array", "items": {"type": "string"}}}),
            &["way", "all"],
            "x(way: \"up\"|1, all: string[])",
        );
        check(
            &json!({"a": {}, "b": {"type": ["string", "null"]}}),
            &[],
            "x(a?: any, b?: string|null)",
        );
    }

    #[test]
    fn long_signature_is_shortened() {
        let names = ["alpha", "beta", "gamma", "delta"];
        let object = |names: &[&str]| -> Value {
            let properties = names
                .iter()
                .map(|name| ((*name).to_owned(), json!({"type": "string"})));
            Value::Object(properties.collect())
        };
        check(&object(&names), &[], "x(alpha?, beta?, gamma?, delta?)");
        let many: Vec<_> = (0..9).map(|number| format!("argument{number}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        check(
            &object(&many),
            &[],
            "x(argument0?, argument1?, argument2?, argument3?, …)",
        );
    }
}
