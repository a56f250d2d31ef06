//! Context of a request: its revision, its sender, and the side stream of log messages and
//! progress that the sender wants meanwhile.

use std::borrow::Borrow;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::meta::{Meta, ProgressToken};
use mcpd_protocol::{
    ClientCapabilities, Implementation, LoggingLevel, LoggingMessageNotification,
    LoggingMessageNotificationParams, Params, ProgressNotification, ProgressNotificationParams,
    ProtocolVersion, ResultObject, Stamp, Wire,
};
use mcpd_scriptspec::{ScriptPath, ScriptSpec};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::client::outbox::{Outbox, notify};
use crate::client::session::Session;
use crate::limits::memory_budget::SharedReservation;
use crate::message::downgrade::Downgrade;
use crate::message::param_headers::ParameterHeaders;
use crate::message::reply::MethodResult;
use crate::message::text::replace_nul;
use crate::message::tool_names::ToolNames;
use crate::message::trace::TraceContext;
use crate::message::transport::Transport;
use crate::observe::RequestOrigin;
use crate::observe::audit::request_log::RequestRecord;
use crate::policy::access::{Defaults, NeededScope};
use crate::policy::principal::Principal;
use crate::support::sync::lock;

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
    /// Trace that the request is part of: named by the message, or known to the transport.
    pub(crate) trace: TraceContext,
    /// Arguments repeated in headers, where the transport has headers.
    pub(crate) parameters: Option<Arc<ParameterHeaders>>,
    /// Cancelled by the transport to end requests that never end by themselves.
    pub(crate) closing: CancellationToken,
}

/// Circumstances of one request.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) version: ProtocolVersion,
    /// Sender of the request, and what its transport knows of it.
    pub(crate) peer: PeerContext,
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
}

impl Context {
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
            #[cfg(feature = "otel")]
            trace: &self.peer.trace,
        }
    }

    /// Session of this request if it began with `initialize`; any other session may end with the
    /// request.
    pub(crate) fn introduced_session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref().filter(|session| session.introduced)
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

    /// Encodes `result` for this request's wire.
    pub(crate) fn encode(&self, result: impl ResultObject) -> MethodResult {
        encode(&self.stamp, result)
    }

    /// Encodes a result with content, reduced to what this request's revision knows.
    pub(crate) fn encode_content(&self, mut result: impl ResultObject + Downgrade) -> MethodResult {
        result.downgrade(self.version);
        self.encode(result)
    }
}

/// Encodes `result`, marked with `stamp`.
pub(crate) fn encode(stamp: &Stamp, result: impl ResultObject) -> MethodResult {
    stamp.encode(result).map(Bytes::from).map_err(|error| {
        tracing::error!(%error, "failed to encode a result");
        ErrorObject::internal_error("the result could not be encoded")
    })
}

/// Log messages and progress for the sender of the request. Never blocks: a client that does not
/// read loses messages, and the script loses no time.
#[derive(Debug, Clone)]
pub(crate) struct SideStream {
    pub(crate) outbox: Outbox,
    log_level: Option<LoggingLevel>,
    progress: Option<ProgressState>,
    with_progress_message: bool,
}

/// Progress token and last value sent: all runs of one request continue from there.
#[derive(Debug, Clone)]
struct ProgressState {
    token: ProgressToken,
    last: Arc<Mutex<f64>>,
}

impl SideStream {
    pub(crate) fn new(
        outbox: Outbox,
        version: ProtocolVersion,
        log_level: Option<LoggingLevel>,
        progress_token: Option<ProgressToken>,
    ) -> Self {
        let progress = progress_token.map(|token| ProgressState {
            token,
            last: Arc::new(Mutex::new(f64::NEG_INFINITY)),
        });
        Self {
            outbox,
            log_level,
            progress,
            with_progress_message: version.has_progress_message(),
        }
    }

    /// Returns whether the sender wants log messages or progress.
    pub(crate) fn is_wanted(&self) -> bool {
        self.log_level.is_some() || self.progress.is_some()
    }

    /// Lowest level the sender wants to see.
    pub(crate) fn log_level(&self) -> Option<LoggingLevel> {
        self.log_level
    }

    /// Returns whether the sender wants progress.
    pub(crate) fn wants_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Sends a log message, if this request wants messages of that level.
    pub(crate) fn log(&self, level: LoggingLevel, logger: &str, text: &str) {
        self.log_with(level, logger, text, None);
    }

    /// Sends a log message with `_meta`.
    pub(crate) fn log_with(
        &self,
        level: LoggingLevel,
        logger: &str,
        text: &str,
        meta: Option<&Meta>,
    ) {
        if self.log_level.is_some_and(|least| level >= least) {
            let mut params = LoggingMessageNotificationParams::new(level, &*replace_nul(text));
            params.logger = Some(logger.to_owned());
            params.meta = meta.cloned();
            notify::<LoggingMessageNotification>(&self.outbox, &params);
        }
    }

    /// Sends progress, if this request wants any. "The `progress` value MUST increase with each
    /// notification" -- 2026-07-28/basic/patterns/progress
    ///
    /// Returns false if it was not sent.
    pub(crate) fn progress(
        &self,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> bool {
        self.progress_with(progress, total, message, None)
    }

    /// Sends progress with `_meta`.
    pub(crate) fn progress_with(
        &self,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
        meta: Option<&Meta>,
    ) -> bool {
        self.progress_to(|_| progress, total, message, meta)
    }

    /// Sends progress increased by `step`, with `_meta`. Where floating point is too coarse for
    /// the step, takes the next higher number.
    pub(crate) fn advance(
        &self,
        step: f64,
        total: Option<f64>,
        message: Option<&str>,
        meta: &Meta,
    ) {
        let next = |last: f64| match last {
            f64::NEG_INFINITY => step,
            last => (last + step).max(last.next_up()),
        };
        self.progress_to(next, total, message, Some(meta));
    }

    /// Sends the progress that `next` computes from the last, if it is higher.
    fn progress_to(
        &self,
        next: impl FnOnce(f64) -> f64,
        total: Option<f64>,
        message: Option<&str>,
        meta: Option<&Meta>,
    ) -> bool {
        let Some(ProgressState { token, last }) = &self.progress else {
            return false;
        };
        // The lock is held until the notification is queued: another run may send progress at the
        // same time, and the order on the wire must be the order of the values.
        let mut last = lock(last);
        let progress = next(*last);
        if !progress.is_finite() || progress <= *last {
            return false;
        }
        *last = progress;
        let mut params = ProgressNotificationParams::new(token.clone(), progress);
        params.total = total;
        params.message = message
            .filter(|_| self.with_progress_message)
            .map(|message| replace_nul(message).into_owned());
        params.meta = meta.cloned();
        notify::<ProgressNotification>(&self.outbox, &params);
        true
    }
}
