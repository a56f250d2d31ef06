//! Event log of a session: its recent server-sent events, from which a client resumes a stream by
//! `Last-Event-ID`. Bounded in bytes; the oldest events are dropped first. Writers and readers of
//! the streams are in `resumption`.
//!
//! ```text
//!           open                    close                  > 64 ended streams
//!  (none) ───────► open, written ──────────► ended, kept ────────────────────► forgotten
//!                        ▲                       │
//!                        └── listening streams: ─┘ reopened by a client that returns
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcpd_protocol::jsonrpc::{self, ErrorObject, RequestId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::events;
use crate::support::sync::lock;

/// Overhead that an event counts besides its own bytes.
const EVENT_OVERHEAD: usize = 128;
/// Maximum number of ended streams that are remembered.
const MAX_ENDED_STREAMS: usize = 64;
/// Maximum length of a request id that is remembered with its stream.
const MAX_REQUEST_ID: usize = 256;

/// Id of one event: its stream, and its position there. "event IDs should be assigned by servers
/// on a per-stream basis, to act as a cursor within that particular stream"
/// -- 2025-11-25/basic/transports#resumability-and-redelivery
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    /// Random, so that an id of one session means nothing in another.
    pub(super) stream: u64,
    /// 0 is the position before the first message.
    pub(super) sequence: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.stream, self.sequence)
    }
}

impl FromStr for EventId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (stream, sequence) = text.split_once('-').ok_or(())?;
        let stream = u64::from_str_radix(stream, 16).map_err(drop)?;
        let sequence = sequence.parse().map_err(drop)?;
        Ok(Self { stream, sequence })
    }
}

/// Kind of messages that a stream carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// Messages of a POST and its response at the end; with the id of the request, if it is a
    /// single one.
    Answer(Option<RequestId>),
    /// Notifications that the session receives without a request.
    Listening,
}

/// Response that delivers a stream to the client.
#[derive(Debug, Clone)]
pub(super) struct StreamReader {
    pub(super) events: mpsc::Sender<Bytes>,
    /// Cancelled when nothing more will be sent to this reader.
    pub(super) ended: CancellationToken,
}

/// Next item at a position in a stream.
#[derive(Debug)]
pub(super) enum NextEvent {
    Event(Bytes),
    /// No event yet: the reader is attached, and receives the following events as they occur.
    Attached,
    /// No event, now or later.
    End,
}

/// State of a stream that a client wants to resume.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamState {
    Unknown,
    /// The stream has ended, and the client has received all of it.
    Finished,
    /// The response is dropped, and its request is unknown.
    Lost,
    /// More events are available or may follow.
    Readable,
    /// Listening stream without a writer, which the caller must provide now.
    Reopened {
        last: u64,
    },
}

/// Memory that the events of all sessions share, in bytes.
#[derive(Debug, Clone)]
pub(super) struct EventBudget {
    used: Arc<AtomicUsize>,
    max: usize,
}

impl EventBudget {
    pub(super) fn new(max: usize) -> Self {
        let used = Arc::default();
        Self { used, max }
    }

    fn is_exceeded(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.max
    }
}

/// Recent events of one session.
#[derive(Debug)]
pub(super) struct EventLog {
    state: Mutex<LogState>,
}

#[derive(Debug)]
struct LogState {
    /// Maximum size in bytes; 0 after the session.
    limit: usize,
    bytes: usize,
    /// Budget that `bytes` are part of.
    budget: EventBudget,
    /// Events, the oldest first.
    events: VecDeque<StoredEvent>,
    streams: BTreeMap<u64, EventStream>,
    /// Streams without a writer, the longest ended first.
    ended: VecDeque<u64>,
}

#[derive(Debug)]
struct StoredEvent {
    id: EventId,
    event: Bytes,
    is_answer: bool,
}

#[derive(Debug)]
struct EventStream {
    kind: StreamKind,
    /// Position of the last written event.
    last: u64,
    /// More may be written.
    is_open: bool,
    is_answer_lost: bool,
    reader: Option<StreamReader>,
}

impl EventLog {
    /// Creates an empty log of at most `limit` bytes, and of fewer while others have used the
    /// budget.
    pub(super) fn new(limit: usize, budget: &EventBudget) -> Self {
        Self {
            state: Mutex::new(LogState {
                limit,
                bytes: 0,
                budget: budget.clone(),
                events: VecDeque::new(),
                streams: BTreeMap::new(),
                ended: VecDeque::new(),
            }),
        }
    }

    /// Creates an empty log of at most `limit` bytes, which it shares with no other.
    #[cfg(test)]
    pub(super) fn alone(limit: usize) -> Self {
        Self::new(limit, &EventBudget::new(limit))
    }

