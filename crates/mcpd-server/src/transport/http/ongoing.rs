//! Request that is being answered: one body if the answer comes first, or an event stream after
//! the first notification or some seconds of silence.

use std::future::{pending, ready};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use hyper::{Response, StatusCode};
use mcpd_protocol::jsonrpc::{ErrorObject, RequestId};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;

use super::events::{self, Events};
use super::peer::Peer;
use super::post::NO_SESSION;
use super::reply::{self, ResponseBody, WholeResponse};
use super::resumption::Resumable;
use super::sessions::Visit;

/// Time after which a silent call becomes a stream, if the stream begins with an id: from then on
/// the answer survives the connection.
const PRIMING_DELAY: Duration = Duration::from_secs(2);

/// Answer that may be the whole response; `None` if the request was cancelled.
pub(super) type WholeAnswer = Pin<Box<dyn Future<Output = Option<WholeResponse>> + Send>>;

/// Request that is being answered.
pub(super) struct Ongoing {
    pub(super) notifications: Option<mpsc::Receiver<Bytes>>,
    pub(super) answer: WholeAnswer,
    /// Resumption of its stream, if it becomes one.
    pub(super) resumable: Option<Resumable>,
}

/// Responds with one body, or with an event stream if a notification comes before the answer, or
/// if the answer takes so long that clients and proxies would give up a response without a head.
/// A cancelled request gets a stream without events: "the server MUST either return
/// `Content-Type: text/event-stream`, to initiate an SSE stream, or `Content-Type:
/// application/json`" -- 2025-11-25/basic/transports#sending-messages-to-the-server
pub(super) async fn respond(
    ongoing: Ongoing,
    takes_events: bool,
    peer: Option<&Peer>,
) -> Response<ResponseBody> {
    let Ongoing {
        mut notifications,
        mut answer,
        resumable,
    } = ongoing;
    let half_closed = async {
        match peer {
            Some(peer) => peer.wait_until_half_closed().await,
            None => pending().await,
        }
    };
    let silence = match &resumable {
        Some(resumable) if resumable.is_primed() => PRIMING_DELAY,
        _ => events::KEEP_ALIVE_INTERVAL,
    };
    let first = tokio::select! {
        biased;
        first = next_notification(&mut notifications) => Some(first),
        answer = &mut answer => match notifications {
            Some(notifications) => return respond_with(answer, notifications, resumable),
            // A client that accepts no events gets an empty response for a cancelled call.
            None => return answer.map_or_else(reply::accepted_response, Response::from),
        },
        () = tokio::time::sleep(silence), if takes_events => None,
        // The first comment of the stream tests whether the client still reads.
        () = half_closed, if takes_events => None,
    };
    // A stream has its status before its answer.
    let answer = Box::pin(async { Some(answer.await?.message.join()) });
    let notifications = notifications.unwrap_or_else(|| mpsc::channel(1).1);
    let events = stream(first, notifications, answer, resumable);
    reply::events(match peer {
        Some(peer) => events.probing(peer),
        None => events,
    })
}

/// Returns the stream of a pending answer, which sends something at once to show that it has
/// begun.
fn stream(
    first: Option<Bytes>,
    notifications: mpsc::Receiver<Bytes>,
    answer: events::PendingResponse,
    resumable: Option<Resumable>,
) -> Events {
    match (resumable, first) {
        (Some(resumable), first) => resumable.stream(first, notifications, answer),
        (None, Some(first)) => Events::new(Some(first), notifications, answer),
        (None, None) => {
            Events::new(None, notifications, answer).beginning_with(Some(events::COMMENT))
        }
    }
}

/// Waits for the next notification, for ever if there will be none.
async fn next_notification(notifications: &mut Option<mpsc::Receiver<Bytes>>) -> Bytes {
    let first = match notifications {
        Some(notifications) => notifications.recv().await,
        None => None,
    };
    match first {
        Some(first) => first,
        None => pending().await,
    }
}

