//! Resources, templates and prompts that are functions, of a source or of the embedding program.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use mcpd_protocol::JsonObject;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{GetPromptResult, ReadResourceResult};
use mcpd_scriptspec::{ScriptPath, ScriptSpec};

use crate::catalog::call::{CallContext, CallHost};
use crate::client::request::context::Context;
use crate::limits::run_queue::ScriptQueue;
use crate::policy::access::Defaults;
use crate::script::Script;

/// Future of one answer; dropping it cancels the request.
type HandlerFuture<T> = Pin<Box<dyn Future<Output = Result<T, ErrorObject>> + Send>>;

/// Function behind an entry that takes an `A` and returns a `T`.
pub(crate) struct RequestHandler<A, T> {
    /// Source that it comes from, for people, unless it is built in.
    source: Option<Arc<str>>,
    path: ScriptPath,
    queue: Arc<ScriptQueue>,
    handle: Box<dyn Fn(A, CallContext) -> HandlerFuture<T> + Send + Sync>,
}

/// Reads a resource by its URI.
pub(crate) type ResourceHandler = RequestHandler<String, ReadResourceResult>;
/// Gets a prompt with its arguments.
pub(crate) type PromptHandler = RequestHandler<JsonObject, GetPromptResult>;

impl<A, T> RequestHandler<A, T> {
    pub(crate) fn new<F, R>(source: Option<Arc<str>>, path: ScriptPath, handle: F) -> Self
    where
        F: Fn(A, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, ErrorObject>> + Send + 'static,
    {
        Self {
            source,
            path,
            queue: Arc::default(),
            handle: Box::new(move |request, context| Box::pin(handle(request, context))),
        }
    }

    pub(crate) fn path(&self) -> &ScriptPath {
        &self.path
    }

    /// Returns whether it is a function of the embedding program.
    pub(crate) fn is_built_in(&self) -> bool {
        self.source.is_none()
    }

    /// Handles a request when it is the caller's turn. `kind` and `name` identify the entry to the
    /// caller.
    pub(crate) fn handle(
        &self,
        host: &CallHost,
        context: &Context,
        (kind, name): (&'static str, &str),
        request: A,
    ) -> impl Future<Output = Result<T, ErrorObject>> + use<A, T> {
        let context = CallContext::new(host, context, &self.path);
        let permit = context.request_permit(&self.queue, (kind, name));
        permit.run((self.handle)(request, context))
    }
}

/// Converts an error of a source for a client of mcpd. A code reserved by the protocol refers to
/// the request made to the source, or is obsolete: passed on, it would refer to another request
/// and to mcpd.
pub(crate) fn convert_error(error: ErrorObject) -> ErrorObject {
    if error.code.is_free() {
        return error;
    }
    ErrorObject::internal_error(error.message)
}

impl<A, T> fmt::Display for RequestHandler<A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.source.as_deref().unwrap_or("built in");
        write!(f, "`{}` ({source})", self.path)
    }
}

impl<A, T> fmt::Debug for RequestHandler<A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHandler")
            .field("source", &self.source)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Implementation of a prompt or a template.
#[derive(Debug)]
pub(crate) enum EntryBody<A, T> {
    /// Script that runs.
    Script(Arc<Script>),
    /// Function of a source.
    Function(Arc<RequestHandler<A, T>>),
}

impl<A, T> EntryBody<A, T> {
    pub(crate) fn path(&self) -> &ScriptPath {
        match self {
            Self::Script(script) => &script.path,
            Self::Function(handler) => &handler.path,
        }
    }

    /// Defaults of the arguments, as far as they are known here.
    pub(crate) fn defaults(&self) -> Defaults {
        match self {
            Self::Script(script) => script.defaults(),
            Self::Function(_) => Defaults::new(),
        }
    }

    /// Spec of the script, if it is one.
    pub(crate) fn spec(&self) -> Option<&Arc<ScriptSpec>> {
        match self {
            Self::Script(script) => Some(&script.spec),
            Self::Function(_) => None,
        }
    }
}

// A derived implementation would require `Clone` of `A` and `T`.
impl<A, T> Clone for EntryBody<A, T> {
    fn clone(&self) -> Self {
        match self {
            Self::Script(script) => Self::Script(Arc::clone(script)),
            Self::Function(handler) => Self::Function(Arc::clone(handler)),
        }
    }
}

impl<A, T> fmt::Display for EntryBody<A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Script(script) => script.fmt(f),
            Self::Function(handler) => handler.fmt(f),
        }
    }
}
