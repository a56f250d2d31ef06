//! Native tools and resources: functions of the embedding program. The schema of a tool is that
//! of its argument type, and arguments are checked against it before the function is called.

use std::fmt;
use std::sync::Arc;

use mcpd_protocol as protocol;
use mcpd_protocol::method::CallToolResult;
use mcpd_scriptspec::{PathError, ScriptPath};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::catalog::call::CallContext;
use crate::catalog::tool::{Tool, ToolBody};
use crate::execution::output::without_position;
use crate::limits::run_queue::ScriptQueue;
use crate::message::arguments::{arguments_text, invalid_arguments};
use crate::message::call::{CallFuture, CallStart};
use crate::message::raw::raw;
use crate::script::schema::Schema;

mod resource;

pub use resource::IntoResourceBody;
pub(crate) use resource::NativeResource;

/// Return type of a native tool.
pub trait IntoToolResult {
    /// Converts the value to the result for the caller.
    fn into_tool_result(self) -> CallToolResult;
}

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> CallToolResult {
        self
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> CallToolResult {
        CallToolResult::text(self)
    }
}

impl IntoToolResult for &str {
    fn into_tool_result(self) -> CallToolResult {
        self.to_owned().into_tool_result()
    }
}

/// An error is a result as well: its text is for the model.
impl<T: IntoToolResult, E: fmt::Display> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> CallToolResult {
        match self {
            Ok(value) => value.into_tool_result(),
            Err(error) => CallToolResult::error(error.to_string()),
        }
    }
}

/// Structured content: any value with a JSON form, sent as `structuredContent` and as text.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper, like axum's Json")]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoToolResult for Json<T> {
    fn into_tool_result(self) -> CallToolResult {
        match to_raw_value(&self.0) {
            Ok(value) => {
                let mut result = CallToolResult::text(value.get());
                result.structured_content = Some(value);
                result
            }
            Err(error) => {
                CallToolResult::error(format!("the result cannot be encoded as JSON: {error}"))
            }
        }
    }
}

/// Starts a call with the text of its arguments.
type Start = dyn Fn(&str, CallContext) -> CallFuture + Send + Sync;

/// Native tool before its server: its name, its description, and its function or the fault of its
/// arguments.
#[derive(Debug)]
pub(crate) struct NativeToolDescription {
    name: String,
    description: String,
    tool: Result<(NativeTool, Value), String>,
}

impl NativeToolDescription {
    pub(crate) fn new<A, F, R, O>(name: String, description: String, function: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = O> + Send + 'static,
        O: IntoToolResult,
    {
        Self {
            name,
            description,
            tool: NativeTool::new(function),
        }
    }

    /// Marks the tool as one whose calls start another tool.
    pub(crate) fn starting(mut self, started_call: ReadStartedCall) -> Self {
        if let Ok((tool, _)) = &mut self.tool {
            tool.started_call = Some(started_call);
        }
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Creates the tool.
    ///
    /// # Errors
    ///
    /// Fails if its name is no path, or its arguments have no schema.
    pub(crate) fn into_tool(self) -> Result<Tool, String> {
        let path: ScriptPath = self
            .name
            .parse()
            .map_err(|error: PathError| error.to_string())?;
        let (body, schema) = self.tool?;
        let mut definition = protocol::method::Tool::new(self.name, raw(&schema));
        definition.description = Some(self.description);
        Ok(Tool::built_in(path, definition, body))
    }
}

/// Reads the name and the arguments of another tool that a call starts.
type ReadStartedCall = fn(&RawValue) -> Option<(String, Box<RawValue>)>;

/// Function of the program, and the schema of its arguments.
pub(crate) struct NativeTool {
    schema: Schema,
    queue: Arc<ScriptQueue>,
    start: Box<Start>,
    started_call: Option<ReadStartedCall>,
}

impl NativeTool {
    /// Wraps `function`, and returns the JSON Schema of its argument type as well.
    ///
    /// # Errors
    ///
    /// Fails if the schema of the type describes no object, or is invalid.
    pub(crate) fn new<A, F, R, O>(function: F) -> Result<(Self, Value), String>
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = O> + Send + 'static,
        O: IntoToolResult,
    {
        let mut schema = schemars::schema_for!(A);
        // Neither helps a model, and several clients reject an object without `properties`.
        schema.remove("$schema");
        schema.remove("title");
        schema
            .ensure_object()
            .entry("properties")
            .or_insert_with(|| json!({}));
        let schema = schema.to_value();
        if schema.get("type").is_none_or(|kind| kind != "object") {
            return Err("its arguments must be a struct with named fields".to_owned());
        }
        let compiled = Schema::compile(&schema)?;
        let function = Arc::new(function);
        let start = Box::new(
            // Parsed from the text, so that fields such as `RawValue` hold exactly what was sent.
            move |text: &str, context| match serde_json::from_str::<A>(text) {
                Ok(arguments) => {
                    let function = Arc::clone(&function);
                    Box::pin(async move {
                        Ok(function(arguments, context).await.into_tool_result().into())
                    }) as CallFuture
                }
                Err(error) => reject_arguments(&without_position(&error)),
            },
        );
        Ok((
            Self {
                schema: compiled,
                queue: Arc::default(),
                start,
                started_call: None,
            },
            schema,
        ))
    }
}

impl ToolBody for NativeTool {
    /// Checks the arguments and, if they are valid, calls the function.
    fn start(self: Arc<Self>, arguments: Option<&RawValue>, context: CallContext) -> CallStart {
        let permit = context.request_permit(&self.queue, ("tool", context.path().as_str()));
        match self.schema.check_arguments(arguments) {
            Ok(repaired) => {
                let arguments = repaired.as_deref().or(arguments);
                let run = (self.start)(arguments_text(arguments), context);
                CallStart::Started(Box::pin(permit.run(run)))
            }
            Err(faults) => CallStart::reject(Ok(invalid_arguments(&faults).into())),
        }
    }

    fn started_call(&self, arguments: Option<&RawValue>) -> Option<(String, Box<RawValue>)> {
        let read = self.started_call?;
        let repaired = self.schema.check_arguments(arguments).ok()?;
        read(repaired.as_deref().or(arguments)?)
    }
}

impl fmt::Debug for NativeTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeTool").finish_non_exhaustive()
    }
}

fn reject_arguments(faults: &str) -> CallFuture {
    Box::pin(std::future::ready(Ok(invalid_arguments(faults).into())))
}
