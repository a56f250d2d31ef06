//! Subjects of tests: tools, prompts and resources of a script, each with the request that gets
//! its result and the schema of its arguments.

use std::collections::BTreeMap;

use mcpd_protocol::Method as _;
use mcpd_protocol::jsonrpc::{self, RequestId};
use mcpd_protocol::method::{
    CallToolRequest, CallToolRequestParams, GetPromptRequest, GetPromptRequestParams,
    InputResponses, ReadResourceRequest, ReadResourceRequestParams,
};
use mcpd_scriptspec::Role;
use mcpd_scriptspec::uri::UriTemplate;
use mcpd_server::Catalog;
use mcpd_server::catalog::scan::ScannedScript;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::ending::Ending;

/// Bytes that are encoded in a variable of a template: all but the unreserved ones of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Tool, prompt or resource of a script.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Subject {
    /// Kind, which decides on the request.
    pub kind: SubjectKind,
    /// JSON Schema of its arguments.
    pub schema: Value,
}

/// Kind of a subject.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SubjectKind {
    /// It is called.
    Tool,
    /// Its messages are got; arguments are texts.
    Prompt,
    /// The resource at this URI is read.
    Resource(String),
    /// The resource at the URI that arguments make of this template is read.
    Template(UriTemplate),
}

impl Subject {
    /// Finds what a catalog serves of a script.
    pub(crate) fn of(script: &ScannedScript, catalog: &Catalog) -> Option<Self> {
        let path = script.path.as_str();
        let spec = script.spec.as_deref();
        let (kind, schema) = match spec.map(|spec| &spec.role) {
            Some(Role::Prompt) => {
                catalog.prompt(path)?;
                (SubjectKind::Prompt, spec?.input_schema())
            }
            Some(Role::Resource {
                uri, is_template, ..
            }) if *is_template => {
                let template: UriTemplate = uri.parse().ok()?;
                let served = catalog.template(uri)?;
                (served.path() == &script.path).then_some(())?;
                let schema = schema_of_variables(&template, &spec?.input_schema());
                (SubjectKind::Template(template), schema)
            }
            Some(Role::Resource { uri, .. }) => {
                let served = catalog.resource(uri)?;
                (served.path() == &script.path).then_some(())?;
                (
                    SubjectKind::Resource(uri.clone()),
                    json!({"type": "object"}),
                )
            }
            _ => {
                let tool = catalog.tool(path)?;
                // Another root may have a tool of the same name.
                (tool.file() == Some(&*script.file)).then_some(())?;
                let schema = serde_json::from_str(tool.definition().input_schema.get());
                (SubjectKind::Tool, schema.unwrap_or_default())
            }
        };
        Some(Self { kind, schema })
    }

    /// Returns whether a catalog has it under this path.
    pub(crate) fn is_served(&self, path: &str, catalog: &Catalog) -> bool {
        match &self.kind {
            SubjectKind::Tool => catalog.tool(path).is_some(),
            SubjectKind::Prompt => catalog.prompt(path).is_some(),
            SubjectKind::Resource(uri) => catalog.resource(uri).is_some(),
            SubjectKind::Template(template) => catalog.template(template.as_str()).is_some(),
        }
    }

