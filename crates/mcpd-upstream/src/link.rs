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

use crate::listener::{Listener, Word};
use crate::remarks::Remarks;
use crate::upstream::Upstream;
use crate::words;

/// Maximum number of concurrent requests to a server; further ones are queued.
pub(crate) const MOST_AT_A_TIME: usize = 64;
/// Error code for an overloaded server, equal to mcpd's own: the error says when to try again, and
/// callers can do so.
pub(crate) const TOO_MANY_REQUESTS: i32 = 429;
/// Internal error code for an unreadable answer, which no server would choose.
pub(crate) const UNREADABLE: ErrorCode = ErrorCode(i32::MIN);
/// Time limit for a request to wait for a connection.
const FOR_CONNECTION: Duration = Duration::from_secs(5);

/// Link to one server, connected or not.
#[derive(Debug)]
pub(crate) struct Link {
    /// Display name of the server.
    name: String,
    secrets: Secrets,
    remarks: Remarks,
    timeout: Duration,
    turns: Semaphore,
    open: watch::Sender<Option<Open>>,
}

/// Open connection.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) listener: Listener,
}

/// Request that has been sent.
#[derive(Debug)]
struct Sent {
    listener: Listener,
    /// Number of messages received before it.
    heard: u64,
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
            turns: Semaphore::new(MOST_AT_A_TIME),
            open: watch::Sender::default(),
        }
    }

    /// Returns the log of the server's oddities, which outlasts connections.
    pub(crate) fn remarks(&self) -> &Remarks {
        &self.remarks
    }

    /// Sets or clears the current connection.
    pub(crate) fn set(&self, open: Option<Open>) {
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
        let outgoing = context.outgoing(request.method(), name(&request));
        let mut sent = None;
        let asked = self.ask(request, outgoing.trace(), context, &mut sent);
        let answered = tokio::time::timeout(self.timeout, asked).await;
        let answered = answered.unwrap_or_else(|_| Err(self.overdue(sent)));
        outgoing.ended(error_type(&answered).as_deref());
        answered
    }

    async fn ask(
        &self,
        mut request: ClientRequest,
        trace: &TraceContext,
        context: &mut CallContext,
        sent: &mut Option<Sent>,
    ) -> Result<ServerResult, Failure> {
        let turn = self.turns.acquire().await;
        let open = self.open().await?;
        let mut words = open.listener.listen();
        request.extensions_mut().insert(words.token());
        *sent = Some(Sent {
            heard: open.listener.heard(),
            listener: open.listener.clone(),
        });
        let handle = open
            .peer
            .send_request_with_option(request, options(trace, context))
            .await;
        let handle = handle.map_err(|error| self.failure(error, &open))?;
        let mut pending = Pending(Some(handle));
        let answer = loop {
            tokio::select! {
                // Notifications that arrived before the answer are relayed before it.
                biased;
                word = words.next() => tell(context, word),
                answer = pending.answer() => break answer,
                () = open.listener.closed.cancelled() => break Err(ServiceError::TransportClosed),
            }
        };
        drop(turn);
        answer.map_err(|error| self.failure(error, &open))
    }

    /// Waits for a connection.
    async fn open(&self) -> Result<Open, Failure> {
        let mut open = self.open.subscribe();
        let opened = tokio::time::timeout(FOR_CONNECTION, open.wait_for(Option::is_some)).await;
        let opened = opened.ok().and_then(Result::ok);
        opened
            .and_then(|open| open.clone())
            .ok_or_else(|| self.unanswered("is not connected"))
    }

    /// Converts an error. The operator's log has the details; the caller only learns the kind of
    /// failure.
    fn failure(&self, error: ServiceError, open: &Open) -> Failure {
        let told = match &error {
            ServiceError::McpError(error) if error.code == UNREADABLE => "gave no valid answer",
            ServiceError::McpError(error) => return self.refused(error),
            ServiceError::TransportClosed => "ended before it had answered",
            ServiceError::TransportSend(_) => "can't be reached",
            ServiceError::Cancelled { .. } => "was told to forget the request",
            _ => "gave no valid answer",
        };
        tracing::warn!(
            upstream = self.name,
            "a request failed: {}",
            self.secrets.redact(words::why(&error))
        );
        if matches!(error, ServiceError::TransportSend(_)) {
            open.listener.doubtful.notify_one();
        }
        self.unanswered(told)
    }

    /// Reports a timeout. The operator's log has one warning until the server sends another
    /// message.
    fn overdue(&self, sent: Option<Sent>) -> Failure {
        let what = format!("has not answered within {:?}", self.timeout);
        if sent.is_some_and(|sent| sent.listener.waits_in_vain(sent.heard)) {
            tracing::warn!(upstream = self.name, "a request failed: it {what}");
        }
        self.unanswered(&what)
    }

    /// Returns the failure that the server itself reports.
    fn refused(&self, error: &ErrorData) -> Failure {
        let message = self.secrets.redact(error.message.to_string());
        let data = error.data.as_ref();
        let data = data.and_then(|data| self.redacted(data).ok());
        Failure::Refused(ErrorData::new(error.code, message, data))
    }

    /// Converts a value to another crate's type, with secrets redacted.
    ///
    /// # Errors
    ///
    /// Returns the fault of the part that has no counterpart.
    pub(crate) fn redacted<T: DeserializeOwned>(&self, said: &impl Serialize) -> Result<T, String> {
        words::redacted(&self.secrets, said)
    }

    fn unanswered(&self, what: &str) -> Failure {
        Failure::Unanswered(format!("The upstream server `{}` {what}.", self.name))
    }

    /// Returns the failure of a server whose answer does not fit the request.
    pub(crate) fn confused(&self, answer: impl fmt::Display) -> Failure {
        let answer = self.secrets.redact(answer.to_string());
        tracing::warn!(upstream = self.name, "an answer makes no sense: {answer}");
        self.unanswered("gave no valid answer")
    }

    /// Returns the failure of a server that requires input to continue.
    pub(crate) fn asks_back(&self) -> Failure {
        self.unanswered("asks for something before it answers, which can't be passed on")
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
    if let Some(level) = level.and_then(|level| words::translated(&level).ok()) {
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

fn tell(context: &mut CallContext, word: Word) {
    match word {
        Word::Progress {
            progress,
            total,
            message,
        } => context.progress(progress, total, message.as_deref()),
        Word::Log { level, text } => context.log(level, &text),
    }
}

/// Request that has been sent. Dropped without an answer, it is cancelled.
struct Pending(Option<RequestHandle<RoleClient>>);

impl Pending {
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

impl Drop for Pending {
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
