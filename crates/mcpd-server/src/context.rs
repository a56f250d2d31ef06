//! Everything about a request but the request itself: in which revision it is answered, what else its
//! sender wants to hear meanwhile, and where that goes.

use std::borrow::Borrow;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcpd_protocol::jsonrpc::{self, ErrorObject};
use mcpd_protocol::meta::{Meta, ProgressToken};
use mcpd_protocol::{
    ClientCapabilities, Implementation, LoggingLevel, LoggingMessageNotification,
    LoggingMessageNotificationParams, NotificationMethod, Params, ProgressNotification,
    ProgressNotificationParams, ProtocolVersion, ResultObject, Stamp, Wire,
};
use mcpd_scriptspec::{ScriptPath, ScriptSpec};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::access::{Defaults, NeededScope};
use crate::audit::trail::Trail;
use crate::catalog::ToolNames;
use crate::dispatch::MethodResult;
use crate::mirror::ParameterHeaders;
use crate::outbox::Outbox;
use crate::output::{Downgrade, replace_nul};
use crate::principal::Principal;
use crate::room::Held;
use crate::session::Session;
use crate::sync::lock;
use crate::trace::TraceContext;
use crate::wire::Transport;

/// The circumstances of one request.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) version: ProtocolVersion,
    /// What has carried it here.
    pub(crate) transport: Transport,
    /// Who has sent it.
    pub(crate) principal: Principal,
    /// What its message takes: whatever runs for it has the message, and this.
    pub(crate) held: Held,
    /// The scope that its sender lacks.
    pub(crate) needed_scope: NeededScope,
    pub(crate) names: ToolNames,
    pub(crate) session: Option<Arc<Session>>,
    /// What the client offers, for this request or in its session.
    pub(crate) capabilities: Arc<ClientCapabilities>,
    /// Who the client says it is.
    pub(crate) client: Option<Arc<Implementation>>,
    /// The trace that it is part of.
    pub(crate) trace: TraceContext,
    pub(crate) side: SideStream,
    /// Arguments repeated in headers, where the wire has any.
    pub(crate) parameters: Option<Arc<ParameterHeaders>>,
    /// How results of this wire are marked.
    pub(crate) stamp: Arc<Stamp>,
    /// Cancelled when what never ends by itself shall end.
    pub(crate) closing: CancellationToken,
    /// What the audit log is told of it.
    pub(crate) trail: Trail,
}

impl Context {
    /// The session of this request, if that began with `initialize`: any other may be over when the request is.
    pub(crate) fn introduced_session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref().filter(|session| session.introduced)
    }

    /// The error for a request of what is `there`, but not for its sender, or is not there at all. A scope that would
    /// change that is no secret; everything else is as `unknown` to whoever may not use it as what does not exist.
    pub(crate) fn refuse(
        &self,
        there: Option<&ScriptPath>,
        outcome: &'static str,
        unknown: ErrorObject,
    ) -> ErrorObject {
        self.trail
            .ended_as(if there.is_some() { "denied" } else { outcome });
        let scope = there.and_then(|path| self.principal.access()?.missing_scope(path));
        let (Some(path), Some(scope)) = (there, scope) else {
            return unknown;
        };
        self.needed_scope.set(scope);
        ErrorObject::invalid_params(format!(
            "`{path}` takes the scope `{scope}`, which your token does not have"
        ))
    }

    /// Judges a call of what is at `path`, which has said this of itself if it is a script, by the rules about its sender.
    ///
    /// # Errors
    ///
    /// Why it is not made, as a sentence for whoever made it.
    pub(crate) fn judge<D: Borrow<Defaults>>(
        &self,
        path: &ScriptPath,
        arguments: Option<&RawValue>,
        spec: Option<&Arc<ScriptSpec>>,
        defaults: impl FnOnce() -> D,
    ) -> Result<(), String> {
        let Some(access) = self.principal.access() else {
            return Ok(());
        };
        access
            .judge(path, arguments, spec.map(|spec| &**spec), defaults)
            .inspect_err(|_| self.trail.ended_as("denied"))
    }

    /// The parameters of this request. Nobody was asked anything by way of a result before 2026-07-28, so answers to
    /// that are members like any other that a request should not have.
    ///
    /// # Errors
    ///
    /// `-32602` for those that are not what the method has.
    pub(crate) fn parse<'a, P: Deserialize<'a>>(
        &self,
        params: &Params<'a>,
    ) -> Result<P, ErrorObject> {
        match self.version.wire() {
            Wire::Stateless => params.parse(),
            Wire::Stateful => params.parse_without(&["inputResponses", "requestState"]),
        }
    }

    /// The bytes of `result` on this request's wire.
    pub(crate) fn encode(&self, result: impl ResultObject) -> MethodResult {
        encode(&self.stamp, result)
    }

    /// The bytes of a result that holds content, in the words of this request's revision.
    pub(crate) fn encode_content(&self, mut result: impl ResultObject + Downgrade) -> MethodResult {
        result.downgrade(self.version);
        self.encode(result)
    }
}

