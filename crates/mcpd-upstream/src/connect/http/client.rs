//! The HTTP client of rmcp with four things more: the trace of a request is in its headers as well, for whoever on the way
//! reads no messages; a server that has too much to do, or answers a call with what is no answer, is not gone; what goes wrong
//! is told without the URL; and a server that has forgotten the session, so that rmcp greets it again, may have other things
//! than before.

#![expect(clippy::disallowed_types, reason = "rmcp keeps headers so")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use reqwest::StatusCode;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetMeta as _, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use serde_json::json;
use sse_stream::Sse;

use super::super::{MAX_MESSAGE, in_place_of_rounded, unreadable};
use crate::link::TOO_MANY_REQUESTS;
use crate::listener::Listener;
use crate::words;

/// How rmcp begins to tell of an answer that it can't read.
const NO_MESSAGE: &str = "could not parse JSON response";

type Headers = HashMap<HeaderName, HeaderValue>;
type Fault = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The client.
#[derive(Debug, Clone)]
pub(in crate::connect) struct Client {
    http: reqwest::Client,
    listener: Listener,
    has_greeted: Arc<AtomicBool>,
}

impl Client {
    pub(super) fn new(http: reqwest::Client, listener: &Listener) -> Self {
        Self {
            http,
            listener: listener.clone(),
            has_greeted: Arc::default(),
        }
    }
}

