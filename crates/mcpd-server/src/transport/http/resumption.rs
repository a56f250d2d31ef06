//! Resumable event streams of a session, which outlive their connections. One task per stream
//! writes each message to the event log, and to the response that reads the stream at the moment;
//! a client that reconnects names the last event it has received, and gets those after it. An
//! attached reader holds its writer back (backpressure); without one, only the bound of the log
//! applies.
//!
//! ```text
//! notifications ─┐                    ┌──► event log ──► reader that comes back, up to the present
//!                ├─► Writer, one task ┤
//! answer ────────┘                    └──► attached reader, one event at a time
//! ```

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Response, StatusCode};
use mcpd_protocol::ProtocolVersion;
use mcpd_protocol::jsonrpc::RequestId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::event_log::{EventId, EventLog, NextEvent, StreamKind, StreamReader, StreamState};
use super::events::{self, Events, PendingResponse};
use super::headers::accepts_events;
use super::reply::{self, ResponseBody};
use super::router::Router;
use super::sessions::Visit;
use crate::client::outbox::Outbox;
use crate::methods::subscriptions;
use crate::policy::principal::Principal;

/// Header with the last event that a client has received of the stream it resumes.
static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Resumption of the stream that answers a POST.
#[derive(Debug)]
pub(super) struct Resumable {
    log: Arc<EventLog>,
    kind: StreamKind,
    is_primed: bool,
}

impl Resumable {
    /// Returns the resumption for the answer to `request`, if the session of `visit` keeps
    /// events.
    pub(super) fn new(visit: &Visit, request: Option<RequestId>) -> Option<Self> {
        Some(Self {
            log: Arc::clone(visit.event_log()?),
            kind: StreamKind::Answer(request),
            is_primed: is_primed(visit),
        })
    }

    /// Returns whether the stream begins with an id.
    pub(super) fn is_primed(&self) -> bool {
        self.is_primed
    }

    /// Builds the stream of `first`, `notifications` and `answer`, which are all written whether
    /// or not it is read.
    pub(super) fn stream(
        self,
        first: Option<Bytes>,
        notifications: mpsc::Receiver<Bytes>,
        answer: PendingResponse,
    ) -> Events {
        let writer = StreamWriter::open(self.log, self.kind);
        let (events, _) = writer.read();
        let prelude = match self.is_primed {
            true => Some(events::priming_event(writer.last)),
            // The first message shows that the stream has begun, or else a comment does.
            false => first.is_none().then_some(events::COMMENT),
        };
        tokio::spawn(writer.answer(first, notifications, answer));
        events.beginning_with(prelude)
    }
}

/// Returns whether clients of this session accept an event without data. "The server SHOULD
/// immediately send an SSE event consisting of an event ID and an empty `data` field in order to
/// prime the client to reconnect" -- 2025-11-25/basic/transports#sending-messages-to-the-server
fn is_primed(visit: &Visit) -> bool {
    visit.session.version >= ProtocolVersion::V2025_11_25
}

impl Router {
    /// Opens the listening stream of a session, or resumes another stream. "The server MUST
    /// either return `Content-Type: text/event-stream` in response to this HTTP GET, or else
    /// return HTTP 405 Method Not Allowed"
    /// -- 2025-11-25/basic/transports#listening-for-messages-from-the-server
    pub(super) fn open_listening(
        &self,
        headers: &HeaderMap,
        caller: &Principal,
    ) -> Response<ResponseBody> {
        let visit = match self.find_conversation(headers, caller) {
            Ok(Some(visit)) if accepts_events(headers) => visit,
            Ok(Some(_)) => {
                let reason = "the stream of a session needs text/event-stream; accept it";
                return reply::not_allowed_as("POST", reason);
            }
            Ok(None) => {
                let reason = "POST messages here; GET is for the stream of a session that `Mcp-Session-Id` names";
                return reply::not_allowed_as("POST", reason);
            }
            Err(response) => return *response,
        };
        if let Some(last) = headers.get(&LAST_EVENT_ID) {
            let last = last.to_str().ok().and_then(|last| last.parse().ok());
            return self.resume_stream(visit, last, caller);
        }
        let Some(log) = visit.event_log() else {
            let (notifications, forward) = self.forward_events(visit, caller);
            return reply::without_end(reply::events(Events::new(None, notifications, forward)));
        };
        let writer = StreamWriter::open(Arc::clone(log), StreamKind::Listening);
        let prelude = is_primed(&visit).then(|| events::priming_event(writer.last));
        let (events, reader) = writer.read();
        let (notifications, forward) = self.forward_events(visit, caller);
        tokio::spawn(writer.listen(reader, notifications, forward));
        reply::without_end(reply::events(events.beginning_with(prelude)))
    }

