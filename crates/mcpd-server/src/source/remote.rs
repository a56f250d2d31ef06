//! What is behind resources, templates and prompts of a source: a function that is asked, and where it is.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::{GetPromptResult, JsonObject, ReadResourceResult};
use mcpd_scriptspec::{ScriptPath, ScriptSpec};

use crate::Server;
use crate::access::Defaults;
use crate::admission;
use crate::context::Context;
use crate::native::CallContext;
use crate::tool::Script;
use crate::turns::Lane;

/// The future of one answer; dropping it cancels the request.
type Answer<T> = Pin<Box<dyn Future<Output = Result<T, ErrorObject>> + Send>>;

/// Somewhere else that is asked with an `A`, and answers with a `T`.
pub(crate) struct Remote<A, T> {
    source: Arc<str>,
    path: ScriptPath,
    lane: Arc<Lane>,
    ask: Box<dyn Fn(A, CallContext) -> Answer<T> + Send + Sync>,
}

/// What reads a resource by its URI.
pub(crate) type RemoteResource = Remote<String, ReadResourceResult>;
/// What gets a prompt with its arguments.
pub(crate) type RemotePrompt = Remote<JsonObject, GetPromptResult>;

impl<A, T> Remote<A, T> {
    pub(super) fn new<F, R>(source: Arc<str>, path: ScriptPath, ask: F) -> Self
    where
        F: Fn(A, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, ErrorObject>> + Send + 'static,
    {
        Self {
            source,
            path,
            lane: Arc::default(),
            ask: Box::new(move |asked, context| Box::pin(ask(asked, context))),
        }
    }

    pub(crate) fn path(&self) -> &ScriptPath {
        &self.path
    }

    /// Asks when it is the caller's turn. It is told of this as of such a `kind` of thing.
    pub(crate) fn ask(
        &self,
        server: &Server,
        context: &Context,
        kind: &'static str,
        asked: A,
    ) -> impl Future<Output = Result<T, ErrorObject>> + use<A, T> {
        let answer = (self.ask)(asked, CallContext::new(server, context, &self.path));
        let name = (kind, self.path.clone());
        admission::in_turn(server, context, &self.lane, name, answer)
    }
}

/// An error of a source for whoever asks mcpd. A code that the protocol keeps to itself tells of the request that was made
/// there, or has no meaning any more: here it would tell of another request, and of mcpd.
pub(crate) fn passed_on(error: ErrorObject) -> ErrorObject {
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

/// What is behind a prompt or a template.
#[derive(Debug)]
pub(crate) enum Behind<A, T> {
    /// A script, run.
    Script(Arc<Script>),
    /// A source, asked.
    Remote(Arc<Remote<A, T>>),
}

impl<A, T> Behind<A, T> {
    pub(crate) fn path(&self) -> &ScriptPath {
        match self {
            Self::Script(script) => &script.path,
            Self::Remote(remote) => &remote.path,
        }
    }

    /// What arguments are by default, as far as that is known here.
    pub(crate) fn defaults(&self) -> Defaults {
        match self {
            Self::Script(script) => script.defaults(),
            Self::Remote(_) => Defaults::new(),
        }
    }

    /// What a script said of itself.
    pub(crate) fn spec(&self) -> Option<&Arc<ScriptSpec>> {
        match self {
            Self::Script(script) => Some(&script.spec),
            Self::Remote(_) => None,
        }
    }
}

// Derived, it would ask the same of `A` and `T`.
impl<A, T> Clone for Behind<A, T> {
    fn clone(&self) -> Self {
        match self {
            Self::Script(script) => Self::Script(Arc::clone(script)),
            Self::Remote(remote) => Self::Remote(Arc::clone(remote)),
        }
    }
}

impl<A, T> fmt::Display for Behind<A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Script(script) => script.fmt(f),
            Self::Remote(remote) => remote.fmt(f),
        }
    }
}
