//! Context of a request: its revision, its sender, and what its sender wants to hear meanwhile.

use std::borrow::Borrow;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::{
    ClientCapabilities, Implementation, Params, ProtocolVersion, ResultObject, Stamp, Wire,
};
use mcpd_scriptspec::{ScriptPath, ScriptSpec};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::client::outbox::Outbox;
use crate::client::request::side_stream::SideStream;
use crate::client::session::Session;
use crate::limits::memory_budget::SharedReservation;
use crate::message::apps::{APP_TYPE, APPS_EXTENSION};
use crate::message::downgrade::Downgrade;
use crate::message::param_headers::ParameterHeaders;
use crate::message::reply::MethodResult;
use crate::message::tool_names::ToolNames;
use crate::message::trace::TraceContext;
use crate::message::transport::Transport;
use crate::observe::RequestOrigin;
use crate::observe::audit::request_log::RequestRecord;
use crate::policy::SecretHeaders;
use crate::policy::access::{Defaults, NeededScope};
use crate::policy::principal::Principal;
use crate::policy::selection::Selections;
use crate::remote::TaskRun;

/// Properties of a peer that the transport adds to the context of every request.
#[derive(Debug, Clone)]
pub(crate) struct PeerContext {
    pub(crate) transport: Transport,
    /// Principal of the peer.
    pub(crate) principal: Principal,
    /// Memory reservation of the message: every task that works on the request keeps the message,
    /// and with it this.
    pub(crate) reservation: SharedReservation,
    /// Cell that reports the scope a request lacks to the transport.
    pub(crate) needed_scope: NeededScope,
    /// Spelling of tool names in lists.
    pub(crate) names: ToolNames,
    /// Destination of notifications.
    pub(crate) outbox: Outbox,
    /// Trace that the transport knows, for messages that name none.
    pub(crate) trace: TraceContext,
    /// Arguments repeated in headers, where the transport has headers.
    pub(crate) parameters: Option<ParameterHeaders>,
    /// Headers that scripts may get, where the transport has headers.
    pub(crate) headers: SecretHeaders,
    /// Directory that the peer works in, where the transport knows it.
    pub(crate) directory: Option<Arc<Path>>,
    /// Cancelled by the transport to end requests that never end by themselves.
    pub(crate) closing: CancellationToken,
}

/// Circumstances of one request.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) version: ProtocolVersion,
    /// Sender of the request, and what its transport knows of it.
    pub(crate) peer: Arc<PeerContext>,
    /// Trace that the request is part of.
    pub(crate) trace: TraceContext,
    pub(crate) session: Option<Arc<Session>>,
    /// Capabilities of the client, for this request or in its session.
    pub(crate) capabilities: Arc<ClientCapabilities>,
    /// Name and version that the client claims.
    pub(crate) client: Option<Arc<Implementation>>,
    pub(crate) side: SideStream,
    /// Marks of results on this wire.
    pub(crate) stamp: Arc<Stamp>,
    /// Record of the request for the audit log, the metrics and the spans.
    pub(crate) record: RequestRecord,
    /// Tool that a call with this context starts, once the call itself is approved.
    pub(crate) approved: Option<ScriptPath>,
    /// Runs elsewhere of a call that is a task or may become one.
    pub(crate) task_run: Option<Arc<TaskRun>>,
}

impl Context {
    /// Creates the context of a run for another server, whose caller is `principal`. Its messages
    /// have no receiver here.
    pub(crate) fn for_front(
        stamp: Arc<Stamp>,
        principal: Principal,
        version: ProtocolVersion,
        trace: TraceContext,
        closing: CancellationToken,
    ) -> Self {
        let outbox = Outbox::to(|_| {});
        Self {
            version,
            side: SideStream::new(outbox.clone(), version, None, None),
            peer: Arc::new(PeerContext {
                transport: Transport::Front,
                principal,
                reservation: None,
                needed_scope: NeededScope::default(),
                names: ToolNames::Path,
                outbox,
                trace: TraceContext::default(),
                parameters: None,
                headers: SecretHeaders::default(),
                directory: None,
                closing,
            }),
            trace,
            session: None,
            capabilities: Arc::default(),
            client: None,
            stamp,
            record: RequestRecord::default(),
            approved: None,
            task_run: None,
        }
    }

    /// Narrows its sender to the selection for its client, if there is one.
    pub(crate) fn narrow_by_client(mut self, selections: &Selections) -> Self {
        let narrowed = selections.narrow_by_client(self.client.as_deref(), &self.peer.principal);
        if let Some(principal) = narrowed {
            self.peer = Arc::new(PeerContext {
                principal,
                ..PeerContext::clone(&self.peer)
            });
        }
        self
    }

