//! Stream of messages outside responses, for servers with sessions: opened by `GET` when the client
//! has introduced itself, resumed by `Last-Event-ID` when it breaks, and opened again in a new
//! session.

use std::time::Duration;

use reqwest::Method;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::answer::{AnswerReader, Cursor, Role, is_event_stream};
use crate::backoff::Backoff;
use crate::http::Outgoing;
use crate::link::{Link, Reply};

/// Pause after a failure for as long as requests are retried.
const OUTAGE_PAUSE: Duration = Duration::from_secs(15);

/// Time after which a stream that breaks is opened again as if it were the first.
const STABLE_TIME: Duration = Duration::from_secs(10);

/// State of the stream after an attempt.
enum Ending {
    /// The server has none, or not in this session.
    None,
    Broken,
    /// The server was unreachable for the whole time of retries.
    Unreachable,
}

/// Follows the session, and its stream, for ever.
pub(crate) async fn listen(link: &Link) {
    let mut ready = link.session.subscribe();
    while ready.changed().await.is_ok() {
        loop {
            ready.borrow_and_update();
            let in_session = follow_stream(link);
            tokio::select! {
                () = in_session => break,
                has_changed = wait_for_change(&mut ready) => {
                    if !has_changed {
                        return;
                    }
                }
            }
        }
    }
}

async fn wait_for_change(ready: &mut watch::Receiver<u64>) -> bool {
    ready.changed().await.is_ok()
}

/// Follows the stream of one session, until the server has none.
async fn follow_stream(link: &Link) {
    let mut cursor = Cursor::default();
    let mut backoff = Backoff::new();
    loop {
        let begun = Instant::now();
        let ending = open_stream(link, &mut cursor).await;
        if begun.elapsed() > STABLE_TIME {
            backoff = Backoff::new();
        }
        match ending {
            Ending::None => return,
            Ending::Unreachable => sleep(OUTAGE_PAUSE).await,
            Ending::Broken => sleep(cursor.pause().max(backoff.next_pause())).await,
        }
    }
}

async fn open_stream(link: &Link, cursor: &mut Cursor) -> Ending {
    let opened = link.session.current();
    let outgoing = match cursor.last_event {
        Some(_) => cursor.resumption(),
        None => Outgoing::bare(Method::GET),
    };
    match link.send(&outgoing.with(opened.headers())).await {
        Ok(Reply::Success(response)) if is_event_stream(&response) => {
            let mut reader = AnswerReader::new(link, None, Role::Stream);
            match reader.read_events(response, cursor).await {
                Ok(reason) => tracing::debug!("stream of messages: {reason}"),
                Err(fault) => tracing::warn!("stream of messages: {}", fault.0.message),
            }
            Ending::Broken
        }
        Ok(Reply::Refusal(refusal)) if opened.id.is_some() && refusal.is_of_session() => {
            // A session that is opened again has a listener of its own: see `listen`.
            match link.renew(&opened).await {
                Ok(()) => Ending::None,
                Err(_) => Ending::Unreachable,
            }
        }
        Ok(Reply::Refusal(refusal)) if refusal.status.is_server_error() => Ending::Unreachable,
        Ok(_) => Ending::None,
        Err(_) => Ending::Unreachable,
    }
}