    /// Name of its kind.
    pub(crate) const fn kind_name(&self) -> &'static str {
        match self.kind {
            SubjectKind::Tool => "tool",
            SubjectKind::Prompt => "prompt",
            SubjectKind::Resource(_) | SubjectKind::Template(_) => "resource",
        }
    }

    /// Request that gets its result.
    ///
    /// # Errors
    ///
    /// The call is refused, because no request has these arguments.
    pub(crate) fn request(
        &self,
        path: &str,
        arguments: &Map<String, Value>,
        meta: Box<RawValue>,
        responses: Option<InputResponses>,
        state: Option<String>,
    ) -> Result<Vec<u8>, Ending> {
        let id = RequestId::from(1);
        let failed = |error: serde_json::Error| Ending::Failed(error.to_string());
        let message = match &self.kind {
            SubjectKind::Tool => {
                let mut params = CallToolRequestParams::new(path)
                    .with_arguments(to_raw_value(arguments).map_err(failed)?);
                params.meta = Some(meta);
                (params.input_responses, params.request_state) = (responses, state);
                jsonrpc::request(&id, CallToolRequest::NAME, &params)
            }
            SubjectKind::Prompt => {
                let mut params = GetPromptRequestParams::new(path);
                params.arguments = Some(texts(arguments));
                params.meta = Some(meta);
                (params.input_responses, params.request_state) = (responses, state);
                jsonrpc::request(&id, GetPromptRequest::NAME, &params)
            }
            SubjectKind::Resource(_) | SubjectKind::Template(_) => {
                let mut params = ReadResourceRequestParams::new(self.uri(arguments)?);
                params.meta = Some(meta);
                (params.input_responses, params.request_state) = (responses, state);
                jsonrpc::request(&id, ReadResourceRequest::NAME, &params)
            }
        };
        message.map_err(failed)
    }

    /// URI of the resource with these arguments.
    fn uri(&self, arguments: &Map<String, Value>) -> Result<String, Ending> {
        let refused = |why: String| Err(Ending::Refused(why));
        let template = match &self.kind {
            SubjectKind::Template(template) => template,
            SubjectKind::Resource(uri) if arguments.is_empty() => return Ok(uri.clone()),
            _ => return refused("a resource with one URI has no arguments".to_owned()),
        };
        let mut values = texts(arguments);
        let mut uri = template.as_str().to_owned();
        let mut wanted = Vec::new();
        for name in template.variables() {
            let Some(value) = values.remove(name) else {
                return refused(format!(
                    "the template `{template}` needs the argument `{name}`"
                ));
            };
            let encoded = utf8_percent_encode(&value, ENCODED).to_string();
            for expression in [format!("{{{name}}}"), format!("{{+{name}}}")] {
                uri = uri.replace(&expression, &encoded);
            }
            wanted.push((name.as_str(), value));
        }
        if let Some(name) = values.keys().next() {
            return refused(format!(
                "the template `{template}` has no variable `{name}`"
            ));
        }
        match template.values(&uri) {
            Some(values) if values == wanted => Ok(uri),
            _ => refused(format!(
                "no URI of the template `{template}` has these arguments"
            )),
        }
    }
}

/// Arguments as texts, as people and URIs give them.
fn texts(arguments: &Map<String, Value>) -> BTreeMap<String, String> {
    let texts = arguments.iter().map(|(name, value)| {
        let text = value.as_str().map(str::to_owned);
        (name.clone(), text.unwrap_or_else(|| value.to_string()))
    });
    texts.collect()
}

/// Schema of the variables of a template, which are all required.
fn schema_of_variables(template: &UriTemplate, schema: &Value) -> Value {
    let variables = template.variables();
    let properties: Map<_, _> = variables
        .iter()
        .map(|name| (name.clone(), schema["properties"][name].clone()))
        .collect();
    json!({"type": "object", "properties": properties, "required": variables})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(template: &str, arguments: Value) -> Result<String, String> {
        let template = template.parse().unwrap();
        let subject = Subject {
            kind: SubjectKind::Template(template),
            schema: Value::Null,
        };
        let uri = subject.uri(arguments.as_object().unwrap());
        uri.map_err(|ending| ending.to_string())
    }

    #[test]
    fn arguments_become_a_uri() {
        let made = uri(
            "notes://{year}/{+path}",
            json!({"year": 2026, "path": "a/b ö"}),
        );
        assert_eq!(made.unwrap(), "notes://2026/a%2Fb%20%C3%B6");
        // A value is no template.
        let made = uri("n://{a}/{b}", json!({"a": "{b}", "b": "x"}));
        assert_eq!(made.unwrap(), "n://%7Bb%7D/x");
    }

    #[test]
    fn arguments_without_a_uri_are_refused() {
        let refusal = |arguments| uri("n://{a}-{b}", arguments).unwrap_err();
        assert!(refusal(json!({"a": "x"})).contains("needs the argument `b`"));
        assert!(refusal(json!({"a": "x", "b": "y", "c": "z"})).contains("no variable `c`"));
        assert!(refusal(json!({"a": "", "b": "y"})).contains("no URI"));
        assert!(refusal(json!({"a": "x-y", "b": "z"})).contains("no URI"));
    }
}