    /// Opens a stream, whose writer is the caller.
    pub(super) fn open(&self, kind: StreamKind) -> u64 {
        let kind = match kind {
            StreamKind::Answer(Some(id)) if id.to_string().len() > MAX_REQUEST_ID => {
                StreamKind::Answer(None)
            }
            kind => kind,
        };
        let stream = getrandom::u64().expect("a system that starts processes has randomness");
        let opened = EventStream {
            kind,
            last: 0,
            is_open: true,
            is_answer_lost: false,
            reader: None,
        };
        lock(&self.state).streams.insert(stream, opened);
        stream
    }

    /// Adds an event as the last of its stream, and returns the reader, if one is attached.
    pub(super) fn append(
        &self,
        id: EventId,
        event: Bytes,
        is_answer: bool,
    ) -> Option<StreamReader> {
        let mut state = lock(&self.state);
        let stream = state.streams.get_mut(&id.stream)?;
        stream.last = id.sequence;
        let reader = stream.reader.clone();
        state.store(StoredEvent {
            id,
            event,
            is_answer,
        });
        reader
    }

    /// Marks a stream as ended by its writer, and ends its reader.
    pub(super) fn close(&self, stream: u64) {
        lock(&self.state).close(stream);
    }

    /// Closes a stream unless a client reads it; in that case returns the reader.
    pub(super) fn close_unless_read(&self, stream: u64) -> Option<StreamReader> {
        let mut state = lock(&self.state);
        let reader = state.streams.get(&stream)?.reader.clone();
        let reader = reader.filter(|reader| !reader.events.is_closed());
        if reader.is_none() {
            state.close(stream);
        }
        reader
    }

    /// Looks up the stream of the last event that a client has received.
    pub(super) fn find(&self, id: EventId) -> StreamState {
        let mut state = lock(&self.state);
        let has_more = state.event_after(id).is_some();
        let Some(stream) = state.streams.get_mut(&id.stream) else {
            return StreamState::Unknown;
        };
        if id.sequence > stream.last {
            return StreamState::Unknown;
        }
        match &stream.kind {
            _ if stream.is_open || has_more => StreamState::Readable,
            StreamKind::Answer(request) if stream.is_answer_lost && id.sequence < stream.last => {
                match request {
                    Some(_) => StreamState::Readable,
                    None => StreamState::Lost,
                }
            }
            StreamKind::Answer(_) => StreamState::Finished,
            StreamKind::Listening => {
                stream.is_open = true;
                let last = stream.last;
                state.ended.retain(|ended| *ended != id.stream);
                StreamState::Reopened { last }
            }
        }
    }

    /// Returns the item after `cursor`, and advances the cursor. If no event is available,
    /// attaches `reader` in place of an earlier one.
    pub(super) fn next(&self, cursor: &mut EventId, reader: &StreamReader) -> NextEvent {
        let mut state = lock(&self.state);
        if let Some(stored) = state.event_after(*cursor) {
            cursor.sequence = stored.id.sequence;
            return NextEvent::Event(stored.event.clone());
        }
        let Some(stream) = state.streams.get_mut(&cursor.stream) else {
            return NextEvent::End;
        };
        // The reader is attached under the lock of the lookup, so that no event falls between.
        if stream.is_open {
            if let Some(replaced) = stream.reader.replace(reader.clone()) {
                replaced.ended.cancel();
            }
            return NextEvent::Attached;
        }
        match &stream.kind {
            StreamKind::Answer(Some(request))
                if stream.is_answer_lost && cursor.sequence < stream.last =>
            {
                cursor.sequence = stream.last;
                NextEvent::Event(events::event_with_id(*cursor, &lost_answer(request)))
            }
            _ => NextEvent::End,
        }
    }

    /// Drops all events, and keeps none from now on: the session is over.
    pub(super) fn end(&self) {
        let mut state = lock(&self.state);
        state.limit = 0;
        state.clear();
    }
}

impl LogState {
    fn event_after(&self, id: EventId) -> Option<&StoredEvent> {
        let mut events = self.events.iter();
        events.find(|stored| stored.id.stream == id.stream && stored.id.sequence > id.sequence)
    }

    fn store(&mut self, stored: StoredEvent) {
        let size = stored.size();
        if size > self.limit {
            return self.mark_lost(&stored);
        }
        self.bytes += size;
        self.budget.used.fetch_add(size, Ordering::Relaxed);
        self.events.push_back(stored);
        while self.bytes > self.limit || self.budget.is_exceeded() {
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.bytes -= oldest.size();
            self.budget.used.fetch_sub(oldest.size(), Ordering::Relaxed);
            self.mark_lost(&oldest);
        }
    }

