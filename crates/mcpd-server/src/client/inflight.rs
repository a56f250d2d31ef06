//! In-flight requests of a client by id, for cancellation. Bounded: a request above the limit is
//! refused with an error.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use mcpd_protocol::NotificationMethod as _;
use mcpd_protocol::jsonrpc::{ErrorObject, Notification, RequestId};
use mcpd_protocol::method::{CancelledNotification, CancelledNotificationParams};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::limits::rate_limit;
use crate::support::sync::{lock, unless_cancelled};

/// Maximum number of open requests of one client.
pub(crate) const MAX_OPEN: usize = 512;

/// Open requests of one client.
#[derive(Debug, Default)]
pub(crate) struct Inflight {
    state: Mutex<OpenRequests>,
    closed: Notify,
}

#[derive(Debug, Default)]
struct OpenRequests {
    open: BTreeMap<RequestId, CancellationToken>,
    /// The client is gone.
    is_over: bool,
}

impl Inflight {
    /// Registers `id` as open until the guard is dropped. The request is cancelled at once if the
    /// client disconnected while it was being read.
    ///
    /// # Errors
    ///
    /// The id is in use, or too many requests are open.
    pub(crate) fn begin(self: &Arc<Self>, id: &RequestId) -> Result<OpenRequest, ErrorObject> {
        let mut state = lock(&self.state);
        check(&state.open, id)?;
        let cancelled = CancellationToken::new();
        if state.is_over {
            cancelled.cancel();
        } else {
            state.open.insert(id.clone(), cancelled.clone());
        }
        Ok(OpenRequest {
            id: id.clone(),
            cancelled,
            inflight: Arc::clone(self),
        })
    }

    /// Checks that `id` could be registered now.
    ///
    /// # Errors
    ///
    /// See [`begin`](Self::begin).
    pub(crate) fn check(&self, id: &RequestId) -> Result<(), ErrorObject> {
        check(&lock(&self.state).open, id)
    }

    /// Cancels the request, if it is still open. Anything else is "unknown or finished" and
    /// ignored. The id is free at once: the client knows that no response will come. Returns
    /// whether it was open.
    fn cancel(&self, id: &RequestId) -> bool {
        let cancelled = lock(&self.state).open.remove(id);
        if let Some(cancelled) = &cancelled {
            cancelled.cancel();
        }
        cancelled.is_some()
    }

    /// Applies a notification that cancels a request, and ignores any other. Returns whether it
    /// cancels one that is not open here.
    pub(crate) fn apply_notification(&self, notification: &Notification<'_>) -> bool {
        notification.method == CancelledNotification::NAME
            && notification
                .parse_params::<CancelledNotificationParams>()
                .is_ok_and(|params| !self.cancel(&params.request_id))
    }

    /// Cancels all requests, and those still to come: the client is gone. Returns the ids that
    /// were open.
    pub(crate) fn cancel_all(&self) -> Vec<RequestId> {
        let mut state = lock(&self.state);
        state.is_over = true;
        let open = std::mem::take(&mut state.open);
        for cancelled in open.values() {
            cancelled.cancel();
        }
        open.into_keys().collect()
    }

    /// Returns whether no request is open.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.state).open.is_empty()
    }

    /// Waits until no request is open.
    pub(crate) async fn wait_until_empty(&self) {
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
        return Err(rate_limit::overload_error(&reason));
    }
    Ok(())
}

/// Guard of one open request.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    id: RequestId,
    cancelled: CancellationToken,
    inflight: Arc<Inflight>,
}

impl OpenRequest {
    /// Returns whether the request was cancelled and gets no response.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Runs `answer` unless the request is cancelled first: then the future is dropped, and there
    /// is no response.
    pub(crate) async fn unless_cancelled<T>(self, answer: impl Future<Output = T>) -> Option<T> {
        let answer = unless_cancelled(&self.cancelled, answer).await?;
        self.close().then_some(answer)
    }

    /// Releases the id. Returns false if the request was cancelled, which has released it
    /// already.
    fn close(&self) -> bool {
        let mut state = lock(&self.inflight.state);
        // A cancelled request has left the map already, and a new request may have its id.
        let is_open = !self.cancelled.is_cancelled();
        if is_open {
            state.open.remove(&self.id);
            self.cancelled.cancel();
        }
        is_open
    }
}

impl Drop for OpenRequest {
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
    fn request_of_a_gone_client_is_not_answered() {
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
    fn cancelled_request_stops_and_is_not_answered() {
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
