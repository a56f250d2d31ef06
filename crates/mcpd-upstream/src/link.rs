//! What tools, resources and prompts of a server hold on to: the connection there is at the moment, and the way of one
//! request over it.

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

/// How many requests are made of a server at a time; others wait for their turn.
pub(crate) const MOST_AT_A_TIME: usize = 64;
/// The code of what is too much now, as mcpd has it, too: the error says when to try again, and callers can do so.
pub(crate) const TOO_MANY_REQUESTS: i32 = 429;
/// The code that stands here for an answer that can't be read: one that no server would choose.
pub(crate) const UNREADABLE: ErrorCode = ErrorCode(i32::MIN);
/// How long a request waits for a connection.
const FOR_CONNECTION: Duration = Duration::from_secs(5);

/// The way to one server, whether or not there is one at the moment.
#[derive(Debug)]
pub(crate) struct Link {
    /// What people know the server as.
    name: String,
    secrets: Secrets,
    remarks: Remarks,
    timeout: Duration,
    turns: Semaphore,
    open: watch::Sender<Option<Open>>,
}

/// An open connection.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) listener: Listener,
}

/// What is known of a request that has been sent.
#[derive(Debug)]
struct Sent {
    listener: Listener,
    /// How many messages had come before.
    heard: u64,
}

/// Why there is no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server says so.
    Refused(ErrorData),
    /// The server says nothing, or nothing that makes sense. Told to callers.
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

    /// Oddities of the server, over all connections.
    pub(crate) fn remarks(&self) -> &Remarks {
        &self.remarks
    }

    /// Uses this connection from now on, or none.
    pub(crate) fn set(&self, open: Option<Open>) {
        self.open.send_replace(open);
    }

    /// Makes a request, and tells its caller what the server says meanwhile.
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
                // What was said before the answer is told before it.
                biased;
                word = words.next() => tell(context, word),
                answer = pending.answer() => break answer,
                () = open.listener.closed.cancelled() => break Err(ServiceError::TransportClosed),
            }
        };
        drop(turn);
        answer.map_err(|error| self.failure(error, &open))
    }

    /// The connection, as soon as there is one.
    async fn open(&self) -> Result<Open, Failure> {
        let mut open = self.open.subscribe();
        let opened = tokio::time::timeout(FOR_CONNECTION, open.wait_for(Option::is_some)).await;
        let opened = opened.ok().and_then(Result::ok);
        opened
            .and_then(|open| open.clone())
            .ok_or_else(|| self.unanswered("is not connected"))
    }

    /// The operator learns what happened; the caller only that something did.
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

    /// The operator learns of it once, until the server says something again.
    fn overdue(&self, sent: Option<Sent>) -> Failure {
        let what = format!("has not answered within {:?}", self.timeout);
        if sent.is_some_and(|sent| sent.listener.waits_in_vain(sent.heard)) {
            tracing::warn!(upstream = self.name, "a request failed: it {what}");
        }
        self.unanswered(&what)
    }

    /// The failure that the server tells of itself.
    fn refused(&self, error: &ErrorData) -> Failure {
        let message = self.secrets.redact(error.message.to_string());
        let data = error.data.as_ref();
        let data = data.and_then(|data| self.redacted(data).ok());
        Failure::Refused(ErrorData::new(error.code, message, data))
    }

    /// What the server says in other words, and without secrets.
    ///
    /// # Errors
    ///
    /// What in it there are no such words for.
    pub(crate) fn redacted<T: DeserializeOwned>(&self, said: &impl Serialize) -> Result<T, String> {
        words::redacted(&self.secrets, said)
    }

    fn unanswered(&self, what: &str) -> Failure {
        Failure::Unanswered(format!("The upstream server `{}` {what}.", self.name))
    }

    /// The failure of a server that answers with something else than what was asked for.
    pub(crate) fn confused(&self, answer: impl fmt::Display) -> Failure {
        let answer = self.secrets.redact(answer.to_string());
        tracing::warn!(upstream = self.name, "an answer makes no sense: {answer}");
        self.unanswered("gave no valid answer")
    }

    /// The failure of a server that would go on only if it were told more.
    pub(crate) fn asks_back(&self) -> Failure {
        self.unanswered("asks for something before it answers, which can't be passed on")
    }
}

/// What a request is about, by its name there.
fn name(request: &ClientRequest) -> Option<&str> {
    match request {
        ClientRequest::CallToolRequest(request) => Some(&request.params.name),
        ClientRequest::GetPromptRequest(request) => Some(&request.params.name),
        _ => None,
    }
}

/// The kind of failure, under the names that spans have for it.
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

/// What is wanted beside the answer, and which trace the request is part of. Baggage stays here: it may say who calls.
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

/// A request that has been sent. Dropped without an answer, it is cancelled.
struct Pending(Option<RequestHandle<RoleClient>>);

impl Pending {
    /// Waits for the answer, which there is once.
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

/// For methods whose results can't tell of failures.
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
