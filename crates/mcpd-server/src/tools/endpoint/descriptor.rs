//! Description of a tool by an endpoint, made from its MCP definition and its script spec.

use mcpd_scriptspec::ScriptSpec;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::safety;
use crate::catalog::tool::Tool;
use crate::message::raw::raw;

/// Members of a definition's `_meta` for fields of a descriptor that MCP lacks.
pub(super) const COMMAND: &str = "mcpd/command";
pub(super) const SAFETY: &str = "mcpd/safety";
pub(super) const RESULT_SCHEMA: &str = "mcpd/result-schema";

/// Tool as described by an action endpoint.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Descriptor {
    /// Path of the tool.
    pub name: String,
    /// Description for people and models; may be empty.
    pub description: String,
    /// Example call: given by the script, or made with one word per option.
    pub command: String,
    /// Place where the tool runs.
    pub origin: Origin,
    /// Safety: given by the script, or made from its hints.
    pub safety: String,
    /// JSON Schema of the arguments.
    pub input_schema: Box<RawValue>,
    /// JSON Schema of the answer to a call.
    pub result_schema: Box<RawValue>,
}

/// Place where a tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// This server.
    Local,
    /// Another endpoint or server.
    Remote,
}

impl Descriptor {
    /// Describes `tool`.
    #[must_use]
    pub fn of(tool: &Tool) -> Self {
        let definition = tool.definition();
        let command = own(tool, |spec| &spec.command, COMMAND);
        let safety = own(tool, |spec| &spec.safety, SAFETY);
        let origin = match tool.source() {
            Some(_) => Origin::Remote,
            None => Origin::Local,
        };
        Self {
            name: tool.path().to_string(),
            description: definition.description.clone().unwrap_or_default(),
            command: command.unwrap_or_else(|| usage(tool)),
            origin,
            safety: safety.unwrap_or_else(|| safety::of(definition.annotations.as_ref())),
            input_schema: definition.input_schema.clone(),
            result_schema: match word(tool, RESULT_SCHEMA) {
                Some(schema) => raw(schema),
                None => raw(&result_schema(definition.output_schema.as_deref())),
            },
        }
    }
}

/// Returns a text given by the script, or one that came with a tool from elsewhere.
fn own(tool: &Tool, of: impl FnOnce(&ScriptSpec) -> &Option<String>, key: &str) -> Option<String> {
    match tool.spec() {
        Some(spec) => of(spec).clone(),
        None => word(tool, key)?.as_str().map(str::to_owned),
    }
}

/// Returns the member `key` that came with a tool from elsewhere.
fn word<'a>(tool: &'a Tool, key: &str) -> Option<&'a Value> {
    tool.definition().meta.as_ref()?.get(key)
}

/// Formats the tool and its options as `mcpd call` takes them, with optional ones in brackets.
fn usage(tool: &Tool) -> String {
    let schema: Value =
        serde_json::from_str(tool.definition().input_schema.get()).unwrap_or_default();
    let is_required = |name: &str| {
        let required = schema["required"].as_array();
        required.is_some_and(|required| required.iter().any(|required| required == name))
    };
    let options = schema["properties"].as_object().into_iter().flatten();
    let words = options.map(|(name, option)| {
        let word = format!("{name}={}", value(option));
        match is_required(name) {
            true => word,
            false => format!("[{word}]"),
        }
    });
    let words: Vec<_> = [tool.path().to_string()].into_iter().chain(words).collect();
    words.join(" ")
}

/// Returns the placeholder of a value: its allowed texts, or its type.
fn value(option: &Value) -> String {
    if let Some(values) = option["enum"].as_array() {
        let texts = values.iter().map(|value| match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        });
        return texts.collect::<Vec<_>>().join("|");
    }
    option["type"].as_str().unwrap_or("json").to_uppercase()
}

/// Returns the schema of the whole answer; `output` is the schema of the tool's JSON output, if
/// it has one.
fn result_schema(output: Option<&RawValue>) -> Value {
    let mut stdout = json!({"type": "string"});
    if let Some(output) = output {
        stdout["contentMediaType"] = json!("application/json");
        stdout["contentSchema"] = serde_json::from_str(output.get()).unwrap_or_default();
    }
    json!({
        "type": "object",
        "properties": {
            "type": {"const": "result"},
            "tool": {"type": "string"},
            "result": {
                "type": "object",
                "properties": {"stdout": stdout, "exit_code": {"type": "integer"}},
                "required": ["stdout", "exit_code"]
            }
        },
        "required": ["type", "tool", "result"]
    })
}
