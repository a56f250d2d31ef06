//! Responses to posted requests, interpreted by status, media type and body.

use std::error::Error;

use futures_util::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use mcpd_scriptspec::excerpt;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Response, StatusCode};
use rmcp::model::{ErrorCode, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, InsufficientScopeError, SseError, StreamableHttpError,
};
use serde_json::json;
use sse_stream::Sse;

use super::client::{HttpFault, auth_required, without_url};
use super::events;
use crate::connect::MAX_MESSAGE;
use crate::connect::reader::{Origin, Reader, Reading, unreadable};
use crate::conversion;
use crate::link::TOO_MANY_REQUESTS;

/// Maximum bytes read from the body of an unsuccessful response.
const MAX_REFUSAL: usize = 64 << 10;
/// Maximum length of a body's excerpt in a fault, in characters.
const MAX_WORDS: usize = 200;

type Events = BoxStream<'static, Result<Sse, SseError>>;

/// Content of a successful response.
pub(super) enum Answered {
    Message(Box<ServerJsonRpcMessage>),
    Stream(Events),
    /// No content; the answer arrives elsewhere.
    Accepted,
}

/// Reads a response with a status of success.
///
/// # Errors
///
/// Returns the reason why it contains no answer.
pub(super) async fn read_success(
    mut response: Response,
    origin: &Origin,
    reader: &Reader,
) -> Result<Answered, HttpFault> {
    if is_event_stream(&response) {
        let origin = Origin {
            is_streamed: true,
            ..origin.clone()
        };
        let events = events::decode(response, MAX_MESSAGE);
        return Ok(Answered::Stream(translate(events, Some(origin), reader)));
    }
    let (body, is_whole) = read_body(&mut response, MAX_MESSAGE).await?;
    if !is_whole {
        let max_size = MAX_MESSAGE;
        return Err(StreamableHttpError::ResponseBodyTooLarge { max_size });
    }
    if body.trim_ascii().is_empty() {
        return Ok(Answered::Accepted);
    }
    let kind = media_type(&response);
    let is_json = kind.as_deref().is_some_and(|kind| kind.ends_with("json"));
    if !is_json && !matches!(body.trim_ascii_start().first(), Some(b'{' | b'[' | b'\xEF')) {
        return Err(StreamableHttpError::UnexpectedContentType(kind));
    }
    let mut readings = reader.read(&body, Some(origin));
    let is_answer = |reading: &Reading| {
        matches!(
            reading.message,
            ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)
        )
    };
    match readings.as_slice() {
        [] => {
            let words = excerpt(&String::from_utf8_lossy(&body), MAX_WORDS);
            Ok(Answered::Message(Box::new(
                origin.fail(format!("it is not a message: {words}")),
            )))
        }
        [reading] if is_answer(reading) => {
            let reading = readings.swap_remove(0);
            Ok(Answered::Message(Box::new(reading.message)))
        }
        _ => {
            let messages = readings
                .into_iter()
                .filter_map(|reading| to_event(&reading));
            let events: Vec<_> = messages.map(Ok).collect();
            Ok(Answered::Stream(stream::iter(events).boxed()))
        }
    }
}

/// Rewrites the data of each event to messages that rmcp can read.
pub(super) fn translate(
    events: impl Stream<Item = Result<Sse, SseError>> + Send + 'static,
    origin: Option<Origin>,
    reader: &Reader,
) -> Events {
    let reader = reader.clone();
    let translate = move |event| stream::iter(translate_event(event, origin.as_ref(), &reader));
    let events = events.map_ok(move |event| translate(event).map(Ok));
    events.try_flatten().boxed()
}

fn translate_event(mut event: Sse, origin: Option<&Origin>, reader: &Reader) -> Vec<Sse> {
    let name = event.event.take().unwrap_or_default();
    let data = event.data.take().unwrap_or_default();
    let is_message = matches!(&*name, "" | "message") || data.contains("\"jsonrpc\"");
    if data.trim().is_empty() || !is_message {
        return vec![event];
    }
    let readings = reader.read(data.as_bytes(), origin);
    if let [reading] = readings.as_slice()
        && !reading.is_mended
    {
        event.data = Some(data);
        return vec![event];
    }
    let mut events: Vec<_> = readings.iter().filter_map(to_event).collect();
    match events.last_mut() {
        Some(last) => (last.id, last.retry) = (event.id, event.retry),
        None => events.push(event),
    }
    events
}

fn to_event(reading: &Reading) -> Option<Sse> {
    let json = serde_json::to_string(&reading.message).ok()?;
    Some(Sse::default().data(json))
}

/// Returns the media type of a response in lower case, without parameters.
fn media_type(response: &Response) -> Option<String> {
    let kind = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let kind = kind.split(';').next().unwrap_or_default();
    Some(kind.trim().to_ascii_lowercase())
}

pub(super) fn is_event_stream(response: &Response) -> bool {
    media_type(response).as_deref() == Some("text/event-stream")
}

/// Reads a body up to `max_size` bytes. Returns whether that is all of it.
async fn read_body(response: &mut Response, max_size: usize) -> Result<(Vec<u8>, bool), HttpFault> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(without_url)? {
        let rest = max_size - body.len();
        body.extend_from_slice(&chunk[..rest.min(chunk.len())]);
        if chunk.len() > rest {
            return Ok((body, false));
        }
    }
    Ok((body, true))
}

/// Response with an error status.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    fault: Option<HttpFault>,
    retry_after: Option<String>,
    /// JSON-RPC error in the body.
    error: Option<ErrorData>,
    /// Readable text of the body.
    words: String,
}

impl Refusal {
    /// Reads the response to a request.
    pub(super) async fn read(response: &mut Response, origin: &Origin, reader: &Reader) -> Self {
        Self::read_as(response, Some(origin), reader).await
    }

