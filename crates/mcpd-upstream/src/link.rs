//! Link to a server, which its tools, resources and prompts hold: the current connection, and the
//! path of one request over it.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use mcpd_protocol::jsonrpc::{self, ErrorObject};
use mcpd_server::source::Secrets;
use mcpd_server::{CallContext, TraceContext};
use rmcp::model::{
    ClientRequest, ErrorCode, ErrorData, GetExtensions as _, RequestMetaObject, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, watch};

use crate::conversion;
use crate::listener::{CallNotification, Listener};
use crate::remarks::Remarks;
use crate::upstream::Upstream;

/// Maximum number of concurrent requests to a server; further ones are queued.
pub(crate) const MAX_CONCURRENT_REQUESTS: usize = 64;
/// Error code for an overloaded server, equal to mcpd's own: the error says when to try again, and
/// callers can do so.
pub(crate) const TOO_MANY_REQUESTS: i32 = 429;
/// Internal error code for an unreadable answer, which no server would choose.
pub(crate) const UNREADABLE: ErrorCode = ErrorCode(i32::MIN);
/// Time limit for a request to wait for a connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Link to one server, connected or not.
#[derive(Debug)]
pub(crate) struct Link {
    /// Display name of the server.
    name: String,
    secrets: Secrets,
    remarks: Remarks,
    timeout: Duration,
    turns: Semaphore,
    open: watch::Sender<Option<OpenConnection>>,
}

/// Open connection.
#[derive(Debug, Clone)]
pub(crate) struct OpenConnection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) listener: Listener,
}

/// Request that has been sent.
#[derive(Debug)]
struct SentRequest {
    listener: Listener,
    /// Number of messages received before it.
    received: u64,
}

/// Reason why there is no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server returned an error.
    Refused(ErrorData),
    /// The server gave no answer, or an invalid one. The text is for the caller.
    Unanswered(String),
}

impl Link {
    pub(crate) fn new(upstream: &Upstream) -> Self {
        Self {
            name: upstream.name.clone(),
            secrets: upstream.secrets.clone(),
            remarks: Remarks::new(&upstream.name, &upstream.secrets),
            timeout: upstream.timeout,
            turns: Semaphore::new(MAX_CONCURRENT_REQUESTS),
            open: watch::Sender::default(),
        }
    }

    /// Returns the log of the server's oddities, which outlasts connections.
    pub(crate) fn remarks(&self) -> &Remarks {
        &self.remarks
    }

    /// Sets or clears the current connection.
    pub(crate) fn set(&self, open: Option<OpenConnection>) {
        self.open.send_replace(open);
    }

    /// Makes a request, and relays the server's notifications to the caller meanwhile.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future tells the server that the request is cancelled.
    pub(crate) async fn request(
        &self,
        request: ClientRequest,
        context: &mut CallContext,
    ) -> Result<ServerResult, Failure> {
        let outgoing = context.begin_outgoing_request(request.method(), name(&request));
        let mut sent = None;
        let asked = self.try_request(request, outgoing.trace(), context, &mut sent);
        let answered = tokio::time::timeout(self.timeout, asked).await;
        let answered = answered.unwrap_or_else(|_| Err(self.timeout_failure(sent)));
        outgoing.finish(error_type(&answered).as_deref());
        answered
    }

    async fn try_request(
        &self,
        mut request: ClientRequest,
        trace: &TraceContext,
        context: &mut CallContext,
        sent: &mut Option<SentRequest>,
    ) -> Result<ServerResult, Failure> {
        let turn = self.turns.acquire().await;
        let open = self.wait_for_connection().await?;
        let mut notifications = open.listener.listen();
        request.extensions_mut().insert(notifications.token());
        *sent = Some(SentRequest {
            received: open.listener.received_count(),
            listener: open.listener.clone(),
        });
        let handle = open
            .peer
            .send_request_with_option(request, options(trace, context))
            .await;
        let handle = handle.map_err(|error| self.failure(error, &open))?;
        let mut pending = PendingAnswer(Some(handle));
        let answer = loop {
            tokio::select! {
                // Notifications that arrived before the answer are relayed before it.
                biased;
                notification = notifications.next() => relay(context, notification),
                answer = pending.answer() => break answer,
                () = open.listener.closed.cancelled() => break Err(ServiceError::TransportClosed),
            }
        };
        drop(turn);
        answer.map_err(|error| self.failure(error, &open))
    }

    /// Waits for a connection.
    async fn wait_for_connection(&self) -> Result<OpenConnection, Failure> {
        let mut open = self.open.subscribe();
        let opened = tokio::time::timeout(CONNECTION_TIMEOUT, open.wait_for(Option::is_some)).await;
        let opened = opened.ok().and_then(Result::ok);
        opened
            .and_then(|open| open.clone())
            .ok_or_else(|| self.no_answer("is not connected"))
    }

