//! Whether a connection is of use: one without an open request is kept for a while only, whatever else happens on it,
//! and so is one over HTTP/2 whose client does not take an answer.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, sleep_until};

use crate::sync::lock;

/// The requests of one connection. All clones are one.
#[derive(Debug, Clone)]
pub(super) struct Activity(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    open: usize,
    /// Since when none is open, if none is.
    since: Instant,
    /// How long that may last.
    limit: Duration,
    /// How many answers there have been.
    answers: u64,
    /// The answers of which there may be more to take, and since when.
    untaken: BTreeMap<u64, Instant>,
    /// How long that may last.
    patience: Duration,
}

impl Activity {
    /// That of a connection which has begun at `start`, and whose first request has to be there within `limit`. For no
    /// longer than `patience` may its client leave an answer where it is.
    pub(super) fn new(start: Instant, limit: Duration, patience: Duration) -> Self {
        Self(Arc::new(Mutex::new(State {
            open: 0,
            since: start,
            limit,
            answers: 0,
            untaken: BTreeMap::new(),
            patience,
        })))
    }

    /// A request is open until what this returns is dropped. After it the next one has to be there within `limit`.
    pub(super) fn begin(&self, limit: Duration) -> Open {
        let mut state = lock(&self.0);
        state.open += 1;
        state.limit = limit;
        Open(self.clone())
    }

    /// From now on no request has to be open for `limit` only.
    pub(super) fn limit(&self, limit: Duration) {
        let mut state = lock(&self.0);
        state.limit = limit;
        state.since = Instant::now();
    }

    /// Waits until no request has been open for too long, or an answer has not been taken for too long.
    pub(super) async fn ceased(&self) {
        loop {
            let deadline = lock(&self.0).deadline(Instant::now());
            if deadline <= Instant::now() {
                return;
            }
            sleep_until(deadline).await;
        }
    }
}

impl State {
    /// Until when it is of use if nothing happens, and when to look again.
    fn deadline(&self, now: Instant) -> Instant {
        // A request that is open may last for ever; it is looked at again no earlier than it could be missed.
        let since = if self.open > 0 { now } else { self.since };
        let untaken = self.untaken.values().min();
        let taken_by = untaken.map(|since| *since + self.patience);
        taken_by.into_iter().fold(since + self.limit, Instant::min)
    }
}

/// A request that is open.
#[derive(Debug)]
pub(super) struct Open(Activity);

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = lock(&self.0.0);
        state.open -= 1;
        state.since = Instant::now();
    }
}

/// The body of a response, and with it the request it answers.
#[derive(Debug)]
pub(super) struct Answering<B> {
    body: B,
    _request: Open,
}

impl<B> Answering<B> {
    pub(super) fn new(body: B, request: Open) -> Self {
        Self {
            body,
            _request: request,
        }
    }
}

impl<B: Body + Unpin> Body for Answering<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response on one of many streams. Its client can leave it where it is and go on with the connection,
/// so that nothing is seen of that where bytes are written.
#[derive(Debug)]
pub(super) struct Taken<B> {
    body: B,
    /// What of a frame comes after what was handed over.
    rest: Bytes,
    activity: Activity,
    number: u64,
}

/// How much is handed over at a time, in bytes: who takes that much now and then is slow, and no more.
const PART: usize = 64 * 1024;

impl<B> Taken<B> {
    pub(super) fn new(body: B, activity: &Activity) -> Self {
        let mut state = lock(&activity.0);
        state.answers += 1;
        let number = state.answers;
        state.untaken.insert(number, Instant::now());
        Self {
            body,
            rest: Bytes::new(),
            activity: activity.clone(),
            number,
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Taken<B> {
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.rest.is_empty() {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let part = self.rest.split_to(self.rest.len().min(PART));
        Poll::Ready(Some(Ok(Frame::data(part))))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Taken<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let part = self.poll_part(cx);
        // Whoever asks for more has taken what there was.
        let mut state = lock(&self.activity.0);
        match part {
            Poll::Ready(Some(_)) => state.untaken.insert(self.number, Instant::now()),
            _ => state.untaken.remove(&self.number),
        };
        drop(state);
        part
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest + body.lower());
        if let Some(upper) = body.upper() {
            hint.set_upper(rest + upper);
        }
        hint
    }
}

impl<B> Drop for Taken<B> {
    fn drop(&mut self) {
        lock(&self.activity.0).untaken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::FutureExt as _;
    use http_body_util::BodyExt as _;
    use http_body_util::StreamBody;
    use tokio::sync::mpsc;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_connection_ceases_when_no_request_has_been_open_for_too_long() {
        let start = Instant::now();
        let activity = Activity::new(start, 10 * SECOND, 60 * SECOND);
        activity.ceased().await;
        assert_eq!(start.elapsed(), 10 * SECOND);

        let (one, other) = (activity.begin(30 * SECOND), activity.begin(30 * SECOND));
        drop(one);
        let ending = async {
            tokio::time::sleep(100 * SECOND).await;
            drop(other);
        };
        tokio::join!(activity.ceased(), ending);
        assert_eq!(start.elapsed(), 140 * SECOND);

        activity.limit(SECOND);
        activity.ceased().await;
        assert_eq!(start.elapsed(), 141 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ceases_when_an_answer_is_not_taken() {
        let activity = Activity::new(Instant::now(), 10 * SECOND, 60 * SECOND);
        let (sender, mut parts) = mpsc::channel::<Bytes>(1);
        let frames = futures_util::stream::poll_fn(move |cx| {
            let part = parts.poll_recv(cx);
            part.map(|part| Some(Ok::<_, Infallible>(Frame::data(part?))))
        });
        let _open = activity.begin(10 * SECOND);
        let mut answer = Taken::new(StreamBody::new(frames), &activity);
        let ceases_in = async |seconds| {
            let before = Instant::now();
            activity.ceased().await;
            assert_eq!(before.elapsed(), seconds * SECOND);
        };
        ceases_in(60).await;
        // Waiting for more is no fault, however long it lasts.
        assert!(answer.frame().now_or_never().is_none());
        let ceased = tokio::time::timeout(100 * SECOND, activity.ceased());
        assert!(ceased.await.is_err());
        sender.send(vec![0; 2 * PART + 1].into()).await.unwrap();
        drop(sender);
        for part in [PART, PART, 1] {
            let frame = answer.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap().len(), part);
            ceases_in(60).await;
        }
        assert!(answer.frame().await.is_none());
        let ceased = tokio::time::timeout(100 * SECOND, activity.ceased());
        assert!(ceased.await.is_err());
    }
}