    /// Reads the response to a message that needs no answer.
    pub(super) async fn read_words(response: &mut Response, reader: &Reader) -> Self {
        Self::read_as(response, None, reader).await
    }

    async fn read_as(response: &mut Response, origin: Option<&Origin>, reader: &Reader) -> Self {
        let status = response.status();
        let header = |name| {
            let value = response.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let fault = match (status, header(WWW_AUTHENTICATE)) {
            (StatusCode::UNAUTHORIZED, _) => Some(auth_required(response)),
            (StatusCode::FORBIDDEN, Some(challenge)) => {
                let error = InsufficientScopeError::new(challenge, None);
                Some(StreamableHttpError::InsufficientScope(error))
            }
            _ => None,
        };
        let retry_after = header(RETRY_AFTER);
        let kind = media_type(response).unwrap_or_default();
        let body = read_body(response, MAX_REFUSAL).await;
        let body = body.map_or_else(|_| Vec::new(), |(body, _)| body);
        let text = String::from_utf8_lossy(&body);
        let is_object = matches!(
            text.trim_start().chars().next(),
            Some('{' | '[' | '\u{feff}')
        );
        let readings = match is_object && text.contains("\"jsonrpc\"") {
            true => reader.read(&body, origin),
            false => Vec::new(),
        };
        let error = readings
            .into_iter()
            .find_map(|reading| match reading.message {
                ServerJsonRpcMessage::Error(answer) => Some(answer.error),
                _ => None,
            });
        // An HTML page is useless in a log.
        let has_words = is_object || matches!(&*kind, "" | "text/plain");
        let words = if has_words { text.trim() } else { "" };
        Self {
            status,
            fault,
            retry_after,
            error,
            words: excerpt(words, MAX_WORDS).replace(char::is_control, " "),
        }
    }

    /// Returns whether it reports an unknown or expired session.
    pub(super) fn is_of_session(&self) -> bool {
        match self.status {
            StatusCode::NOT_FOUND | StatusCode::GONE => true,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => {
                false
            }
            _ => {
                let said = self
                    .error
                    .as_ref()
                    .map_or(&*self.words, |error| &*error.message);
                let said = said.to_lowercase();
                said.contains("session") || said.contains("not initialized")
            }
        }
    }

    /// Returns the JSON-RPC error that it contains, or that its status stands for: rmcp reads no
    /// status.
    pub(super) fn into_answer(self, origin: &Origin) -> Result<ServerJsonRpcMessage, HttpFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let error = match self.error {
            _ if self.status == StatusCode::TOO_MANY_REQUESTS => too_many(self.retry_after),
            Some(error) => error,
            None => return Err(self.into_fault()),
        };
        Ok(ServerJsonRpcMessage::error(error, Some(origin.id.clone())))
    }

    pub(super) fn into_fault(self) -> HttpFault {
        if let Some(fault) = self.fault {
            return fault;
        }
        let words = match &self.error {
            Some(error) => error.message.to_string(),
            None => self.words,
        };
        if words.is_empty() {
            return HttpStatusError::new(self.status.as_u16(), None).into();
        }
        let fault = format!("HTTP {}: {words}", self.status.as_u16());
        StreamableHttpError::UnexpectedServerResponse(fault.into())
    }
}

/// Returns the JSON-RPC error for the status 429.
fn too_many(retry_after: Option<String>) -> ErrorData {
    let seconds: Option<u64> = retry_after.and_then(|wait| wait.parse().ok());
    let wait = seconds.map(|seconds| json!({ "retryAfterMs": seconds.saturating_mul(1000) }));
    ErrorData::new(ErrorCode(TOO_MANY_REQUESTS), "too many requests", wait)
}

/// Returns an error as the answer to a call, if the fault concerns this call alone and not the
/// connection.
pub(super) fn stand_in(fault: &HttpFault, origin: &Origin) -> Option<ServerJsonRpcMessage> {
    let is_alone = match fault {
        // A client that is authenticated may still lack permissions.
        StreamableHttpError::InsufficientScope(_)
        | StreamableHttpError::HttpStatus(_)
        | StreamableHttpError::UnexpectedContentType(_)
        | StreamableHttpError::ResponseBodyTooLarge { .. } => true,
        StreamableHttpError::UnexpectedServerResponse(what) => !what.starts_with("HTTP 401"),
        // The body breaks off.
        StreamableHttpError::Client(error) => error.is_body() || error.is_decode(),
        _ => false,
    };
    let is_alone = is_alone && origin.kind.belongs_to_caller();
    is_alone.then(|| {
        let error = unreadable(conversion::chain(fault));
        ServerJsonRpcMessage::error(error, Some(origin.id.clone()))
    })
}

/// Returns whether the server wants credentials, or others.
pub(in crate::connect) fn is_unauthorized(error: &(dyn Error + 'static)) -> bool {
    match error.downcast_ref::<HttpFault>() {
        Some(StreamableHttpError::AuthRequired(_)) => true,
        Some(StreamableHttpError::HttpStatus(error)) => error.status == 401,
        Some(StreamableHttpError::UnexpectedServerResponse(what)) => what.starts_with("HTTP 401"),
        _ => false,
    }
}

/// Returns whether the fault precedes any processing of the message: the server is down, or
/// rejects the client.
pub(super) fn is_unreachable(fault: &HttpFault) -> bool {
    match fault {
        StreamableHttpError::Client(error) => !error.is_body() && !error.is_decode(),
        StreamableHttpError::AuthRequired(_) => true,
        StreamableHttpError::UnexpectedServerResponse(what) => {
            what.starts_with("HTTP 401") || what.contains("redirects")
        }
        _ => false,
    }
}