    /// Converts an error. The operator's log has the details; the caller only learns the kind of
    /// failure.
    fn failure(&self, error: ServiceError, open: &OpenConnection) -> Failure {
        let told = match &error {
            ServiceError::McpError(error) if error.code == UNREADABLE => "gave no valid response",
            ServiceError::McpError(error) => return self.refusal(error),
            ServiceError::TransportClosed => "exited before it responded",
            ServiceError::TransportSend(_) => "is unreachable",
            ServiceError::Cancelled { .. } => "received a cancellation of the request",
            _ => "gave no valid response",
        };
        tracing::warn!(
            upstream = self.name,
            "a request failed: {}",
            self.secrets.redact(conversion::reason(&error))
        );
        if matches!(error, ServiceError::TransportSend(_)) {
            open.listener.doubtful.notify_one();
        }
        self.no_answer(told)
    }

    /// Reports a timeout. The operator's log has one warning until the server sends another
    /// message.
    fn timeout_failure(&self, sent: Option<SentRequest>) -> Failure {
        let what = format!("did not respond within {:?}", self.timeout);
        if sent.is_some_and(|sent| sent.listener.record_overdue(sent.received)) {
            tracing::warn!(upstream = self.name, "a request failed: it {what}");
        }
        self.no_answer(&what)
    }

    /// Returns the failure that the server itself reports.
    fn refusal(&self, error: &ErrorData) -> Failure {
        let message = self.secrets.redact(error.message.to_string());
        let data = error.data.as_ref();
        let data = data.and_then(|data| self.convert_redacted(data).ok());
        Failure::Refused(ErrorData::new(error.code, message, data))
    }

    /// Converts a value to another crate's type, with secrets redacted.
    ///
    /// # Errors
    ///
    /// Returns the fault of the part that has no counterpart.
    pub(crate) fn convert_redacted<T: DeserializeOwned>(
        &self,
        said: &impl Serialize,
    ) -> Result<T, String> {
        conversion::convert_redacted(&self.secrets, said)
    }

    fn no_answer(&self, what: &str) -> Failure {
        Failure::Unanswered(format!("The upstream server `{}` {what}.", self.name))
    }

    /// Returns the failure of a server whose answer does not fit the request.
    pub(crate) fn invalid_answer(&self, answer: impl fmt::Display) -> Failure {
        let answer = self.secrets.redact(answer.to_string());
        tracing::warn!(upstream = self.name, "unexpected response: {answer}");
        self.no_answer("gave no valid response")
    }

    /// Returns the failure of a server that requires input to continue.
    pub(crate) fn input_required(&self) -> Failure {
        self.no_answer("asks the client for input, which cannot be forwarded")
    }
}

/// Returns the upstream name of the tool, resource or prompt of a request.
fn name(request: &ClientRequest) -> Option<&str> {
    match request {
        ClientRequest::CallToolRequest(request) => Some(&request.params.name),
        ClientRequest::GetPromptRequest(request) => Some(&request.params.name),
        _ => None,
    }
}

/// Returns the kind of failure, as spans name it.
fn error_type(answered: &Result<ServerResult, Failure>) -> Option<Cow<'static, str>> {
    match answered {
        Ok(ServerResult::CallToolResult(result)) if result.is_error == Some(true) => {
            Some("tool_error".into())
        }
        Ok(_) => None,
        Err(Failure::Refused(error)) => Some(error.code.0.to_string().into()),
        Err(Failure::Unanswered(_)) => Some("_OTHER".into()),
    }
}

/// Returns the metadata of a request: the log level and the trace. Baggage is not forwarded, as it
/// may identify the caller.
fn options(trace: &TraceContext, context: &CallContext) -> PeerRequestOptions {
    let mut meta = RequestMetaObject::new();
    let level = context.log_level();
    if let Some(level) = level.and_then(|level| conversion::convert(&level).ok()) {
        meta.set_log_level(level);
    }
    if let Some(parent) = &trace.parent {
        meta.set_traceparent(parent);
    }
    if let Some(state) = &trace.state {
        meta.set_tracestate(state);
    }
    PeerRequestOptions::no_options().with_meta(meta)
}

fn relay(context: &mut CallContext, notification: CallNotification) {
    match notification {
        CallNotification::Progress {
            progress,
            total,
            message,
        } => context.progress(progress, total, message.as_deref()),
        CallNotification::Log { level, text } => context.log(level, &text),
    }
}

/// Request that has been sent. Dropped without an answer, it is cancelled.
struct PendingAnswer(Option<RequestHandle<RoleClient>>);

impl PendingAnswer {
    /// Waits for the answer, which comes once.
    ///
    /// # Cancel safety
    ///
    /// The answer is not lost.
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.0 else {
            return Err(ServiceError::UnexpectedResponse);
        };
        let answer = (&mut handle.rx).await;
        self.0 = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        let Some(handle) = self.0.take() else { return };
        // Without a runtime there is no connection either.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { handle.cancel(None).await });
        }
    }
}

/// Conversion for methods whose results can't express failures.
impl From<Failure> for ErrorObject {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unanswered(told) => Self::internal_error(told),
            Failure::Refused(error) => {
                let told = Self::new(jsonrpc::ErrorCode::new(error.code.0.into()), error.message);
                match error.data {
                    Some(data) => told.with_data(&data),
                    None => told,
                }
            }
        }
    }
}
