//! Reader of successful responses: every message of a body or a stream goes to the client, in
//! order, and the answer to the request ends it.

use std::time::Duration;

use mcpd_protocol::jsonrpc::{self, Message};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::sleep;

use crate::events::Events;
use crate::http::Outgoing;
use crate::link::{Failure, Link, Reply};
use crate::message::{LAST_EVENT, SESSION};
use crate::pending::OpenRequest;
use crate::session::Opened;

/// Pause before a broken stream is resumed, unless the server names one.
const RESUME_PAUSE: Duration = Duration::from_secs(1);
/// Shortest pause that a server may name.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause that a server may name.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Meaning of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Any answer.
    Plain,
    /// Answer to `tools/list` in revision 2026-07-28, whose calls repeat arguments in headers.
    ToolList,
    /// Answer to the client's `initialize`.
    Introduction,
    /// Answer to an `initialize` that the client knows nothing of.
    Renewal,
    /// Stream without an answer.
    Stream,
}

/// Position in a stream of events, from which the server can resume it.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    pub(crate) last_event: Option<HeaderValue>,
    pub(crate) retry: Option<Duration>,
}

impl Cursor {
    /// Returns the pause before the stream is requested again.
    pub(crate) fn pause(&self) -> Duration {
        self.retry
            .unwrap_or(RESUME_PAUSE)
            .clamp(MIN_PAUSE, MAX_PAUSE)
    }

    /// Returns the request that resumes the stream.
    pub(crate) fn resumption(&self) -> Outgoing {
        let last_event = self.last_event.clone();
        let last_event = last_event.map(|id| (LAST_EVENT, id));
        Outgoing::bare(Method::GET).with(last_event.into_iter().collect())
    }
}

/// Result of `initialize`, as far as the bridge needs it.
#[derive(Debug, Deserialize)]
struct Introduction {
    #[serde(rename = "protocolVersion")]
    version: String,
}

/// Reader of the response to one request, or of a stream.
#[derive(Debug)]
pub(crate) struct AnswerReader<'a> {
    link: &'a Link,
    request: Option<&'a OpenRequest>,
    role: Role,
    is_answered: bool,
    /// Session that the response opens.
    session: Option<HeaderValue>,
    opened: Option<Opened>,
}

impl<'a> AnswerReader<'a> {
    pub(crate) fn new(link: &'a Link, request: Option<&'a OpenRequest>, role: Role) -> Self {
        Self {
            link,
            request,
            role,
            is_answered: false,
            session: None,
            opened: None,
        }
    }

    /// Reads the response to `initialize` of a renewal.
    pub(crate) async fn read_introduction(
        &mut self,
        response: Response,
    ) -> Result<Opened, Failure> {
        self.read(response).await?;
        let opened = self.opened.take();
        opened.ok_or_else(|| self.fail("the new session is refused; restart the client"))
    }

    /// Reads a response up to the answer.
    pub(crate) async fn read(&mut self, response: Response) -> Result<(), Failure> {
        self.session = response.headers().get(SESSION).cloned();
        if !is_event_stream(&response) {
            let body = self.read_body(response).await?;
            self.deliver_all(body).await?;
            return match self.is_answered {
                true => Ok(()),
                false => Err(self.fail("it does not answer the request")),
            };
        }
        let mut cursor = Cursor::default();
        let mut ending = self.read_events(response, &mut cursor).await?;
        let can_resume =
            self.role == Role::Plain && self.request.is_some_and(|request| !request.is_stateless);
        while !self.is_answered && can_resume && cursor.last_event.is_some() {
            if self.request.is_some_and(OpenRequest::is_cancelled) {
                return Ok(());
            }
            sleep(cursor.pause()).await;
            ending = self.resume(&mut cursor).await?;
        }
        match self.is_answered {
            true => Ok(()),
            false => Err(self.break_off(&ending)),
        }
    }

    /// Requests the rest of a stream. Returns the way in which that ended.
    async fn resume(&mut self, cursor: &mut Cursor) -> Result<String, Failure> {
        let headers = self.link.session.current().headers();
        let reply = self.link.send(&cursor.resumption().with(headers)).await?;
        match reply {
            Reply::Success(response) if is_event_stream(&response) => {
                self.read_events(response, cursor).await
            }
            Reply::Success(_) => Err(self.break_off("the server does not resume the stream")),
            Reply::Refusal(refusal) => Err(self.break_off(&format!(
                "the server does not resume the stream: {}",
                refusal.describe()
            ))),
        }
    }

    /// Reads events up to the answer, or to the end of the stream. Returns the way in which it
    /// ended.
    pub(crate) async fn read_events(
        &mut self,
        response: Response,
        cursor: &mut Cursor,
    ) -> Result<String, Failure> {
        let mut events = Events::new(response, self.link.max_message);
        loop {
            let event = match events.next_event().await {
                Ok(Some(event)) => event,
                Ok(None) => return Ok("the stream ended".to_owned()),
                Err(reason) => return Ok(format!("the stream broke off: {reason}")),
            };
            if let Some(id) = &event.id {
                cursor.last_event = HeaderValue::from_str(id).ok().filter(|_| !id.is_empty());
            }
            if let Some(retry) = event.retry {
                cursor.retry = Some(Duration::from_millis(retry));
            }
            let is_message = matches!(&*event.name, "" | "message");
            if is_message && !event.data.trim_ascii().is_empty() {
                self.deliver_all(event.data).await?;
                if self.is_answered {
                    return Ok(String::new());
                }
            }
        }
    }

