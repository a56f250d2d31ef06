//! Descriptions of tools and prompts for people, from the definitions that clients get: one line
//! ([`tool_signature`], [`prompt_signature`]), or all of it ([`tool`], [`prompt`]); the policy of a
//! script ([`confinement`], [`allowance`]), and the process that a call starts ([`shell_line`],
//! [`run_plan`]). [`ListedEntry`] is one of a list, and
//! [`log_line`] what a run says meanwhile.

use mcpd_protocol::method::{Prompt, ToolAnnotations};
use mcpd_scriptspec::{ScriptSpec, TaskSupport};
use mcpd_server::Tool;
use serde_json::Value;

mod listing;
mod log_line;
mod policy;
mod run_plan;
mod signature;

pub use self::listing::ListedEntry;
pub use self::log_line::log_line;
pub use self::policy::{allowance, confinement, enforcement, limits};
pub use self::run_plan::{run_plan, shell_line};
pub use self::signature::{prompt_signature, tool_signature};

/// Name and title; the title is left out if it equals the last component of the name.
fn heading(name: &str, title: Option<&str>) -> String {
    match title {
        Some(title) if name.rsplit('/').next() != Some(title) => format!("{name} - {title}"),
        _ => name.to_owned(),
    }
}

/// Description of a prompt and its arguments, in lines. Its texts are those of the script.
#[must_use]
pub fn prompt(prompt: &Prompt) -> String {
    let mut text = heading(&prompt.name, prompt.title.as_deref());
    text.push_str("\n(a prompt)\n");
    if let Some(description) = &prompt.description {
        text += &format!("\n{}\n", description.trim_end());
    }
    if prompt.arguments.is_empty() {
        return text + "\nNo arguments.\n";
    }
    text.push_str("\nArguments:\n");
    for argument in &prompt.arguments {
        let is_required = argument.required == Some(true);
        let required = if is_required { ": required" } else { "" };
        text += &format!("  {}{required}\n", argument.name);
        for line in argument.description.as_deref().unwrap_or_default().lines() {
            text += &format!("      {line}\n");
        }
    }
    text
}

/// Description of a tool in lines: its names, its purpose, what it declares, and its options with
/// their types and bounds. Its texts are those of the script.
#[must_use]
pub fn tool(tool: &Tool) -> String {
    let definition = tool.definition();
    let mut text = heading(tool.path().as_str(), definition.title.as_deref());
    let said = |key| definition.meta.as_ref()?.get(key);
    if let Some(version) = said("mcpd/version").and_then(Value::as_str) {
        text += &format!(", version {version}");
    }
    text.push('\n');
    if tool.portable_name() != tool.path().as_str() {
        text += &format!("(listed to most clients as {})\n", tool.portable_name());
    }
    if let Some(description) = &definition.description {
        text += &format!("\n{}\n", description.trim_end());
    }
    let hints: Vec<_> = definition.annotations.iter().flat_map(hints).collect();
    if !hints.is_empty() {
        text += &format!("\nHints: {}\n", hints.join(", "));
    }
    let tags = said("mcpd/tags").and_then(Value::as_array);
    let tags: Vec<_> = tags.into_iter().flatten().flat_map(Value::as_str).collect();
    if !tags.is_empty() {
        text += &format!("\nTags: {}\n", tags.join(", "));
    }
    text += &tool.spec().map(demands).unwrap_or_default();
    let schema: Value = serde_json::from_str(definition.input_schema.get()).unwrap_or_default();
    text += &options(&schema);
    match tool.spec().map(ScriptSpec::synopsis) {
        Some(synopsis) if !synopsis.is_empty() => text + "\nCommand line: " + &synopsis + "\n",
        _ => text,
    }
}

/// Requirements of the script on its clients.
fn demands(spec: &ScriptSpec) -> String {
    let mut text = String::new();
    if !spec.requires.is_empty() {
        text += &format!(
            "\nRequired client capabilities: {}\n",
            spec.requires.join(", ")
        );
    }
    text.push_str(match spec.task {
        TaskSupport::Auto => "\nMay run as a task\n",
        TaskSupport::Required => {
            "\nAlways runs as a task; requires a client with support for tasks\n"
        }
        _ => "",
    });
    text
}

