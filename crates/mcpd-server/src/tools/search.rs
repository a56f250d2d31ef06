//! The tools `search_tools`, which finds tools by what they do, and `call_tool`, which calls one
//! that is not listed. A call of `call_tool` is replaced with the call that it stands for before
//! anything looks at it, so the body here only reports faulty arguments.

use std::sync::Arc;

use mcpd_protocol as protocol;
use mcpd_protocol::method::{CallToolResult, ToolAnnotations};
use mcpd_scriptspec::ScriptPath;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::catalog::call::CallContext;
use crate::catalog::search::Search;
use crate::catalog::tool::{Tool, ToolBody};
use crate::catalog::{Catalog, ListForm};
use crate::message::arguments::{arguments_text, invalid_arguments};
use crate::message::call::{CallStart, InnerCall};
use crate::message::raw::raw;
use crate::script::schema::Schema;

/// Names of the two tools.
const SEARCH_TOOL: &str = "search_tools";
const CALL_TOOL: &str = "call_tool";

/// Maximum number of characters of a query.
const MAX_QUERY_CHARS: usize = 1000;

/// Hint for models on how to find tools.
pub(crate) const INSTRUCTIONS: &str = "This server has more tools than it lists: find them with `search_tools`, and call them with `call_tool`.";

/// Makes the two tools.
pub(crate) fn tools(search: &Search) -> [Tool; 2] {
    let default = search.default_results();
    let query = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY_CHARS, "description": "What the tool should do, in a few words"},
            "limit": {"type": "integer", "minimum": 1, "maximum": Search::MAX_RESULTS, "default": default, "description": "How many tools to return"},
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    let call = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Name of the tool, from search_tools"},
            "arguments": {"type": "object", "properties": {}, "description": "Arguments that match the inputSchema of the tool"},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    let mut annotations = ToolAnnotations::default();
    annotations.read_only_hint = Some(true);
    let finder = SearchBody {
        schema: compile(&query),
        default,
    };
    let caller = CallBody {
        schema: compile(&call),
    };
    [
        tool(
            SEARCH_TOOL,
            "Searches the tools of this server, most of which are not listed. Returns name, description and inputSchema of the best matches, and names of more; call one with call_tool, or search for a name to get its inputSchema.",
            &query,
            Some(annotations),
            finder,
        ),
        tool(
            CALL_TOOL,
            "Calls a tool that search_tools has found, by its name. The result is that of the tool.",
            &call,
            None,
            caller,
        ),
    ]
}

/// Returns whether `tool` is the built-in `call_tool`.
pub(crate) fn is_call_tool(tool: &Tool) -> bool {
    tool.is_part_of_search() && tool.path().as_str() == CALL_TOOL
}

fn compile(schema: &Value) -> Schema {
    Schema::compile(schema).expect("the schema is a constant")
}

fn tool(
    name: &str,
    description: &str,
    schema: &Value,
    annotations: Option<ToolAnnotations>,
    body: impl ToolBody + 'static,
) -> Tool {
    let path: ScriptPath = name.parse().expect("the name is a constant");
    let mut definition = protocol::method::Tool::new(name, raw(schema));
    definition.description = Some(description.to_owned());
    definition.annotations = annotations;
    Tool::built_in(path, definition, body)
}

/// Implementation of `search_tools`.
#[derive(Debug)]
struct SearchBody {
    schema: Schema,
    /// Number of tools that are returned by default.
    default: usize,
}

#[derive(Debug, Deserialize)]
struct SearchArguments {
    query: String,
    limit: Option<usize>,
}

/// Tool in a result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FoundTool {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    input_schema: Box<RawValue>,
}

#[derive(Debug, Serialize)]
struct FoundTools {
    tools: Vec<FoundTool>,
    /// Names of those that match less.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl ToolBody for SearchBody {
    /// Searches the tools that the caller may see. It waits for no permit, as a list does not.
    fn start(self: Arc<Self>, arguments: Option<&RawValue>, context: CallContext) -> CallStart {
        let arguments = match read::<SearchArguments>(&self.schema, arguments) {
            Ok(arguments) => arguments,
            Err(faults) => return CallStart::reject(Ok(invalid_arguments(&faults).into())),
        };
        let limit = arguments
            .limit
            .unwrap_or(self.default)
            .min(Search::MAX_RESULTS);
        let catalog = context.catalog();
        let request = context.request();
        let form = ListForm {
            version: request.version,
            names: request.peer.names,
            has_apps: false,
        };
        let mut found = catalog.find_tools(&arguments.query, Search::MAX_RESULTS, form);
        let more = found.split_off(limit.min(found.len()));
        let result = describe_found(found, more, &catalog, &arguments.query);
        CallStart::reject(Ok(result.into()))
    }

    fn is_part_of_search(&self) -> bool {
        true
    }
}

fn describe_found(
    found: Vec<protocol::method::Tool>,
    more: Vec<protocol::method::Tool>,
    catalog: &Catalog,
    query: &str,
) -> CallToolResult {
    let hint = found.is_empty().then(|| {
        let tools = catalog.tools().iter();
        let number = tools.filter(|tool| !tool.is_part_of_search()).count();
        format!(
            "None of {number} tools matches {query:?}. Try other words for what the tool should do and for what it works on, such as `list files`, in the language of the descriptions."
        )
    });
    let tools = found.into_iter().map(|tool| FoundTool {
        name: tool.name,
        description: tool.description.or(tool.title),
        input_schema: tool.input_schema,
    });
    let found = FoundTools {
        tools: tools.collect(),
        more: more.into_iter().map(|tool| tool.name).collect(),
        hint,
    };
    let structured = raw(&found);
    let text = found.hint.as_deref().unwrap_or(structured.get());
    let mut result = CallToolResult::text(text);
    result.structured_content = Some(structured);
    result
}

/// Reads arguments that match the schema.
///
/// # Errors
///
/// Returns the faults, one per line.
fn read<T: DeserializeOwned>(schema: &Schema, arguments: Option<&RawValue>) -> Result<T, String> {
    let repaired = schema.check_arguments(arguments)?;
    let text = arguments_text(repaired.as_deref().or(arguments));
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Implementation of `call_tool`.
#[derive(Debug)]
struct CallBody {
    schema: Schema,
}

#[derive(Debug, Deserialize)]
struct CallArguments {
    name: String,
    arguments: Option<Box<RawValue>>,
}

impl CallBody {
    fn read(&self, arguments: Option<&RawValue>) -> Result<CallArguments, String> {
        let call: CallArguments = read(&self.schema, arguments)?;
        if call.name == CALL_TOOL {
            return Err(format!("`name`: `{CALL_TOOL}` cannot call itself"));
        }
        Ok(call)
    }
}

impl ToolBody for CallBody {
    fn start(self: Arc<Self>, arguments: Option<&RawValue>, _: CallContext) -> CallStart {
        let faults = match self.read(arguments) {
            Ok(_) => format!("`name`: `{CALL_TOOL}` cannot be called from here; name the tool"),
            Err(faults) => faults,
        };
        CallStart::reject(Ok(invalid_arguments(&faults).into()))
    }

    fn is_part_of_search(&self) -> bool {
        true
    }

    fn read_inner_call(&self, arguments: Option<&RawValue>) -> Option<InnerCall> {
        let call = self.read(arguments).ok()?;
        Some(InnerCall {
            name: to_raw_value(&call.name).ok()?,
            arguments: call.arguments.unwrap_or_else(|| raw(&json!({}))),
        })
    }
}
