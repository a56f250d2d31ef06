//! Arguments that HTTP headers repeat (`Mcp-Param-*`), for gateways that read no bodies. The tools
//! that ask for it are learned from the lists that pass by; until a tool has been listed, its calls
//! go without, and the server says so.
//! -- 2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::message::header_text;

/// Mark of such an argument in the schema of a tool.
const MARK: &str = "x-mcp-header";

/// Beginning of the names of these headers.
const PREFIX: &str = "mcp-param-";

/// Maximum number of tools whose marks are known. Calls of further ones go without headers.
const MAX_TOOLS: usize = 10_000;

/// Tools that want arguments repeated, by name.
#[derive(Debug, Default)]
pub(crate) struct ToolParameters(Mutex<BTreeMap<String, Vec<Parameter>>>);

/// Argument that a header repeats.
#[derive(Debug, Clone)]
struct Parameter {
    header: HeaderName,
    /// Names of the properties from the root of the arguments to the value.
    path: Vec<String>,
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    tools: Vec<ListedTool<'a>>,
}

#[derive(Deserialize)]
struct ListedTool<'a> {
    name: String,
    #[serde(borrow, rename = "inputSchema")]
    schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallMessage<'a> {
    #[serde(borrow)]
    params: CallParams<'a>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl ToolParameters {
    /// Learns the marks of the tools in a result of `tools/list`.
    pub(crate) fn learn(&self, result: &RawValue) {
        let mut table = self.table();
        if table.is_empty() && !result.get().contains(MARK) {
            return;
        }
        let Ok(list) = serde_json::from_str::<List<'_>>(result.get()) else {
            return;
        };
        for tool in list.tools {
            let schema = tool.schema.filter(|schema| schema.get().contains(MARK));
            let schema = schema.and_then(|schema| serde_json::from_str(schema.get()).ok());
            let mut marked = Vec::new();
            collect(&schema.unwrap_or_default(), &mut Vec::new(), &mut marked);
            if marked.is_empty() {
                table.remove(&tool.name);
            } else if table.len() < MAX_TOOLS || table.contains_key(&tool.name) {
                table.insert(tool.name, marked);
            }
        }
    }

    /// Adds the headers that this call of a tool needs.
    pub(crate) fn add_headers(&self, tool: &str, message: &[u8], headers: &mut HeaderMap) {
        let Some(parameters) = self.table().get(tool).cloned() else {
            return;
        };
        // The server refuses a faulty message, and says why.
        let Ok(call) = serde_json::from_slice::<CallMessage<'_>>(message) else {
            return;
        };
        for Parameter { header, path } in parameters {
            let value = call.params.arguments.and_then(|root| value_at(root, &path));
            let value = value.and_then(|value| HeaderValue::try_from(header_text(&value)).ok());
            if let Some(value) = value {
                headers.insert(header, value);
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Parameter>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Collects the marks that are reached through `properties` alone.
fn collect(schema: &Value, path: &mut Vec<String>, marked: &mut Vec<Parameter>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        path.push(name.clone());
        let mark = property.get(MARK).and_then(Value::as_str);
        let header = mark.and_then(|mark| HeaderName::try_from(format!("{PREFIX}{mark}")).ok());
        if let Some(header) = header {
            let path = path.clone();
            marked.push(Parameter { header, path });
        }
        collect(property, path, marked);
        path.pop();
    }
}

/// Returns the text of the string, number or boolean at `path`. Numbers keep all their digits.
fn value_at(root: &RawValue, path: &[String]) -> Option<String> {
    let Some((name, inside)) = path.split_first() else {
        let text = root.get();
        return match text.as_bytes().first()? {
            b'"' => serde_json::from_str(text).ok(),
            b'{' | b'[' | b'n' => None,
            _ => Some(text.to_owned()),
        };
    };
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(root.get()).ok()?;
    value_at(members.get(name.as_str())?, inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"tools": [
        {"name": "query", "inputSchema": {"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "at": {"properties": {"shard": {"type": "integer", "x-mcp-header": "Shard"}}},
            "items": {"items": {"type": "string", "x-mcp-header": "Item"}}
        }}},
        {"name": "plain", "inputSchema": {"properties": {"region": {"type": "string"}}}}
    ]}"#;

    #[track_caller]
    fn check(tool: &str, arguments: &str, expected: &[(&str, &str)]) {
        let parameters = ToolParameters::default();
        parameters.learn(&RawValue::from_string(LIST.to_owned()).unwrap());
        let message = format!(r#"{{"params": {{"name": "{tool}", "arguments": {arguments}}}}}"#);
        let mut headers = HeaderMap::new();
        parameters.add_headers(tool, message.as_bytes(), &mut headers);
        let found: BTreeMap<_, _> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(found, expected.iter().copied().collect(), "{arguments}");
    }

    #[test]
    fn marked_arguments_become_headers() {
        check(
            "query",
            r#"{"region": "größe", "at": {"shard": 12345678901234567890123}}"#,
            &[
                ("mcp-param-region", "=?base64?Z3LDtsOfZQ==?="),
                ("mcp-param-shard", "12345678901234567890123"),
            ],
        );
        check("query", r#"{"region": null, "items": ["a"]}"#, &[]);
        check("query", r#"{"region": {}, "at": 1}"#, &[]);
        check("plain", r#"{"region": "a"}"#, &[]);
        check("unknown", r#"{"region": "a"}"#, &[]);
    }

    #[test]
    fn later_list_replaces_the_marks_of_a_tool() {
        let parameters = ToolParameters::default();
        let learn = |list: &str| {
            parameters.learn(&RawValue::from_string(list.to_owned()).unwrap());
            parameters.table().len()
        };
        assert_eq!(learn(LIST), 1);
        assert_eq!(learn(r#"{"tools": [{"name": "other"}]}"#), 1);
        assert_eq!(
            learn(r#"{"tools": [{"name": "query", "inputSchema": {}}]}"#),
            0
        );
    }
}