impl StreamableHttpClient for Client {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Fault> {
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session,
            token,
            headers,
            MAX_MESSAGE,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        mut headers: Headers,
        most: usize,
    ) -> Result<StreamableHttpPostResponse, Fault> {
        let mut id = None;
        let (mut is_greeting, mut is_call) = (false, false);
        if let ClientJsonRpcMessage::Request(request) = &message {
            is_greeting = matches!(request.request, ClientRequest::InitializeRequest(_));
            is_call = belongs_to_caller(&request.request);
            headers.extend(trace(&request.request));
            id = Some(request.id.clone());
        }
        let post = self
            .http
            .post_message_with_max_sse_event_size(uri, message, session, token, headers, most);
        match post.await.map_err(without_url) {
            Ok(answer) => {
                if is_greeting && self.has_greeted.swap(true, Relaxed) {
                    self.listener.changed.notify_one();
                }
                Ok(match answer {
                    StreamableHttpPostResponse::Sse(events, session) if is_call => {
                        StreamableHttpPostResponse::Sse(events.map_ok(unrounded).boxed(), session)
                    }
                    answer => answer,
                })
            }
            Err(fault) => match in_place_of(&fault, is_call) {
                Some(error) if id.is_some() => {
                    let answer = ServerJsonRpcMessage::error(error, id);
                    Ok(StreamableHttpPostResponse::Json(answer, None))
                }
                _ => Err(fault),
            },
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Fault> {
        let deleted = self.http.delete_session(uri, session, token, headers).await;
        deleted.map_err(without_url)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Fault> {
        self.get_stream_with_max_sse_event_size(
            uri,
            session,
            last_event,
            token,
            headers,
            MAX_MESSAGE,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<Events, Fault> {
        let stream = self
            .http
            .get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, most);
        stream.await.map_err(without_url)
    }
}

/// The same for a log: the query of a URL may be a secret.
fn without_url(fault: Fault) -> Fault {
    match fault {
        StreamableHttpError::Client(error) => StreamableHttpError::Client(error.without_url()),
        fault => fault,
    }
}

/// The trace that a request says it is part of.
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

/// Whether somebody asks for this who is told if it fails. With any other request it is the server that fails.
fn belongs_to_caller(request: &ClientRequest) -> bool {
    matches!(
        request,
        ClientRequest::CallToolRequest(_)
            | ClientRequest::GetPromptRequest(_)
            | ClientRequest::ReadResourceRequest(_)
    )
}

/// The same, unless it is an answer with an integer that would be rounded: an error stands for that.
fn unrounded(mut event: Sse) -> Sse {
    let error = event.data.as_deref().and_then(in_place_of_rounded);
    if let Some(error) = error.and_then(|error| serde_json::to_string(&error).ok()) {
        event.data = Some(error);
    }
    event
}

/// The error that stands for an answer that is none, if other requests have nothing to do with that.
fn in_place_of(fault: &Fault, is_call: bool) -> Option<ErrorData> {
    match fault {
        StreamableHttpError::HttpStatus(status)
            if status.status == StatusCode::TOO_MANY_REQUESTS.as_u16() =>
        {
            Some(too_many(status))
        }
        StreamableHttpError::UnexpectedServerResponse(what) => {
            let is_status = what.starts_with("HTTP ");
            let is_locked = what.starts_with("HTTP 401");
            let is_alone = what.starts_with(NO_MESSAGE) || is_call && is_status && !is_locked;
            is_alone.then(|| unreadable(what))
        }
        // Whoever is let in may still not be allowed everything.
        StreamableHttpError::InsufficientScope(_)
        | StreamableHttpError::HttpStatus(_)
        | StreamableHttpError::UnexpectedContentType(_)
        | StreamableHttpError::ResponseBodyTooLarge { .. } => is_call.then(|| unreadable(fault)),
        // It breaks off.
        StreamableHttpError::Client(error) if error.is_body() || error.is_decode() => {
            is_call.then(|| unreadable(words::chain(error)))
        }
        _ => None,
    }
}

/// What a server says by the status alone, as the error of its protocol: rmcp reads no further.
fn too_many(status: &HttpStatusError) -> ErrorData {
    let seconds: Option<u64> = status
        .retry_after
        .as_ref()
        .and_then(|wait| wait.parse().ok());
    let wait = seconds.map(|seconds| json!({ "retryAfterMs": seconds.saturating_mul(1000) }));
    ErrorData::new(ErrorCode(TOO_MANY_REQUESTS), "too many requests", wait)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use rmcp::model::{
        CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation,
        InitializeRequest, NumberOrString,
    };
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    /// Posts a request that is part of a trace to somebody who answers with `answer`; gives what arrives there, and what
    /// becomes of the answer.
    async fn exchange(answer: &'static str) -> (String, Result<StreamableHttpPostResponse, Fault>) {
        let mut request = ClientRequest::CallToolRequest(CallToolRequest::new(
            CallToolRequestParams::new("greet"),
        ));
        request.get_meta_mut().set_traceparent(PARENT);
        request.get_meta_mut().set_tracestate("a=b");
        post(&client(&Listener::default()), request, answer).await
    }

    fn client(listener: &Listener) -> Client {
        rustls::crypto::ring::default_provider()
            .install_default()
            .ok();
        Client::new(reqwest::Client::new(), listener)
    }

    async fn post(
        client: &Client,
        request: ClientRequest,
        answer: &'static str,
    ) -> (String, Result<StreamableHttpPostResponse, Fault>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let message = ClientJsonRpcMessage::request(request, NumberOrString::Number(7));
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut arrived = String::new();
            while !arrived.contains("\r\n\r\n") {
                let byte = stream.read_u8().await.unwrap();
                arrived.push(byte.into());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            arrived
        };
        let post = client.post_message(url.into(), message, None, None, Headers::default());
        tokio::join!(serve, post)
    }

    #[tokio::test]
    async fn a_trace_is_in_the_headers_as_well() {
        let (arrived, _) = exchange("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await;
        for expected in [&format!("traceparent: {PARENT}\r\n"), "tracestate: a=b\r\n"] {
            assert!(arrived.contains(expected), "{arrived}");
        }
    }

    #[tokio::test]
    async fn the_query_of_a_url_is_in_no_fault() {
        let client = client(&Listener::default());
        let url: Arc<str> = "http://127.0.0.1:1/mcp?key=s3cret".into();
        let session: Arc<str> = "1".into();
        let headers = Headers::default;
        let (url, session) = (|| Arc::clone(&url), || Arc::clone(&session));
        let stream = client.get_stream(url(), None, None, None, headers());
        let deleted = client.delete_session(url(), session(), None, headers());
        for fault in [stream.await.err(), deleted.await.err()] {
            let fault = fault.expect("nobody is there");
            let told = format!("{fault} {fault:?} {}", words::chain(&fault));
            assert!(!told.contains("s3cret"), "{told}");
        }
    }

    #[tokio::test]
    async fn a_server_that_is_greeted_again_may_have_changed() {
        let listener = Listener::default();
        let client = client(&listener);
        let identity = Implementation::new("test", "0");
        let config = ClientConfig::new(ClientCapabilities::default(), identity);
        for is_news in [false, true] {
            let greeting = InitializeRequest::new(config.clone());
            let greeting = ClientRequest::InitializeRequest(greeting);
            let head = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
            post(&client, greeting, head).await.1.unwrap();
            let changed = listener.changed.notified().now_or_never();
            assert_eq!(changed.is_some(), is_news);
        }
    }

    #[track_caller]
    fn check(answered: Result<StreamableHttpPostResponse, Fault>, data: Option<serde_json::Value>) {
        let Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(answer), None)) =
            answered
        else {
            panic!("{answered:?}");
        };
        assert_eq!(answer.id, Some(NumberOrString::Number(7)));
        assert_eq!((answer.error.code.0, answer.error.data), (429, data));
    }

    #[tokio::test]
    async fn a_server_with_too_much_to_do_has_answered() {
        let head = "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nRetry-After: 2\r\n\r\n";
        check(exchange(head).await.1, Some(json!({"retryAfterMs": 2000})));
        let head =
            "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nRetry-After: soon\r\n\r\n";
        check(exchange(head).await.1, None);
    }
}
