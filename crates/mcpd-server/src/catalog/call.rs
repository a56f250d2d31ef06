//! Call of an entry that is no script: what its function may know of the server and its caller.

use std::path::PathBuf;
use std::sync::Arc;

use mcpd_exec::Executor;
use mcpd_protocol::method::LoggingLevel;
use mcpd_scriptspec::ScriptPath;

use crate::catalog::Catalog;
use crate::catalog::live::LiveCatalog;
use crate::client::request::context::Context;
use crate::client::subscribers::Event;
use crate::execution::engine::Engine;
use crate::execution::permit::PermitRequest;
use crate::limits::run_queue::ScriptQueue;
use crate::message::trace::TraceContext;
use crate::observe::spans::ChildSpan;
use crate::policy::principal::Principal;

/// Parts of a server that calls reach. Keeps the server running.
#[derive(Debug, Clone)]
pub(crate) struct CallHost {
    pub(crate) engine: Arc<Engine>,
    pub(crate) catalog: Arc<LiveCatalog>,
}

/// Context of a call of a native tool or a read of a native resource, with messages to the
/// caller.
#[derive(Debug)]
pub struct CallContext {
    host: CallHost,
    request: Context,
    path: ScriptPath,
}

impl CallContext {
    pub(crate) fn new(host: &CallHost, context: &Context, path: &ScriptPath) -> Self {
        Self {
            host: host.clone(),
            request: context.clone(),
            path: path.clone(),
        }
    }

    /// Caller, as the transport has authenticated it.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.request.peer.principal
    }

    /// Current catalog, as far as the caller may use it.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.host.catalog.visible_to(self.principal())
    }

    /// Current catalog, with entries that the caller may not use: see [`allows`](Self::allows).
    #[must_use]
    pub fn whole_catalog(&self) -> Arc<Catalog> {
        self.host.catalog.current()
    }

    /// Returns whether the caller may use the entry at `path`, whether or not there is one.
    #[must_use]
    pub fn allows(&self, path: &ScriptPath) -> bool {
        let access = self.principal().access();
        access.is_none_or(|access| access.allows(path))
    }

    /// Directories of the served scripts.
    #[must_use]
    pub fn roots(&self) -> &[PathBuf] {
        self.host.catalog.roots()
    }

    /// Executor of the scripts.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.host.engine.executor
    }

    /// Notifies the subscribers of the resource at `uri` that it may have changed, as
    /// [`Server::notify_resource_updated`](crate::Server::notify_resource_updated) does.
    pub fn notify_resource_updated(&self, uri: &str) {
        let event = Event::ResourceUpdated(uri.to_owned());
        self.host.engine.subscribers.publish(&event);
    }

    /// Trace of the call, to pass on to other services that take part in it.
    #[must_use]
    pub fn trace(&self) -> &TraceContext {
        &self.request.trace
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
        self.request.side.log(level, self.path.as_str(), text);
    }

    /// Sends progress to the caller, if it wants that. A value not greater than the last one is
    /// not sent.
    pub fn progress(&mut self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.request.side.progress(progress, total, message);
    }

    /// Path of the called entry.
    pub(crate) fn path(&self) -> &ScriptPath {
        &self.path
    }

    pub(crate) fn host(&self) -> &CallHost {
        &self.host
    }

    /// Context of the request.
    pub(crate) fn request(&self) -> &Context {
        &self.request
    }

    /// Requests a permit for the work of the called entry. `kind` and `name` identify it to the
    /// caller.
    pub(crate) fn request_permit(
        &self,
        queue: &Arc<ScriptQueue>,
        (kind, name): (&'static str, &str),
    ) -> PermitRequest {
        PermitRequest::new(&self.host.engine, &self.request, queue, (kind, name))
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