/// The bytes of `result`, marked with `stamp`.
pub(crate) fn encode(stamp: &Stamp, result: impl ResultObject) -> MethodResult {
    stamp.encode(result).map(Bytes::from).map_err(|error| {
        tracing::error!(%error, "failed to encode a result");
        ErrorObject::internal_error("the result could not be encoded")
    })
}

/// The bytes of a notification.
pub(crate) fn notification<N: NotificationMethod>(params: &N::Params) -> Option<Bytes> {
    jsonrpc::notification(N::NAME, params)
        .inspect_err(
            |error| tracing::error!(%error, method = N::NAME, "failed to encode a notification"),
        )
        .ok()
        .map(Bytes::from)
}

/// Sends a notification, unless the client does not keep up: then it is lost.
pub(crate) fn notify<N: NotificationMethod>(outbox: &Outbox, params: &N::Params) {
    let Some(message) = notification::<N>(params) else {
        return;
    };
    if !outbox.try_send(message) {
        tracing::debug!(
            method = N::NAME,
            "a client does not keep up; a notification is dropped"
        );
    }
}

/// Log messages and progress on the way to whoever sent the request. Never blocks: a client that
/// doesn't read loses them, not the script its time.
#[derive(Debug, Clone)]
pub(crate) struct SideStream {
    pub(crate) outbox: Outbox,
    log_level: Option<LoggingLevel>,
    progress: Option<Progress>,
    with_progress_message: bool,
}

/// Where progress belongs, and how far it is: all runs of one request go on from there.
#[derive(Debug, Clone)]
struct Progress {
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
        let progress = progress_token.map(|token| Progress {
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

    /// Whether the sender of the request wants to hear anything at all.
    pub(crate) fn is_wanted(&self) -> bool {
        self.log_level.is_some() || self.progress.is_some()
    }

    /// The least level the sender wants to see.
    pub(crate) fn log_level(&self) -> Option<LoggingLevel> {
        self.log_level
    }

    /// Whether the sender wants to hear of progress.
    pub(crate) fn wants_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Sends a log message, if this request wants one of that level.
    pub(crate) fn log(&self, level: LoggingLevel, logger: &str, text: &str) {
        self.log_with(level, logger, text, None);
    }

    /// The same, with something beside it.
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
    /// False if it was not sent.
    pub(crate) fn progress(
        &self,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> bool {
        self.progress_with(progress, total, message, None)
    }

    /// The same, with something beside it.
    pub(crate) fn progress_with(
        &self,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
        meta: Option<&Meta>,
    ) -> bool {
        self.progress_to(|_| progress, total, message, meta)
    }

    /// Sends progress by a `step` from what it was, or by the least there is where numbers are too large for
    /// that, with something beside it.
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

    /// Sends the progress that comes `next` after the last, if it is higher.
    fn progress_to(
        &self,
        next: impl FnOnce(f64) -> f64,
        total: Option<f64>,
        message: Option<&str>,
        meta: Option<&Meta>,
    ) -> bool {
        let Some(Progress { token, last }) = &self.progress else {
            return false;
        };
        // Held until it is sent, as another may be on its way.
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
