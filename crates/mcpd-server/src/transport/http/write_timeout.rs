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

use super::activity::ActiveRequest;
use super::peer::AnswerGuard;
use crate::support::sync::lock;

tokio::task_local! {
    /// Progress of the stream that a task carries.
    static READ_PROGRESS: ReadProgress;
}

/// Maximum size of one body frame, in bytes: a client that reads that much within the timeout is
/// only slow.
const MAX_FRAME: usize = 64 * 1024;

/// Executor that runs each stream in a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamExecutor;

impl<F> Executor<F> for StreamExecutor
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let progress = ReadProgress::default();
        let carried = READ_PROGRESS.scope(progress.clone(), stream);
        tokio::spawn(async move {
            tokio::select! {
                _ = carried => {}
                () = progress.wait_until_stalled() => tracing::debug!("client did not read a response in time"),
            }
        });
    }
}

/// Read progress of a client. All clones share it.
#[derive(Debug, Clone, Default)]
struct ReadProgress(Arc<ProgressCell>);

#[derive(Debug, Default)]
struct ProgressCell {
    state: Mutex<UnreadSince>,
    begun: Notify,
}

#[derive(Debug, Default)]
struct UnreadSince {
    /// Time since which data waits to be read, if any does.
    since: Option<Instant>,
    /// Maximum length of that time.
    timeout: Duration,
}

impl ReadProgress {
    fn start(&self, timeout: Duration) {
        *lock(&self.0.state) = UnreadSince {
            since: Some(Instant::now()),
            timeout,
        };
        self.0.begun.notify_one();
    }

    /// Waits until a response was not read for too long.
    async fn wait_until_stalled(&self) {
        self.0.begun.notified().await;
        loop {
            let now = Instant::now();
            let deadline = {
                let state = lock(&self.0.state);
                state.since.unwrap_or(now) + state.timeout
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
pub(super) struct GuardedBody<B> {
    body: B,
    _request: ActiveRequest,
    _answer_guard: Option<AnswerGuard>,
    /// Rest of a frame after the part that was handed over.
    rest: Bytes,
    progress: Option<ReadProgress>,
}

impl<B> GuardedBody<B> {
    /// Creates a body of which each part must be read within `patience`.
    pub(super) fn new(
        body: B,
        request: ActiveRequest,
        answer_guard: Option<AnswerGuard>,
        timeout: Duration,
    ) -> Self {
        let progress = READ_PROGRESS.try_with(ReadProgress::clone).ok();
        if let Some(progress) = &progress {
            progress.start(timeout);
        }
        Self {
            body,
            _request: request,
            _answer_guard: answer_guard,
            rest: Bytes::new(),
            progress,
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> GuardedBody<B> {
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

impl<B: Body<Data = Bytes> + Unpin> Body for GuardedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let part = match self.progress {
            Some(_) => self.poll_part(cx),
            None => Pin::new(&mut self.body).poll_frame(cx),
        };
        if let Some(progress) = &self.progress {
            // A poll for more means that the previous part was read.
            let is_given = matches!(part, Poll::Ready(Some(_)));
            lock(&progress.0.state).since = is_given.then(Instant::now);
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
    async fn write_timeout_cancels_an_unread_response() {
        let progress = ReadProgress::default();
        let (sender, mut parts) = mpsc::channel::<Bytes>(1);
        let frames = futures_util::stream::poll_fn(move |cx| {
            let part = parts.poll_recv(cx);
            part.map(|part| Some(Ok::<_, Infallible>(Frame::data(part?))))
        });
        let request = Activity::new(Instant::now(), SECOND).begin(SECOND);
        let body = async { GuardedBody::new(StreamBody::new(frames), request, None, 60 * SECOND) };
        let mut answer = READ_PROGRESS.scope(progress.clone(), body).await;
        let ceases_in = async |seconds| {
            let before = Instant::now();
            progress.0.begun.notify_one();
            progress.wait_until_stalled().await;
            assert_eq!(before.elapsed(), seconds * SECOND);
        };
        let goes_on = async || {
            progress.0.begun.notify_one();
            let stalled = tokio::time::timeout(100 * SECOND, progress.wait_until_stalled());
            assert!(stalled.await.is_err());
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
