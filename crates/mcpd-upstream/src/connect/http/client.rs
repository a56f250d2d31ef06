//! HTTP client of rmcp's transport: turns each response of a server, gateway or proxy, which
//! differ widely in form, into an answer, a lost session, or a fault.
//!
//! The trace of a request is also in its headers, for proxies that read no messages. Faults are
//! reported without the URL, whose query may be a secret.

#![expect(clippy::disallowed_types, reason = "rmcp keeps headers so")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt as _};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta as _, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::sync::watch;

use super::response::{self, Answered, Refusal};
use super::{events, redirect};
use crate::connect::MAX_MESSAGE;
use crate::connect::reader::{Origin, Reader};
use crate::conversion;
use crate::listener::Listener;
use crate::pending::Kind;

/// Time limit for the answer to `server/discover`. Shorter than that of rmcp, which then sends the
/// handshake anyway.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(8);
/// Time limit for opening the stream that carries the answer to a request with status 202.
const STREAM_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of remembered requests for which a session was opened again.
const MAX_RENEWALS: usize = 64;
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

type Headers = HashMap<HeaderName, HeaderValue>;
pub(super) type HttpFault = StreamableHttpError<reqwest::Error>;
type Posted = Result<StreamableHttpPostResponse, HttpFault>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// HTTP client.
#[derive(Debug, Clone)]
pub(in crate::connect) struct HttpClient {
    http: reqwest::Client,
    reader: Reader,
    listener: Listener,
    has_greeted: Arc<AtomicBool>,
    /// Reports whether there is a stream for messages outside responses, as soon as that is known.
    has_stream: watch::Sender<Option<bool>>,
    /// Requests for which a session was opened again. If such a request is rejected once more, the
    /// server's message is its answer.
    renewals: Arc<Mutex<Vec<RequestId>>>,
}

/// Credentials and session of a request.
struct Sender {
    session: Option<Arc<str>>,
    token: Option<String>,
    headers: Headers,
}

impl HttpClient {
    pub(super) fn new(http: reqwest::Client, reader: Reader, listener: &Listener) -> Self {
        Self {
            http,
            reader,
            listener: listener.clone(),
            has_greeted: Arc::default(),
            has_stream: watch::Sender::default(),
            renewals: Arc::default(),
        }
    }

    /// Sends a request to `uri`, following redirects on the same origin.
    async fn send(
        &self,
        method: Method,
        uri: &str,
        sender: Sender,
        body: Option<Vec<u8>>,
    ) -> Result<Response, HttpFault> {
        let mut request = self
            .http
            .request(method, uri)
            .header(ACCEPT, "text/event-stream, application/json");
        if let Some(token) = sender.token {
            request = request.bearer_auth(token);
        }
        if let Some(session) = sender.session {
            request = request.header(SESSION, &*session);
        }
        request = request.headers(sender.headers.into_iter().collect());
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let request = request.build().map_err(without_url)?;
        redirect::follow(&self.http, request, &self.reader.remarks).await
    }

    /// Posts a request, and reads the response.
    async fn post_request(
        &self,
        origin: &Origin,
        session: bool,
        request: impl Future<Output = Result<Response, HttpFault>>,
    ) -> Posted {
        let mut response = request.await?;
        let status = response.status();
        let named = response.headers().get(SESSION);
        let named = named.and_then(|id| id.to_str().ok()).map(str::to_owned);
        let answered = match status.is_success() {
            true => response::read_success(response, origin, &self.reader).await,
            false => {
                let refusal = Refusal::read(&mut response, origin, &self.reader).await;
                return self.interpret_refusal(origin, session, refusal);
            }
        };
        match answered {
            Ok(Answered::Message(message)) => Ok(StreamableHttpPostResponse::Json(*message, named)),
            Ok(Answered::Stream(events)) => Ok(StreamableHttpPostResponse::Sse(events, named)),
            Ok(Answered::Accepted) => self.await_stream(origin, session, status).await,
            Err(fault) => match response::stand_in(&fault, origin) {
                Some(error) => Ok(StreamableHttpPostResponse::Json(error, named)),
                None => Err(fault),
            },
        }
    }