    /// Returns the rest of a stream after an event. A finished or unknown stream is refused: an
    /// empty one would make the client reconnect without end.
    fn resume_stream(
        &self,
        visit: Visit,
        last: Option<EventId>,
        caller: &Principal,
    ) -> Response<ResponseBody> {
        let log = visit.event_log().map(Arc::clone);
        let (Some(log), Some(last)) = (log, last) else {
            return reply::text(StatusCode::BAD_REQUEST, UNKNOWN_EVENT);
        };
        match log.find(last) {
            StreamState::Unknown => reply::text(StatusCode::BAD_REQUEST, UNKNOWN_EVENT),
            StreamState::Lost => reply::text(
                StatusCode::BAD_REQUEST,
                "the events after this one are no longer available",
            ),
            StreamState::Finished => {
                reply::not_allowed_as("POST", "the stream ended with this event")
            }
            StreamState::Readable => {
                let (events, _) = follow(log, last, Some(visit));
                reply::without_end(reply::events(events))
            }
            StreamState::Reopened { last: sequence } => {
                let (events, reader) = follow(Arc::clone(&log), last, None);
                let last = EventId { sequence, ..last };
                let (notifications, forward) = self.forward_events(visit, caller);
                tokio::spawn(StreamWriter { log, last }.listen(reader, notifications, forward));
                reply::without_end(reply::events(events))
            }
        }
    }

    /// Returns the notifications of the session, and the future that forwards them.
    fn forward_events(
        &self,
        visit: Visit,
        caller: &Principal,
    ) -> (mpsc::Receiver<Bytes>, PendingResponse) {
        let (outbox, notifications) = Outbox::new();
        let stopping = self.server.engine().stopping.clone();
        let forward = subscriptions::forward(
            Arc::clone(self.server.live_catalog()),
            &visit.session,
            caller.clone(),
            outbox,
        );
        let forward = async move {
            stopping.run_until_cancelled(forward).await;
            drop(visit);
            None
        };
        (notifications, Box::pin(forward))
    }
}

/// Refusal of an event id from another session, or one so old that its stream is forgotten.
const UNKNOWN_EVENT: &str = "the session has no stream with the event that `Last-Event-ID` names";

/// Returns the events of a stream after `cursor`, including future ones, and their reader. The
/// session is in use as long as they are read.
fn follow(log: Arc<EventLog>, mut cursor: EventId, visit: Option<Visit>) -> (Events, StreamReader) {
    let (events, receiver) = mpsc::channel(1);
    let ended = CancellationToken::new();
    let reader = StreamReader { events, ended };
    let followed = reader.clone();
    // The first lookup happens here, before anything else is written: it either finds events or
    // attaches the reader, so that none is lost between.
    let mut next = log.next(&mut cursor, &reader);
    let follow = async move {
        let _visit = visit;
        loop {
            match next {
                NextEvent::Event(event) => reader.events.send(event).await.ok()?,
                NextEvent::Attached => break,
                NextEvent::End => return None,
            }
            next = log.next(&mut cursor, &reader);
        }
        reader.ended.cancelled().await;
        None
    };
    (Events::of_events(receiver, Box::pin(follow)), followed)
}

/// Only writer of a stream. Dropping it ends the stream.
#[derive(Debug)]
struct StreamWriter {
    log: Arc<EventLog>,
    last: EventId,
}

impl StreamWriter {
    fn open(log: Arc<EventLog>, kind: StreamKind) -> Self {
        let stream = log.open(kind);
        let last = EventId {
            stream,
            sequence: 0,
        };
        Self { log, last }
    }

