//! Native tools and resources: functions of the embedding program. The schema of a tool is that
//! of its argument type, and arguments are checked against it before the function is called.

use std::fmt;
use std::sync::Arc;

use mcpd_protocol::{CallToolResult, LoggingLevel};
use mcpd_scriptspec::ScriptPath;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::catalog::Catalog;
use crate::catalog::schema::Schema;
use crate::execution::output::without_position;
use crate::message::arguments::{arguments_text, invalid_arguments};
use crate::message::call::CallFuture;
use crate::message::trace::TraceContext;
use crate::observe::spans::ChildSpan;
use crate::policy::principal::Principal;
use crate::request::context::Context;
use crate::server::Server;

mod resource;

pub use resource::IntoResourceBody;
pub(crate) use resource::NativeResource;

/// Context of a call of a native tool or a read of a native resource, with messages to the
/// caller.
#[derive(Debug)]
pub struct CallContext {
    server: Server,
    request: Context,
    logger: String,
}

impl CallContext {
    pub(crate) fn new(server: &Server, context: &Context, path: &ScriptPath) -> Self {
        Self {
            server: server.clone(),
            request: context.clone(),
            logger: path.as_str().to_owned(),
        }
    }

    /// Server that received the call.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Caller, as the transport has authenticated it.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.request.peer.principal
    }

    /// Current catalog, as far as the caller may use it.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.server.catalog_for(self.principal())
    }

    /// Returns whether the caller may use the entry at `path`, whether or not there is one.
    #[must_use]
    pub fn allows(&self, path: &ScriptPath) -> bool {
        let access = self.principal().access();
        access.is_none_or(|access| access.allows(path))
    }

    /// Context of the request.
    pub(crate) fn request(&self) -> &Context {
        &self.request
    }

    /// Trace of the call, to pass on to other services that take part in it.
    #[must_use]
    pub fn trace(&self) -> &TraceContext {
        &self.request.peer.trace
    }

    /// Begins a span for a request to another server, about its tool or prompt called `name`.
    #[must_use]
    pub fn begin_outgoing_request(&self, method: &str, name: Option<&str>) -> OutgoingRequest {
        let span = self.request.record.span().start_outgoing(method, name);
        let trace = span.continue_trace(self.trace().clone());
        OutgoingRequest { span, trace }
    }

    /// Minimum level of log messages for the caller, if it wants any.
    #[must_use]
    pub fn log_level(&self) -> Option<LoggingLevel> {
        self.request.side.log_level()
    }

    /// Sends a log message to the caller, if it wants that level.
    pub fn log(&self, level: LoggingLevel, text: &str) {
        self.request.side.log(level, &self.logger, text);
    }

    /// Sends progress to the caller, if it wants that. A value not greater than the last one is
    /// not sent.
    pub fn progress(&mut self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.request.side.progress(progress, total, message);
    }
}

/// Request to another server on behalf of a call: a child span of the call, if spans are enabled.
/// A drop before its end means that it was cancelled.
#[derive(Debug)]
pub struct OutgoingRequest {
    span: ChildSpan,
    trace: TraceContext,
}

impl OutgoingRequest {
    /// Trace of the request, to send along with it.
    #[must_use]
    pub fn trace(&self) -> &TraceContext {
        &self.trace
    }

    /// Ends the request. `error` is the kind of a failure, such as the code of an error, and
    /// never its text.
    pub fn finish(self, error: Option<&str>) {
        self.span.finish_request(error);
    }
}

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

/// Function of the program, and the schema of its arguments.
pub(crate) struct NativeTool {
    schema: Schema,
    start: Box<Start>,
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
                start,
            },
            schema,
        ))
    }

    /// Checks the arguments and, if they are valid, calls the function.
    pub(crate) fn call(&self, arguments: Option<&RawValue>, context: CallContext) -> CallFuture {
        match self.schema.check_arguments(arguments) {
            Ok(repaired) => {
                (self.start)(arguments_text(repaired.as_deref().or(arguments)), context)
            }
            Err(faults) => reject_arguments(&faults),
        }
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