    async fn read_body(&self, mut response: Response) -> Result<Vec<u8>, Failure> {
        let max_size = self.link.max_message;
        let too_large = || self.fail(&format!("the answer has more than {max_size} bytes"));
        let announced = response.content_length().unwrap_or(0);
        let announced = usize::try_from(announced).unwrap_or(usize::MAX);
        if announced > max_size {
            return Err(too_large());
        }
        let kind = media_type(&response).unwrap_or_default();
        let status = response.status().as_u16();
        // One allocation, so that a large body is in memory once.
        let mut body = Vec::with_capacity(announced + 1);
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > max_size => return Err(too_large()),
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => {
                    return Err(self.break_off(&crate::error::chain(&error.without_url())));
                }
            }
        }
        let content = body.trim_ascii();
        if content.is_empty() {
            return Err(self.fail(&format!("HTTP {status} without an answer")));
        }
        let is_json = kind.ends_with("json") || matches!(content[0], b'{' | b'[');
        match is_json {
            true => Ok(body),
            false => Err(self.fail(&format!(
                "the answer is `{kind}` and not JSON; check the path of the URL"
            ))),
        }
    }

    /// Passes on a message, or the messages of a batch.
    async fn deliver_all(&mut self, text: Vec<u8>) -> Result<(), Failure> {
        if text.trim_ascii_start().first() != Some(&b'[') {
            return self.deliver(text).await;
        }
        let elements: Vec<Box<RawValue>> = serde_json::from_slice(&text)
            .map_err(|error| self.fail(&format!("the answer is not JSON: {error}")))?;
        drop(text);
        for element in elements {
            let text: Box<str> = element.into();
            self.deliver(String::from(text).into_bytes()).await?;
        }
        Ok(())
    }

    /// Passes on one message.
    async fn deliver(&mut self, text: Vec<u8>) -> Result<(), Failure> {
        let message = Message::decode(&text).map_err(|fault| {
            self.fail(&format!(
                "the answer is not a message: {}",
                fault.error.message
            ))
        })?;
        let own = self.request.map(|request| &request.id);
        let mut replaced = None;
        if let Message::Response(answer) = &message {
            let is_own = match (&answer.id, own) {
                (Some(id), Some(own)) => id == own,
                (Some(_), None) => self.role == Role::Renewal,
                // The server could not read the id.
                (None, _) => self.role != Role::Stream,
            };
            self.is_answered |= is_own;
            if let (true, Ok(result)) = (is_own, &answer.outcome) {
                match self.role {
                    Role::ToolList => self.link.parameters.learn(result),
                    _ => self.record_session(result),
                }
            }
            if let (None, Some(own), Err(error)) = (&answer.id, own, &answer.outcome) {
                replaced = Some(jsonrpc::error_response(Some(own), error));
            }
        }
        let is_hidden = self.role == Role::Renewal && matches!(message, Message::Response(_));
        let is_unwanted = self.is_answered && self.request.is_some_and(OpenRequest::is_cancelled);
        if !is_hidden && !is_unwanted {
            self.link.output.send(replaced.unwrap_or(text)).await;
        }
        Ok(())
    }

    /// Records the session that a result opens, before the client can use it.
    fn record_session(&mut self, result: &RawValue) {
        if !matches!(self.role, Role::Introduction | Role::Renewal) {
            return;
        }
        let introduction: Option<Introduction> = serde_json::from_str(result.get()).ok();
        let version = introduction.and_then(|answer| HeaderValue::try_from(answer.version).ok());
        let id = self.session.clone();
        match self.role {
            Role::Introduction => self.link.session.open(id, version),
            _ => {
                self.opened = Some(Opened {
                    generation: 0,
                    id,
                    version,
                });
            }
        }
    }

    /// Makes the failure of a request that the server may have executed.
    fn break_off(&self, reason: &str) -> Failure {
        Failure::new(format!(
            "failed to get the answer of `{}`: {reason}; the request may have been executed",
            self.link.place()
        ))
    }

    fn fail(&self, reason: &str) -> Failure {
        Failure::new(format!(
            "failed to read the answer of `{}`: {reason}",
            self.link.place()
        ))
    }
}

/// Returns the media type of a response in lower case, without parameters.
fn media_type(response: &Response) -> Option<String> {
    let kind = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let kind = kind.split(';').next().unwrap_or_default();
    Some(kind.trim().to_ascii_lowercase())
}

pub(crate) fn is_event_stream(response: &Response) -> bool {
    media_type(response).as_deref() == Some("text/event-stream")
}