    /// Returns how the request arrived.
    pub(crate) fn origin(&self) -> RequestOrigin<'_> {
        RequestOrigin {
            version: self.version,
            transport: self.peer.transport,
            principal: &self.peer.principal,
            client: self.client.as_ref(),
            #[cfg(all(feature = "http", feature = "otel"))]
            session_id: self
                .session
                .as_ref()
                .and_then(|session| session.id.as_deref()),
            trace: &self.trace,
        }
    }

    /// Session of this request if it began with `initialize`; any other session may end with the
    /// request.
    pub(crate) fn introduced_session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref().filter(|session| session.introduced)
    }

    /// Returns the context of a request whose arguments are others than those that the client has
    /// repeated in headers.
    pub(crate) fn without_parameter_headers(mut self) -> Self {
        if self.peer.parameters.is_some() {
            let mut peer = PeerContext::clone(&self.peer);
            peer.parameters = None;
            self.peer = Arc::new(peer);
        }
        self
    }

    /// Returns the error for a request of an item that does not exist, or that is `there` but
    /// forbidden to the sender. The error names a missing scope, which is no secret; in every
    /// other case it is `unknown`, so a forbidden item looks like one that does not exist.
    pub(crate) fn refuse(
        &self,
        there: Option<&ScriptPath>,
        outcome: &'static str,
        unknown: ErrorObject,
    ) -> ErrorObject {
        self.record
            .set_outcome(if there.is_some() { "denied" } else { outcome });
        let scope = there.and_then(|path| self.peer.principal.access()?.missing_scope(path));
        let (Some(path), Some(scope)) = (there, scope) else {
            return unknown;
        };
        self.peer.needed_scope.record(scope);
        ErrorObject::invalid_params(format!(
            "`{path}` requires the scope `{scope}`, which your token does not have"
        ))
    }

    /// Judges a call of the item at `path` by the rules for its sender; `spec` is the declaration
    /// of a script.
    ///
    /// # Errors
    ///
    /// The reason for the refusal, as a sentence for the caller.
    pub(crate) fn judge<D: Borrow<Defaults>>(
        &self,
        path: &ScriptPath,
        arguments: Option<&RawValue>,
        spec: Option<&Arc<ScriptSpec>>,
        defaults: impl FnOnce() -> D,
    ) -> Result<(), String> {
        let Some(access) = self.peer.principal.access() else {
            return Ok(());
        };
        access
            .judge(path, arguments, spec.map(|spec| &**spec), defaults)
            .inspect_err(|_| self.record.set_outcome("denied"))
    }

    /// Parses the parameters of this request. Results that ask for input exist only since
    /// 2026-07-28; before, the members that answer them are unknown members like any other.
    ///
    /// # Errors
    ///
    /// `-32602` for parameters that the method does not accept.
    pub(crate) fn parse<'a, P: Deserialize<'a>>(
        &self,
        params: &Params<'a>,
    ) -> Result<P, ErrorObject> {
        match self.version.wire() {
            Wire::Stateless => params.parse(),
            Wire::Stateful => params.parse_without(&["inputResponses", "requestState"]),
        }
    }

    /// Returns whether the client shows apps of tools.
    pub(crate) fn shows_apps(&self) -> bool {
        let extensions = self.capabilities.extensions.as_ref();
        let declared = extensions.and_then(|extensions| extensions.get(APPS_EXTENSION));
        let types = declared.map(|declared| &declared["mimeTypes"]);
        types.is_some_and(|types| match types.as_array() {
            Some(types) => types.iter().any(|known| known == APP_TYPE),
            // The setting is required, and a client without it knows the one type that there is.
            None => types.is_null(),
        })
    }

    /// Encodes `result` for this request's wire.
    pub(crate) fn encode(&self, result: impl ResultObject) -> MethodResult {
        encode(&self.stamp, result)
    }

    /// Encodes a result with content, reduced to what this request's revision knows.
    pub(crate) fn encode_content(&self, mut result: impl ResultObject + Downgrade) -> MethodResult {
        result.downgrade(self.version);
        encode(&self.stamp, result)
    }
}

/// Encodes `result`, marked with `stamp`.
pub(crate) fn encode(stamp: &Stamp, result: impl ResultObject) -> MethodResult {
    stamp.encode(result).map(Bytes::from).map_err(|error| {
        tracing::error!(%error, "failed to encode a result");
        ErrorObject::internal_error("the result could not be encoded")
    })
}