    fn clear(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = 0;
        self.events = VecDeque::new();
    }

    /// Records that an event cannot be read again.
    fn mark_lost(&mut self, event: &StoredEvent) {
        if event.is_answer
            && let Some(stream) = self.streams.get_mut(&event.id.stream)
        {
            stream.is_answer_lost = true;
        }
    }

    fn close(&mut self, stream: u64) {
        let Some(closed) = self.streams.get_mut(&stream).filter(|found| found.is_open) else {
            return;
        };
        closed.is_open = false;
        if let Some(reader) = closed.reader.take() {
            reader.ended.cancel();
        }
        self.ended.push_back(stream);
        if self.ended.len() > MAX_ENDED_STREAMS
            && let Some(oldest) = self.ended.pop_front()
        {
            self.streams.remove(&oldest);
        }
    }
}

impl Drop for LogState {
    fn drop(&mut self) {
        self.clear();
    }
}

impl StoredEvent {
    fn size(&self) -> usize {
        self.event.len() + EVENT_OVERHEAD
    }
}

/// Builds an error in place of a response that was dropped. Clients abandon a request that gets a
/// response, and wait for any other.
fn lost_answer(request: &RequestId) -> Vec<u8> {
    let error = ErrorObject::internal_error(
        "the response is no longer available, because its stream was resumed too late or it exceeds `resume_buffer`; the request was carried out",
    );
    jsonrpc::error_response(Some(request), &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Bytes = Bytes::from_static(b"0123456789");

    fn reader() -> (StreamReader, mpsc::Receiver<Bytes>) {
        let (events, receiver) = mpsc::channel(1);
        let ended = CancellationToken::new();
        (StreamReader { events, ended }, receiver)
    }

    fn write(log: &EventLog, stream: u64, sequence: u64, event: Bytes, is_answer: bool) {
        log.append(EventId { stream, sequence }, event, is_answer);
    }

    /// Reads all events after `sequence`, and the item that follows.
    fn read(log: &EventLog, stream: u64, sequence: u64) -> (Vec<Bytes>, NextEvent) {
        let (reader, _receiver) = reader();
        let mut cursor = EventId { stream, sequence };
        let mut events = Vec::new();
        loop {
            match log.next(&mut cursor, &reader) {
                NextEvent::Event(event) => events.push(event),
                next => return (events, next),
            }
        }
    }

    #[test]
    fn event_id_round_trips() {
        let id = EventId {
            stream: 0xab,
            sequence: 7,
        };
        assert_eq!(id.to_string(), "00000000000000ab-7");
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in [
            "",
            "7",
            "ab-",
            "-7",
            "xy-1",
            "ab-7-1",
            "1ffffffffffffffff-1",
        ] {
            assert_eq!(wrong.parse::<EventId>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn stream_is_readable_after_any_of_its_events() {
        let log = EventLog::alone(1000);
        let (one, other) = (
            log.open(StreamKind::Listening),
            log.open(StreamKind::Answer(None)),
        );
        write(&log, one, 1, Bytes::from_static(b"a"), false);
        write(&log, other, 1, Bytes::from_static(b"x"), false);
        write(&log, one, 2, Bytes::from_static(b"b"), false);
        let (events, next) = read(&log, one, 0);
        assert_eq!(events, ["a", "b"]);
        assert!(matches!(next, NextEvent::Attached));
        assert_eq!(read(&log, one, 1).0, ["b"]);
        assert!(read(&log, one, 2).0.is_empty());
    }

    #[test]
    fn oldest_events_are_dropped_first() {
        let log = EventLog::alone(3 * (EVENT_OVERHEAD + SMALL.len()));
        let stream = log.open(StreamKind::Listening);
        for sequence in 1..=5 {
            write(&log, stream, sequence, SMALL, false);
        }
        assert_eq!(read(&log, stream, 0).0.len(), 3);
        assert_eq!(lock(&log.state).events.len(), 3);
    }

    #[test]
    fn logs_share_a_budget() {
        let size = EVENT_OVERHEAD + SMALL.len();
        let budget = EventBudget::new(3 * size);
        let [one, other] = [(); 2].map(|()| EventLog::new(2 * size, &budget));
        let [in_one, in_other] = [&one, &other].map(|log| log.open(StreamKind::Listening));
        for sequence in 1..=3 {
            write(&one, in_one, sequence, SMALL, false);
            write(&other, in_other, sequence, SMALL, false);
        }
        let kept = |log: &EventLog| lock(&log.state).events.len();
        assert_eq!([kept(&one), kept(&other)], [2, 1]);
        one.end();
        write(&other, in_other, 4, SMALL, false);
        assert_eq!(kept(&other), 2);
        drop(other);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn lost_answer_is_an_error_to_its_request() {
        let log = EventLog::alone(EVENT_OVERHEAD + SMALL.len());
        let request = RequestId::from(9);
        let too_large = Bytes::from(vec![b'x'; 2 * SMALL.len()]);
        let evicted = log.open(StreamKind::Answer(Some(request.clone())));
        write(&log, evicted, 1, SMALL, true);
        let large = log.open(StreamKind::Answer(Some(request)));
        write(&log, large, 1, too_large, true);
        let batch = log.open(StreamKind::Answer(None));
        write(&log, batch, 1, SMALL, true);
        let last = log.open(StreamKind::Listening);
        write(&log, last, 1, SMALL, false);
        for stream in [evicted, large, batch] {
            log.close(stream);
        }
        let at = |stream, sequence| EventId { stream, sequence };
        for stream in [evicted, large] {
            assert_eq!(log.find(at(stream, 0)), StreamState::Readable);
            let (events, next) = read(&log, stream, 0);
            let event = String::from_utf8_lossy(&events[0]).into_owned();
            assert!(event.contains(r#""id":9,"error""#), "{event}");
            assert!(event.starts_with(&format!("id: {}\n", at(stream, 1))));
            assert!(matches!(next, NextEvent::End));
            assert_eq!(log.find(at(stream, 1)), StreamState::Finished);
        }
        assert_eq!(log.find(at(batch, 0)), StreamState::Lost);
    }

    #[test]
    fn fully_read_stream_is_finished() {
        let log = EventLog::alone(1000);
        let stream = log.open(StreamKind::Answer(None));
        write(&log, stream, 1, SMALL, true);
        log.close(stream);
        let find = |sequence| log.find(EventId { stream, sequence });
        assert_eq!(find(0), StreamState::Readable);
        assert_eq!(find(1), StreamState::Finished);
        assert_eq!(find(2), StreamState::Unknown);
        let unknown = EventId {
            stream: stream ^ 1,
            sequence: 0,
        };
        assert_eq!(log.find(unknown), StreamState::Unknown);
    }

    #[test]
    fn listening_stream_is_reopened_at_its_end() {
        let log = EventLog::alone(1000);
        let stream = log.open(StreamKind::Listening);
        let (first, receiver) = reader();
        let mut cursor = EventId {
            stream,
            sequence: 0,
        };
        log.next(&mut cursor, &first);
        assert!(log.close_unless_read(stream).is_some());
        drop(receiver);
        assert!(log.close_unless_read(stream).is_none() && first.ended.is_cancelled());
        assert_eq!(log.find(cursor), StreamState::Reopened { last: 0 });
        assert_eq!(log.find(cursor), StreamState::Readable);
    }

    #[test]
    fn reader_is_replaced_by_the_next() {
        let log = EventLog::alone(1000);
        let stream = log.open(StreamKind::Answer(None));
        let (first, _) = reader();
        let (second, _) = reader();
        let mut cursor = EventId {
            stream,
            sequence: 0,
        };
        log.next(&mut cursor, &first);
        log.next(&mut cursor, &second);
        assert!(first.ended.is_cancelled() && !second.ended.is_cancelled());
        log.close(stream);
        assert!(second.ended.is_cancelled());
    }

    #[test]
    fn streams_are_forgotten_some_time_after_their_end() {
        let log = EventLog::alone(1 << 20);
        let streams: Vec<_> = (0..=MAX_ENDED_STREAMS)
            .map(|_| log.open(StreamKind::Answer(None)))
            .collect();
        for stream in &streams {
            log.close(*stream);
        }
        let find = |stream| {
            log.find(EventId {
                stream,
                sequence: 0,
            })
        };
        assert_eq!(find(streams[0]), StreamState::Unknown);
        assert_eq!(find(streams[1]), StreamState::Finished);
        assert_eq!(lock(&log.state).streams.len(), MAX_ENDED_STREAMS);
    }

    #[test]
    fn log_of_an_ended_session_keeps_nothing() {
        let log = EventLog::alone(1000);
        let stream = log.open(StreamKind::Listening);
        write(&log, stream, 1, SMALL, false);
        log.end();
        write(&log, stream, 2, SMALL, false);
        assert!(read(&log, stream, 0).0.is_empty());
        assert_eq!(lock(&log.state).bytes, 0);
    }
}
