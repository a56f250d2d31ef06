//! Tools and resources that are functions of the embedding program. The schema of a tool comes from the argument
//! type; what reaches the function has been checked against it.

use std::fmt;
use std::sync::Arc;

use mcpd_protocol::{CallToolResult, LoggingLevel};
use mcpd_scriptspec::ScriptPath;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::call::{invalid_arguments, text_of};
use crate::catalog::Catalog;
use crate::context::Context;
use crate::output::without_position;
use crate::schema::Schema;
use crate::spans::ChildSpan;
use crate::tool::Run;
use crate::trace::TraceContext;
use crate::{Principal, Server};

mod resource;

pub use resource::IntoResourceBody;
pub(crate) use resource::NativeResource;

/// Where a native tool is called or a native resource is read, and what it can tell its caller while it works.
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

    /// The server that was called.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Who calls, as the transport has found out.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.request.principal
    }

    /// What is served at this moment that the caller may use.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.server.catalog_for(self.principal())
    }

    /// Returns whether the caller may use what is at `path`, or might if anything were.
    #[must_use]
    pub fn allows(&self, path: &ScriptPath) -> bool {
        let access = self.principal().access();
        access.is_none_or(|access| access.allows(path))
    }

    /// The circumstances of the request.
    pub(crate) fn request(&self) -> &Context {
        &self.request
    }

    /// The trace that the call is part of, to be passed on to whoever else does something for it.
    #[must_use]
    pub fn trace(&self) -> &TraceContext {
        &self.request.trace
    }

    /// A request to another server begins, for the tool or prompt that is called `name` there.
    #[must_use]
    pub fn outgoing(&self, method: &str, name: Option<&str>) -> Outgoing {
        let span = self.request.trail.span().outgoing(method, name);
        let trace = span.trace(self.trace().clone());
        Outgoing { span, trace }
    }

    /// The least level the caller wants to see, if it wants to see any messages.
    #[must_use]
    pub fn log_level(&self) -> Option<LoggingLevel> {
        self.request.side.log_level()
    }

    /// Sends a log message to the caller, if it wants one of that level.
    pub fn log(&self, level: LoggingLevel, text: &str) {
        self.request.side.log(level, &self.logger, text);
    }

    /// Tells the caller how far the work is, if it wants to know. A value that is not greater than the
    /// last one is not sent.
    pub fn progress(&mut self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.request.side.progress(progress, total, message);
    }
}

/// A request to another server, made for a call: a span below that of the call, where anybody wants spans. Dropped before
/// its end, it was cancelled.
#[derive(Debug)]
pub struct Outgoing {
    span: ChildSpan,
    trace: TraceContext,
}

impl Outgoing {
    /// The trace that the request is part of, to be sent along with it.
    #[must_use]
    pub fn trace(&self) -> &TraceContext {
        &self.trace
    }

    /// The request is answered, or never will be: `error` is the kind of failure if it is one, such as the code of an
    /// error, and never its text.
    pub fn ended(self, error: Option<&str>) {
        self.span.answered(error);
    }
}

/// What a native tool may return.
pub trait IntoToolResult {
    /// The result the caller gets.
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

/// An error is a result too: its text is for the model.
impl<T: IntoToolResult, E: fmt::Display> IntoToolResult for Result<T, E> {
    fn into_tool_result(self) -> CallToolResult {
        match self {
            Ok(value) => value.into_tool_result(),
            Err(error) => CallToolResult::error(error.to_string()),
        }
    }
}

/// Structured content: any value with a JSON form, given as `structuredContent` and as text.
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
            Err(error) => CallToolResult::error(format!("the result has no JSON form: {error}")),
        }
    }
}

/// Starts a call with the text of its arguments.
type Start = dyn Fn(&str, CallContext) -> Run + Send + Sync;

/// A function of the program, and what its arguments must look like.
pub(crate) struct NativeTool {
    schema: Schema,
    start: Box<Start>,
}

impl NativeTool {
    /// Wraps `function`; also gives the JSON Schema of its argument type.
    ///
    /// # Errors
    ///
    /// When the type's schema describes no object, or is no valid schema.
    pub(crate) fn new<A, F, R, O>(function: F) -> Result<(Self, Value), String>
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = O> + Send + 'static,
        O: IntoToolResult,
    {
        let mut schema = schemars::schema_for!(A);
        // Neither tells a model anything, and several clients refuse an object without `properties`.
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
            // From the text, so that what is kept as it is, such as a `RawValue`, is what was sent.
            move |text: &str, context| match serde_json::from_str::<A>(text) {
                Ok(arguments) => {
                    let function = Arc::clone(&function);
                    Box::pin(async move {
                        Ok(function(arguments, context).await.into_tool_result().into())
                    }) as Run
                }
                Err(error) => refused(&without_position(&error)),
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

    /// Checks the arguments and, if they are right, calls the function.
    pub(crate) fn call(&self, arguments: Option<&RawValue>, context: CallContext) -> Run {
        match self.schema.check_arguments(arguments) {
            Ok(repaired) => (self.start)(text_of(repaired.as_deref().or(arguments)), context),
            Err(faults) => refused(&faults),
        }
    }
}

impl fmt::Debug for NativeTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeTool").finish_non_exhaustive()
    }
}

fn refused(faults: &str) -> Run {
    Box::pin(std::future::ready(Ok(invalid_arguments(faults).into())))
}