    /// Interprets an unsuccessful response.
    fn interpret_refusal(&self, origin: &Origin, has_session: bool, refusal: Refusal) -> Posted {
        if has_session && refusal.is_of_session() && self.may_renew(&origin.id) {
            return Err(StreamableHttpError::SessionExpired);
        }
        match refusal.into_answer(origin) {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, None)),
            Err(fault) => match response::stand_in(&fault, origin) {
                Some(error) => Ok(StreamableHttpPostResponse::Json(error, None)),
                None => Err(fault),
            },
        }
    }

    /// Returns whether the session may be renewed for this request: only at its first rejection.
    fn may_renew(&self, id: &RequestId) -> bool {
        let mut renewals = self.renewals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = renewals.iter().position(|renewed| renewed == id) {
            renewals.remove(place);
            return false;
        }
        if renewals.len() == MAX_RENEWALS {
            renewals.remove(0);
        }
        renewals.push(id.clone());
        true
    }

    /// Interprets an accepted request: its answer will arrive on the separate stream, if there is
    /// one.
    async fn await_stream(&self, origin: &Origin, has_session: bool, status: StatusCode) -> Posted {
        let mut stream = self.has_stream.subscribe();
        let known = tokio::time::timeout(STREAM_TIMEOUT, stream.wait_for(Option::is_some));
        let is_greeting = matches!(origin.kind, Kind::Initialize | Kind::Discover);
        if has_session
            && !is_greeting
            && known
                .await
                .is_ok_and(|has| has.is_ok_and(|has| *has == Some(true)))
        {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let fault = format!("HTTP {status} without a response or a stream");
        let fault = StreamableHttpError::UnexpectedServerResponse(fault.into());
        match response::stand_in(&fault, origin) {
            Some(error) => Ok(StreamableHttpPostResponse::Json(error, None)),
            None => Err(fault),
        }
    }

    /// Asks a server whether it speaks the newest revision. Any answer other than a result means
    /// that it does not.
    async fn post_discover(
        &self,
        origin: &Origin,
        request: impl Future<Output = Result<Response, HttpFault>>,
    ) -> Posted {
        let answered = async {
            match self.post_request(origin, false, request).await? {
                StreamableHttpPostResponse::Sse(mut events, _) => {
                    while let Some(Ok(event)) = events.next().await {
                        let read = serde_json::from_str(&event.data.unwrap_or_default());
                        if let Ok(
                            answer @ (ServerJsonRpcMessage::Response(_)
                            | ServerJsonRpcMessage::Error(_)),
                        ) = read
                        {
                            return Ok(Some(answer));
                        }
                    }
                    Ok(None)
                }
                StreamableHttpPostResponse::Json(answer, _) => Ok(Some(answer)),
                _ => Ok(None),
            }
        };
        let refusal = match tokio::time::timeout(DISCOVER_TIMEOUT, answered).await {
            Ok(Ok(Some(answer))) => return Ok(StreamableHttpPostResponse::Json(answer, None)),
            Ok(Ok(None)) => "there is no response".to_owned(),
            Ok(Err(fault)) if response::is_unreachable(&fault) => return Err(fault),
            Ok(Err(fault)) => conversion::chain(&fault),
            Err(_) => format!("there is no response within {DISCOVER_TIMEOUT:?}"),
        };
        let error = ErrorData::invalid_request(format!("`server/discover`: {refusal}"), None);
        let answer = ServerJsonRpcMessage::error(error, Some(origin.id.clone()));
        Ok(StreamableHttpPostResponse::Json(answer, None))
    }

    /// Sends a message that needs no answer: a notification, or an answer.
    async fn send_message(
        &self,
        has_session: bool,
        request: impl Future<Output = Result<Response, HttpFault>>,
    ) -> Posted {
        let mut response = request.await?;
        if response.status().is_success() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let refusal = Refusal::read_words(&mut response, &self.reader).await;
        if has_session && refusal.is_of_session() {
            return Err(StreamableHttpError::SessionExpired);
        }
        Err(refusal.into_fault())
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        mut headers: Headers,
    ) -> Posted {
        let has_session = session.is_some();
        let origin = Origin::of(&message);
        let mut is_first_greeting = false;
        if let ClientJsonRpcMessage::Request(request) = &message {
            headers.extend(trace(&request.request));
            is_first_greeting = matches!(request.request, ClientRequest::DiscoverRequest(_));
        }
        let body = serde_json::to_vec(&message)?;
        let sender = Sender {
            session,
            token,
            headers,
        };
        let request = self.send(Method::POST, &uri, sender, Some(body));
        let Some(origin) = origin else {
            return self.send_message(has_session, request).await;
        };
        if is_first_greeting {
            return self.post_discover(&origin, request).await;
        }
        let posted = self.post_request(&origin, has_session, request).await;
        let is_greeting = origin.kind == Kind::Initialize && posted.is_ok();
        if is_greeting && self.has_greeted.swap(true, Relaxed) {
            self.listener.changed.notify_one();
        }
        posted
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpFault> {
        let sender = Sender {
            session: Some(session),
            token,
            headers,
        };
        // Many servers do not know this method, and the session ends anyway.
        self.send(Method::DELETE, &uri, sender, None).await?;
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        mut headers: Headers,
    ) -> Result<Events, HttpFault> {
        if let Some(Ok(event)) = last_event.map(|event| HeaderValue::from_str(&event)) {
            headers.insert(LAST_EVENT, event);
        }
        let sender = Sender {
            session,
            token,
            headers,
        };
        let opened = match self.send(Method::GET, &uri, sender, None).await {
            Ok(response) => open_stream(response),
            Err(fault) => Err(fault),
        };
        self.has_stream.send_replace(Some(opened.is_ok()));
        let events = events::decode(opened?, MAX_MESSAGE);
        Ok(response::translate(events, None, &self.reader))
    }
}

/// Checks that a response is a stream. A permanent refusal is not retried.
fn open_stream(response: Response) -> Result<Response, HttpFault> {
    let status = response.status();
    if status == StatusCode::UNAUTHORIZED {
        return Err(auth_required(&response));
    }
    let is_passing = status.is_server_error()
        || matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
        );
    match response.error_for_status_ref() {
        Err(error) if is_passing => Err(without_url(error)),
        Ok(_) if response::is_event_stream(&response) => Ok(response),
        _ => Err(StreamableHttpError::ServerDoesNotSupportSse),
    }
}

/// Returns the fault of a response with the status 401.
pub(super) fn auth_required(response: &Response) -> HttpFault {
    match response.headers().get(WWW_AUTHENTICATE) {
        Some(challenge) => {
            let challenge = String::from_utf8_lossy(challenge.as_bytes()).into_owned();
            StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge))
        }
        None => StreamableHttpError::UnexpectedServerResponse(
            format!("HTTP {}", response.status()).into(),
        ),
    }
}

/// Returns the fault without its URL, for a log: the query of a URL may be a secret.
pub(super) fn without_url(error: reqwest::Error) -> HttpFault {
    StreamableHttpError::Client(error.without_url())
}

/// Returns the trace headers of a request.
fn trace(request: &ClientRequest) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    let meta = request.get_meta();
    let members = [
        ("traceparent", meta.get_traceparent()),
        ("tracestate", meta.get_tracestate()),
    ];
    members.into_iter().filter_map(|(name, value)| {
        let value = value?.parse().ok()?;
        Some((HeaderName::from_static(name), value))
    })
}

#[cfg(test)]
mod tests;
