//! Resources, templates and prompts of a source: a function that answers requests, and its
//! origin.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::{GetPromptResult, JsonObject, ReadResourceResult};
use mcpd_scriptspec::{ScriptPath, ScriptSpec};

use crate::catalog::script::Script;
use crate::execution::permit;
use crate::limits::run_queue::ScriptQueue;
use crate::policy::access::Defaults;
use crate::request::context::Context;
use crate::server::Server;
use crate::tools::native::CallContext;

/// Future of one answer; dropping it cancels the request.
type RemoteFuture<T> = Pin<Box<dyn Future<Output = Result<T, ErrorObject>> + Send>>;

/// Remote entry that takes an `A` and returns a `T`.
pub(crate) struct Remote<A, T> {
    source: Arc<str>,
    path: ScriptPath,
    script_queue: Arc<ScriptQueue>,
    send_request: Box<dyn Fn(A, CallContext) -> RemoteFuture<T> + Send + Sync>,
}

/// Reads a resource by its URI.
pub(crate) type RemoteResource = Remote<String, ReadResourceResult>;
/// Gets a prompt with its arguments.
pub(crate) type RemotePrompt = Remote<JsonObject, GetPromptResult>;

impl<A, T> Remote<A, T> {
    pub(super) fn new<F, R>(source: Arc<str>, path: ScriptPath, send_request: F) -> Self
    where
        F: Fn(A, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, ErrorObject>> + Send + 'static,
    {
        Self {
            source,
            path,
            script_queue: Arc::default(),
            send_request: Box::new(move |request, context| {
                Box::pin(send_request(request, context))
            }),
        }
    }

    pub(crate) fn path(&self) -> &ScriptPath {
        &self.path
    }

    /// Sends a request when it is the caller's turn. `kind` names the entry in messages to the
    /// caller.
    pub(crate) fn send_request(
        &self,
        server: &Server,
        context: &Context,
        kind: &'static str,
        request: A,
    ) -> impl Future<Output = Result<T, ErrorObject>> + use<A, T> {
        let answer = (self.send_request)(request, CallContext::new(server, context, &self.path));
        let name = (kind, self.path.clone());
        permit::run_with_permit(server.engine(), context, &self.script_queue, name, answer)
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

impl<A, T> fmt::Display for Remote<A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.path, self.source)
    }
}

impl<A, T> fmt::Debug for Remote<A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
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
    /// Entry of a source.
    Remote(Arc<Remote<A, T>>),
}

impl<A, T> EntryBody<A, T> {
    pub(crate) fn path(&self) -> &ScriptPath {
        match self {
            Self::Script(script) => &script.path,
            Self::Remote(remote) => &remote.path,
        }
    }

    /// Defaults of the arguments, as far as they are known here.
    pub(crate) fn defaults(&self) -> Defaults {
        match self {
            Self::Script(script) => script.defaults(),
            Self::Remote(_) => Defaults::new(),
        }
    }

    /// Spec of the script, if it is one.
    pub(crate) fn spec(&self) -> Option<&Arc<ScriptSpec>> {
        match self {
            Self::Script(script) => Some(&script.spec),
            Self::Remote(_) => None,
        }
    }
}

// A derived implementation would require `Clone` of `A` and `T`.
impl<A, T> Clone for EntryBody<A, T> {
    fn clone(&self) -> Self {
        match self {
            Self::Script(script) => Self::Script(Arc::clone(script)),
            Self::Remote(remote) => Self::Remote(Arc::clone(remote)),
        }
    }
}

impl<A, T> fmt::Display for EntryBody<A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Script(script) => script.fmt(f),
            Self::Remote(remote) => remote.fmt(f),
        }
    }
}
