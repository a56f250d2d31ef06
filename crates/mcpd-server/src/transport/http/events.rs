//! Response as a server-sent event stream: notifications while the request runs, then its
//! response, then the end. A broken connection drops the stream, and the request with it.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use super::event_log::EventId;
use super::peer::Peer;

/// Keep-alive interval: time between comments on a quiet stream, and time after which a silent
/// call becomes a stream. Proxies give up a response after 15 s of silence or more, depending on
/// their settings, and clients after some minutes.
pub(super) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Comment line of an event stream, which only shows that the server is alive.
pub(super) const COMMENT: Bytes = Bytes::from_static(b":\r\n\r\n");

/// Response to a request; `None` if the request was cancelled.
pub(super) type PendingResponse = Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>;

/// Event stream of one response.
pub(super) struct Events {
    first: Option<Frame<Bytes>>,
    write: Write,
    notifications: mpsc::Receiver<Bytes>,
    answer: AnswerState,
    keep_alive: Interval,
    /// Time of the next comment that tests whether a half-closed client is still there.
    probe: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Conversion of a message to an event, or to none.
type Write = fn(Bytes) -> Option<Bytes>;

enum AnswerState {
    Pending(PendingResponse),
    /// Known, but notifications sent before it go first.
    Known(Option<Bytes>),
}

impl Events {
    /// Creates a stream of `notifications`, then `answer`. `first` was taken from the queue
    /// already, when the decision for a stream was made.
    pub(super) fn new(
        first: Option<Bytes>,
        notifications: mpsc::Receiver<Bytes>,
        answer: PendingResponse,
    ) -> Self {
        Self::written_by(plain_event, notifications, answer)
            .beginning_with(first.and_then(plain_event))
    }

    /// Creates a stream of the events that `write` makes of `notifications`, then of `answer`.
    pub(super) fn written_by(
        write: Write,
        notifications: mpsc::Receiver<Bytes>,
        answer: PendingResponse,
    ) -> Self {
        let mut keep_alive = interval_at(
            tokio::time::Instant::now() + KEEP_ALIVE_INTERVAL,
            KEEP_ALIVE_INTERVAL,
        );
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            first: None,
            write,
            notifications,
            answer: AnswerState::Pending(answer),
            keep_alive,
            probe: None,
        }
    }

    /// Creates a stream of finished `events`, until `end`.
    pub(super) fn of_events(events: mpsc::Receiver<Bytes>, end: PendingResponse) -> Self {
        Self::written_by(Some, events, end)
    }

    /// Puts the finished event `first` before the stream.
    pub(super) fn beginning_with(mut self, first: Option<Bytes>) -> Self {
        self.first = first.map(Frame::data);
        self
    }

    /// Sends a comment as soon as `peer` has closed its sending side.
    pub(super) fn probing(mut self, peer: &Peer) -> Self {
        let peer = peer.clone();
        self.probe = Some(Box::pin(async move { peer.wait_until_half_closed().await }));
        self
    }
}

impl Events {
    /// Takes the next queued notification.
    fn next_queued(&mut self, cx: &mut Context<'_>) -> Option<Bytes> {
        match self.answer {
            AnswerState::Pending(_) => match self.notifications.poll_recv(cx) {
                Poll::Ready(notification) => notification,
                Poll::Pending => None,
            },
            // All notifications are queued by now. `poll_recv` could return pending despite that,
            // once this task has used up its cooperative budget.
            AnswerState::Known(_) => self.notifications.try_recv().ok(),
        }
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        // The answer is polled before the queue: everything it sends is queued before it is
        // ready.
        if let AnswerState::Pending(answer) = &mut this.answer
            && let Poll::Ready(known) = answer.as_mut().poll(cx)
        {
            this.answer = AnswerState::Known(known);
        }
        while let Some(notification) = this.next_queued(cx) {
            if let Some(written) = (this.write)(notification) {
                return Poll::Ready(Some(Ok(Frame::data(written))));
            }
        }
        if let AnswerState::Known(answer) = &mut this.answer {
            let written = answer.take().and_then(this.write);
            return Poll::Ready(written.map(|written| Ok(Frame::data(written))));
        }
        if let Some(probe) = &mut this.probe
            && probe.as_mut().poll(cx).is_ready()
        {
            this.probe = None;
            return Poll::Ready(Some(Ok(Frame::data(COMMENT))));
        }
        ready!(this.keep_alive.poll_tick(cx));
        Poll::Ready(Some(Ok(Frame::data(COMMENT))))
    }
}

/// Formats a message as an event.
fn plain_event(message: Bytes) -> Option<Bytes> {
    let written = [b"event: message\ndata: ", &*message, b"\n\n"].concat();
    Some(written.into())
}

/// Formats a message as an event with an id.
pub(super) fn event_with_id(id: EventId, message: &[u8]) -> Bytes {
    let head = format!("id: {id}\nevent: message\ndata: ");
    [head.as_bytes(), message, b"\n\n"].concat().into()
}

/// Formats an event without data, which gives the client an id for reconnecting.
pub(super) fn priming_event(id: EventId) -> Bytes {
    format!("id: {id}\ndata:\n\n").into()
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test]
    async fn response_follows_all_notifications() {
        const MANY: usize = 200;
        let (outbox, notifications) = mpsc::channel(MANY);
        for _ in 0..MANY {
            outbox.try_send(Bytes::from_static(b"{}")).unwrap();
        }
        let answer = std::future::ready(Some(Bytes::from_static(b"answer")));
        let mut events = Events::new(None, notifications, Box::pin(answer));
        let mut seen = Vec::new();
        while let Some(Ok(frame)) = events.frame().await {
            seen.push(frame.into_data().unwrap());
        }
        assert_eq!(seen.len(), MANY + 1);
        assert!(seen[MANY].windows(6).any(|part| part == b"answer"));
    }

    #[tokio::test(start_paused = true)]
    async fn keep_alive_comment_is_sent_on_a_quiet_stream() {
        let (_outbox, notifications) = mpsc::channel(1);
        let mut events = Events::new(None, notifications, Box::pin(std::future::pending()));
        let opened = Instant::now();
        for seconds in [10, 20] {
            let frame = events.frame().await.expect("open").expect("infallible");
            assert_eq!(frame.into_data().expect("data"), ":\r\n\r\n");
            assert_eq!(opened.elapsed(), Duration::from_secs(seconds));
        }
    }
}
