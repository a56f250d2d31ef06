//! Write timeout of HTTP/2: each request has a separate stream, and one whose client does not
//! read its response is cancelled alone. The connection shows nothing of that, as it is still
//! written to for other streams.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::activity::Open;
use super::peer::Awaited;
use crate::sync::lock;

tokio::task_local! {
    /// Progress of the stream that a task carries.
    static TAKING: Taking;
}

/// Maximum size of one body frame, in bytes: a client that reads that much within the timeout is
/// only slow.
const MAX_FRAME: usize = 64 * 1024;

/// Executor that runs each stream in a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carrier;

impl<F> Executor<F> for Carrier
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let taking = Taking::default();
        let carried = TAKING.scope(taking.clone(), stream);
        tokio::spawn(async move {
            tokio::select! {
                _ = carried => {}
                () = taking.ceased() => tracing::debug!("a client has not taken an answer in time"),
            }
        });
    }
}

/// Read progress of a client. All clones share it.
#[derive(Debug, Clone, Default)]
struct Taking(Arc<Answer>);

#[derive(Debug, Default)]
struct Answer {
    state: Mutex<State>,
    begun: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Time since which data waits to be read, if any does.
    untaken: Option<Instant>,
    /// Maximum length of that time.
    patience: Duration,
}

impl Taking {
    fn begin(&self, patience: Duration) {
        *lock(&self.0.state) = State {
            untaken: Some(Instant::now()),
            patience,
        };
        self.0.begun.notify_one();
    }

    /// Waits until a response was not read for too long.
    async fn ceased(&self) {
        self.0.begun.notified().await;
        loop {
            let now = Instant::now();
            let deadline = {
                let state = lock(&self.0.state);
                state.untaken.unwrap_or(now) + state.patience
            };
            if deadline <= now {
                return;
            }
            sleep_until(deadline).await;
        }
    }
}

/// Response body with the guards of its request. Each part must be read within a timeout over
/// HTTP/2; over HTTP/1 the connection has that timeout itself, as it carries one response at a
/// time.
#[derive(Debug)]
pub(super) struct Answering<B> {
    body: B,
    _request: Open,
    _awaited: Option<Awaited>,
    /// Rest of a frame after the part that was handed over.
    rest: Bytes,
    taking: Option<Taking>,
}

impl<B> Answering<B> {
    /// Creates a body of which each part must be read within `patience`.
    pub(super) fn new(
        body: B,
        request: Open,
        awaited: Option<Awaited>,
        patience: Duration,
    ) -> Self {
        let taking = TAKING.try_with(Taking::clone).ok();
        if let Some(taking) = &taking {
            taking.begin(patience);
        }
        Self {
            body,
            _request: request,
            _awaited: awaited,
            rest: Bytes::new(),
            taking,
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Answering<B> {
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
        let part = self.rest.split_to(self.rest.len().min(MAX_FRAME));
        Poll::Ready(Some(Ok(Frame::data(part))))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answering<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let part = match self.taking {
            Some(_) => self.poll_part(cx),
            None => Pin::new(&mut self.body).poll_frame(cx),
        };
        if let Some(taking) = &self.taking {
            // A poll for more means that the previous part was read.
            let is_given = matches!(part, Poll::Ready(Some(_)));
            lock(&taking.0.state).untaken = is_given.then(Instant::now);
        }
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::FutureExt as _;
    use http_body_util::{BodyExt as _, StreamBody};
    use tokio::sync::mpsc;

    use super::super::activity::Activity;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_given_up_when_it_is_not_taken() {
        let taking = Taking::default();
        let (sender, mut parts) = mpsc::channel::<Bytes>(1);
        let frames = futures_util::stream::poll_fn(move |cx| {
            let part = parts.poll_recv(cx);
            part.map(|part| Some(Ok::<_, Infallible>(Frame::data(part?))))
        });
        let request = Activity::new(Instant::now(), SECOND).begin(SECOND);
        let body = async { Answering::new(StreamBody::new(frames), request, None, 60 * SECOND) };
        let mut answer = TAKING.scope(taking.clone(), body).await;
        let ceases_in = async |seconds| {
            let before = Instant::now();
            taking.0.begun.notify_one();
            taking.ceased().await;
            assert_eq!(before.elapsed(), seconds * SECOND);
        };
        let goes_on = async || {
            taking.0.begun.notify_one();
            let ceased = tokio::time::timeout(100 * SECOND, taking.ceased());
            assert!(ceased.await.is_err());
        };
        ceases_in(60).await;
        // Waiting for more data is not a fault of the client, however long it lasts.
        assert!(answer.frame().now_or_never().is_none());
        goes_on().await;
        sender
            .send(vec![0; 2 * MAX_FRAME + 1].into())
            .await
            .expect("room");
        drop(sender);
        for part in [MAX_FRAME, MAX_FRAME, 1] {
            let frame = answer.frame().await.expect("more").expect("infallible");
            assert_eq!(frame.into_data().expect("data").len(), part);
            ceases_in(60).await;
        }
        assert!(answer.frame().await.is_none());
        goes_on().await;
    }
}