/// Responds with a finished answer, after a notification that was queued in the same poll.
fn respond_with(
    answer: Option<WholeResponse>,
    mut notifications: mpsc::Receiver<Bytes>,
    resumable: Option<Resumable>,
) -> Response<ResponseBody> {
    let first = notifications.try_recv().ok();
    match (first, answer) {
        (None, Some(answer)) => answer.into(),
        (Some(first), answer) => {
            let answer = Box::pin(ready(answer.map(|answer| answer.message.join())));
            reply::events(stream(Some(first), notifications, answer, resumable))
        }
        (None, None) => reply::events(Events::new(None, notifications, Box::pin(ready(None)))),
    }
}

/// Runs a request that ends when its client disconnects. It has a separate task all the same: a
/// run must meet its limits whether or not its client reads.
pub(super) fn run_attached<T: Send + 'static>(
    answer: impl Future<Output = Option<T>> + Send + 'static,
    peer: &Peer,
    takes_events: bool,
) -> Pin<Box<dyn Future<Output = Option<T>> + Send>> {
    let running = AbortOnDropHandle::new(tokio::spawn(answer));
    let peer = peer.clone();
    Box::pin(async move {
        tokio::select! {
            answer = task_output(running) => answer,
            () = peer.wait_until_gone(takes_events) => None,
        }
    })
}

/// Runs a request that continues when its client disconnects, with the session it belongs to. If
/// the session ends meanwhile, the answer is an error.
pub(super) fn run_detached(
    id: Option<RequestId>,
    answer: impl Future<Output = Option<WholeResponse>> + Send + 'static,
    visit: Visit,
) -> WholeAnswer {
    let running = tokio::spawn(async move {
        let answer = answer.await;
        answer.or_else(|| {
            let error = ErrorObject::invalid_request(NO_SESSION);
            let is_ended = visit.session.end_token().is_cancelled();
            is_ended.then(|| WholeResponse::error(StatusCode::NOT_FOUND, id.as_ref(), &error))
        })
    });
    Box::pin(task_output(running))
}

/// Returns the output of a task. A cancelled task stays pending, because it must not look like a
/// request without an answer: it ends with the runtime. A panic continues here.
async fn task_output<T>(task: impl Future<Output = Result<T, JoinError>>) -> T {
    match task.await {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use http_body_util::BodyExt as _;
    use hyper::header::CONTENT_TYPE;
    use tokio::runtime::Runtime;
    use tokio::time::Instant;

    use super::*;

    /// Returns the answer of a call that takes this long.
    fn answer_after(seconds: u64) -> WholeAnswer {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Some(WholeResponse::ok(Bytes::from_static(b"{}")))
        })
    }

    /// Creates a call without notifications whose stream cannot be resumed.
    fn ongoing(answer: WholeAnswer) -> Ongoing {
        Ongoing {
            notifications: None,
            answer,
            resumable: None,
        }
    }

    #[track_caller]
    fn check_response(response: &Response<ResponseBody>, content_type: &str) {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[CONTENT_TYPE], content_type);
    }

    #[tokio::test(start_paused = true)]
    async fn silent_call_becomes_an_event_stream() {
        let begun = Instant::now();
        let response = respond(ongoing(answer_after(25)), true, None).await;
        assert_eq!(begun.elapsed(), events::KEEP_ALIVE_INTERVAL);
        check_response(&response, "text/event-stream");
        let body = response.into_body().collect().await.expect("infallible");
        let expected = ":\r\n\r\n:\r\n\r\nevent: message\ndata: {}\n\n";
        assert_eq!(body.to_bytes(), expected);
        assert_eq!(begun.elapsed(), Duration::from_secs(25));
    }

    #[tokio::test(start_paused = true)]
    async fn silent_call_is_one_body_if_quick_or_without_events() {
        for (takes_events, seconds) in [(true, 9), (false, 25)] {
            let response = respond(ongoing(answer_after(seconds)), takes_events, None).await;
            check_response(&response, "application/json");
        }
    }

    #[test]
    fn task_cancelled_with_the_runtime_stays_pending() {
        let runtime = Runtime::new().expect("a runtime");
        let mut outcome = Box::pin(task_output(runtime.spawn(pending::<()>())));
        drop(runtime);
        assert_eq!((&mut outcome).now_or_never(), None);
    }
}