    /// Creates the first response that reads the stream.
    fn read(&self) -> (Events, StreamReader) {
        follow(Arc::clone(&self.log), self.last, None)
    }

    /// Writes the notifications until the answer, and the answer.
    async fn answer(
        mut self,
        first: Option<Bytes>,
        mut notifications: mpsc::Receiver<Bytes>,
        mut answer: PendingResponse,
    ) {
        if let Some(first) = first {
            self.write(first, false).await;
        }
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut answer => break answer,
                Some(message) = notifications.recv() => self.write(message, false).await,
            }
        };
        self.write_queued(&mut notifications).await;
        if let Some(answer) = answer {
            self.write(answer, true).await;
        }
    }

    /// Writes the notifications of the session as long as they are read. Those not taken then go
    /// to the next stream.
    async fn listen(
        mut self,
        mut reader: StreamReader,
        mut notifications: mpsc::Receiver<Bytes>,
        mut forward: PendingResponse,
    ) {
        loop {
            tokio::select! {
                biased;
                _ = &mut forward => break,
                Some(message) = notifications.recv() => self.write(message, false).await,
                () = reader.events.closed() => {
                    self.write_queued(&mut notifications).await;
                    match self.log.close_unless_read(self.last.stream) {
                        Some(next) => reader = next,
                        None => return,
                    }
                }
            }
        }
        self.write_queued(&mut notifications).await;
    }

    async fn write_queued(&mut self, notifications: &mut mpsc::Receiver<Bytes>) {
        while let Ok(message) = notifications.try_recv() {
            self.write(message, false).await;
        }
    }

    /// Writes a message as the next event. It takes up space in its queue until the reader has
    /// taken it.
    async fn write(&mut self, message: Bytes, is_answer: bool) {
        self.last.sequence += 1;
        let event = events::event_with_id(self.last, &message);
        let reader = self.log.append(self.last, event.clone(), is_answer);
        if let Some(reader) = reader {
            tokio::select! {
                // A reader that is gone can resume after this event.
                _ = reader.events.send(event) => {}
                () = reader.ended.cancelled() => {}
            }
        }
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        self.log.close(self.last.stream);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_util::FutureExt as _;
    use http_body_util::BodyExt as _;

    use super::*;

    const MESSAGE: Bytes = Bytes::from_static(b"{}");

    /// Creates the stream of an answer that never comes.
    fn endless(log: &Arc<EventLog>, notifications: mpsc::Receiver<Bytes>) -> Events {
        let resumable = Resumable {
            log: Arc::clone(log),
            kind: StreamKind::Answer(None),
            is_primed: false,
        };
        resumable.stream(Some(MESSAGE), notifications, Box::pin(pending()))
    }

    #[tokio::test]
    async fn backpressure_reaches_the_writer_of_an_unread_stream() {
        let log = Arc::new(EventLog::alone(1 << 20));
        let (outbox, notifications) = Outbox::new();
        let mut events = endless(&log, notifications);
        let mut sent = 0;
        let mut waiting = 0;
        // One event is on its way and one is before it; the rest waits in the outbox.
        while waiting < 3 {
            tokio::task::yield_now().await;
            match outbox.try_send(vec![b'x'; 1000].into()) {
                true => (sent, waiting) = (sent + 1, 0),
                false => waiting += 1,
            }
        }
        assert!((250..=270).contains(&sent), "{sent}");
        events.frame().await.expect("open").expect("infallible");
        tokio::task::yield_now().await;
        assert!(events.frame().now_or_never().is_some());
    }

    #[tokio::test]
    async fn stream_without_a_reader_is_still_written() {
        let log = Arc::new(EventLog::alone(1 << 20));
        let (outbox, notifications) = Outbox::new();
        drop(endless(&log, notifications));
        for _ in 0..2000 {
            let sent = outbox.send(vec![b'x'; 1000].into());
            let sent = tokio::time::timeout(std::time::Duration::from_secs(10), sent).await;
            sent.expect("the writer takes it").expect("open");
        }
    }
}