/// Behaviour of the tool, as its annotations declare it.
fn hints(annotations: &ToolAnnotations) -> impl Iterator<Item = &'static str> {
    let said = [
        (annotations.read_only_hint, "read-only", "not read-only"),
        (
            annotations.destructive_hint,
            "may be destructive",
            "not destructive",
        ),
        (annotations.idempotent_hint, "idempotent", "not idempotent"),
        (
            annotations.open_world_hint,
            "may reach other systems",
            "stays on this machine",
        ),
    ];
    let words = said
        .into_iter()
        .map(|(hint, yes, no)| Some(if hint? { yes } else { no }));
    words.flatten()
}

fn options(schema: &Value) -> String {
    let options = properties(schema, 1);
    if options.is_empty() {
        return "\nNo options.\n".to_owned();
    }
    format!("\nOptions:\n{options}")
}

/// Properties of an object or of the objects in a list, with nested ones, indented by depth.
fn properties(schema: &Value, depth: usize) -> String {
    let mut text = String::new();
    let Some(options) = schema["properties"].as_object() else {
        return match schema.get("items") {
            Some(items) => properties(items, depth),
            None => text,
        };
    };
    let indent = "  ".repeat(2 * depth - 1);
    let is_required = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|required| required.iter().any(|required| required == name))
    };
    for (name, option) in options {
        text += &format!("{indent}{name}: {}", value_type(option));
        if is_required(name) {
            text.push_str(", required");
        }
        if let Some(default) = option.get("default") {
            text += &format!(", default {default}");
        }
        text.push('\n');
        for line in option["description"].as_str().unwrap_or_default().lines() {
            text += &format!("{indent}    {line}\n");
        }
        if let Some(examples) = option["examples"].as_array().filter(|all| !all.is_empty()) {
            let examples: Vec<_> = examples.iter().map(Value::to_string).collect();
            text += &format!("{indent}    for example {}\n", examples.join(", "));
        }
        text += &properties(option, depth + 1);
    }
    text
}

/// Readable type of a value: `integer from 1 to 9`.
fn value_type(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        return values
            .iter()
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join(" | ");
    }
    let kind = schema["type"].as_str().unwrap_or("any JSON value");
    let (min, max, unit) = match kind {
        "string" => ("minLength", "maxLength", " characters"),
        "array" => ("minItems", "maxItems", " elements"),
        _ => ("minimum", "maximum", ""),
    };
    let mut text = match (schema.get(min), schema.get(max)) {
        (Some(min), Some(max)) => format!("{kind} from {min} to {max}{unit}"),
        (Some(min), None) => format!("{kind} of at least {min}{unit}"),
        (None, Some(max)) => format!("{kind} of at most {max}{unit}"),
        (None, None) => kind.to_owned(),
    };
    if let Some(pattern) = schema["pattern"].as_str() {
        text += &format!(" that matches `{pattern}`");
    }
    if let Some(format) = schema["format"].as_str() {
        text += &format!(" in the format `{format}`");
    }
    if let Some(each) = schema.get("items") {
        text += &format!(", each: {}", value_type(each));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, expected: &str) {
        assert_eq!(value_type(schema), expected);
    }

    #[test]
    fn value_type_includes_bounds() {
        check(&json!({}), "any JSON value");
        check(&json!({"type": "boolean"}), "boolean");
        check(
            &json!({"type": "integer", "minimum": 1, "maximum": 9}),
            "integer from 1 to 9",
        );
        check(
            &json!({"type": "number", "maximum": 0.5}),
            "number of at most 0.5",
        );
        check(
            &json!({"type": "string", "minLength": 1}),
            "string of at least 1 characters",
        );
        check(
            &json!({"type": "string", "enum": ["a", "b"]}),
            r#""a" | "b""#,
        );
    }

    #[test]
    fn value_type_includes_pattern_and_elements() {
        check(
            &json!({"type": "string", "pattern": "^x"}),
            "string that matches `^x`",
        );
        check(
            &json!({"type": "array", "items": {}}),
            "array, each: any JSON value",
        );
        check(
            &json!({"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 9}}),
            "array of at most 3 elements, each: string of at most 9 characters",
        );
    }
}
