//! Requests being answered, so that they can be cancelled by id. Bounded: a client that sends without
//! end is told so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use mcpd_protocol::jsonrpc::{ErrorObject, Notification, RequestId};
use mcpd_protocol::{CancelledNotification, CancelledNotificationParams, NotificationMethod as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::quota;
use crate::sync::{lock, unless_cancelled};

/// How many requests of one client may be open at once.
pub(crate) const MAX_OPEN: usize = 512;

/// The open requests of one client.
#[derive(Debug, Default)]
pub(crate) struct Inflight {
    state: Mutex<State>,
    closed: Notify,
}

#[derive(Debug, Default)]
struct State {
    open: BTreeMap<RequestId, CancellationToken>,
    /// The client is gone.
    is_over: bool,
}

impl Inflight {
    /// Notes that `id` is being answered, until the guard is dropped. It is cancelled at once if the client has gone
    /// while its request was being read.
    ///
    /// # Errors
    ///
    /// When the id is already in use, or too many are.
    pub(crate) fn begin(self: &Arc<Self>, id: &RequestId) -> Result<Open, ErrorObject> {
        let mut state = lock(&self.state);
        check(&state.open, id)?;
        let cancelled = CancellationToken::new();
        if state.is_over {
            cancelled.cancel();
        } else {
            state.open.insert(id.clone(), cancelled.clone());
        }
        Ok(Open {
            id: id.clone(),
            cancelled,
            inflight: Arc::clone(self),
        })
    }

    /// Whether `id` could be answered now.
    ///
    /// # Errors
    ///
    /// Those of [`begin`](Self::begin).
    pub(crate) fn check(&self, id: &RequestId) -> Result<(), ErrorObject> {
        check(&lock(&self.state).open, id)
    }

    /// Cancels the request, if it is still open. Anything else is "unknown or finished" and ignored.
    /// Its id is free from here on: the client knows that no answer will come.
    fn cancel(&self, id: &RequestId) {
        if let Some(cancelled) = lock(&self.state).open.remove(id) {
            cancelled.cancel();
        }
    }

    /// Heeds a notification that cancels a request. Others are nobody's fault.
    pub(crate) fn notified(&self, notification: &Notification<'_>) {
        if notification.method == CancelledNotification::NAME
            && let Ok(params) = notification.parse_params::<CancelledNotificationParams>()
        {
            self.cancel(&params.request_id);
        }
    }

    /// Cancels everything, whatever may still come: the client is gone. Gives what was open.
    pub(crate) fn cancel_all(&self) -> Vec<RequestId> {
        let mut state = lock(&self.state);
        state.is_over = true;
        let open = std::mem::take(&mut state.open);
        for cancelled in open.values() {
            cancelled.cancel();
        }
        open.into_keys().collect()
    }

    /// Whether nothing is open.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.state).open.is_empty()
    }

    /// Waits until nothing is open.
    pub(crate) async fn empty(&self) {
        loop {
            let closed = self.closed.notified();
            if self.is_empty() {
                return;
            }
            closed.await;
        }
    }
}

fn check(open: &BTreeMap<RequestId, CancellationToken>, id: &RequestId) -> Result<(), ErrorObject> {
    if open.contains_key(id) {
        return Err(ErrorObject::invalid_request(format!(
            "the id {id} is already in use"
        )));
    }
    if open.len() >= MAX_OPEN {
        let reason = format!("{MAX_OPEN} requests are already open");
        return Err(quota::crowded(&reason));
    }
    Ok(())
}

/// One open request.
#[derive(Debug)]
pub(crate) struct Open {
    id: RequestId,
    cancelled: CancellationToken,
    inflight: Arc<Inflight>,
}

impl Open {
    /// Whether there shall be no answer.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Runs `answer` unless the request is cancelled first: then there is no answer, and nothing goes on.
    pub(crate) async fn unless_cancelled<T>(self, answer: impl Future<Output = T>) -> Option<T> {
        let answer = unless_cancelled(&self.cancelled, answer).await?;
        self.close().then_some(answer)
    }

    /// Gives up its id; false if that was done already, as it was cancelled.
    fn close(&self) -> bool {
        let mut state = lock(&self.inflight.state);
        // One that was cancelled has left already, and another may have its id.
        let is_open = !self.cancelled.is_cancelled();
        if is_open {
            state.open.remove(&self.id);
            self.cancelled.cancel();
        }
        is_open
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.close();
        self.inflight.closed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn what_comes_when_its_client_is_gone_is_not_answered() {
        let inflight = Arc::new(Inflight::default());
        let id = RequestId::from(1);
        let before = inflight.begin(&id).unwrap();
        inflight.cancel_all();
        let after = inflight.begin(&id).unwrap();
        for open in [before, after] {
            assert!(open.is_cancelled());
            let answer = open.unless_cancelled(std::future::ready(()));
            assert_eq!(answer.now_or_never(), Some(None));
        }
        assert!(inflight.is_empty());
    }

    #[test]
    fn what_is_cancelled_does_not_go_on_and_what_is_cancelled_as_it_ends_is_not_answered() {
        let inflight = Arc::new(Inflight::default());
        let id = RequestId::from(1);
        let open = inflight.begin(&id).unwrap();
        let mut polled = 0;
        let goes_on = std::future::poll_fn(|_| {
            polled += 1;
            std::task::Poll::<()>::Pending
        });
        let mut answer = Box::pin(open.unless_cancelled(goes_on));
        assert_eq!((&mut answer).now_or_never(), None);
        inflight.cancel(&id);
        assert_eq!((&mut answer).now_or_never(), Some(None));
        drop(answer);
        assert_eq!(polled, 1);

        let open = inflight.begin(&id).unwrap();
        let ends = async { inflight.cancel(&id) };
        assert_eq!(open.unless_cancelled(ends).now_or_never(), Some(None));
        let open = inflight.begin(&id).unwrap();
        assert_eq!(
            open.unless_cancelled(async {}).now_or_never(),
            Some(Some(()))
        );
        assert!(inflight.is_empty());
    }
}
