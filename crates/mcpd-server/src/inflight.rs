//! Requests being answered, so that they can be cancelled by id. Bounded: a client that sends without
//! end is told so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use mcpd_protocol::jsonrpc::{ErrorObject, Notification, RequestId};
use mcpd_protocol::{CancelledNotification, CancelledNotificationParams, NotificationMethod as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::sync::lock;

/// How many requests of one client may be open at once.
pub(crate) const MAX_OPEN: usize = 512;

/// The open requests of one client.
#[derive(Debug, Default)]
pub(crate) struct Inflight {
    open: Mutex<BTreeMap<RequestId, CancellationToken>>,
    closed: Notify,
}

impl Inflight {
    /// Notes that `id` is being answered, until the guard is dropped.
    ///
    /// # Errors
    ///
    /// When the id is already in use, or too many are.
    pub(crate) fn begin(self: &Arc<Self>, id: &RequestId) -> Result<Open, ErrorObject> {
        let mut open = lock(&self.open);
        check(&open, id)?;
        let cancelled = CancellationToken::new();
        open.insert(id.clone(), cancelled.clone());
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
        check(&lock(&self.open), id)
    }

    /// Cancels the request, if it is still open. Anything else is "unknown or finished" and ignored.
    /// Its id is free from here on: the client knows that no answer will come.
    fn cancel(&self, id: &RequestId) {
        let mut open = lock(&self.open);
        if let Some(cancelled) = open.remove(id) {
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

    /// Cancels everything: the client is gone.
    pub(crate) fn cancel_all(&self) {
        let mut open = lock(&self.open);
        for cancelled in std::mem::take(&mut *open).values() {
            cancelled.cancel();
        }
    }

    /// Whether nothing is open.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.open).is_empty()
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
        return Err(ErrorObject::internal_error(format!(
            "{MAX_OPEN} requests are already open; wait for an answer to one of them"
        )));
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
    /// Runs `answer` unless the request is cancelled first: then there is no answer.
    pub(crate) async fn unless_cancelled<T>(self, answer: impl Future<Output = T>) -> Option<T> {
        self.cancelled.run_until_cancelled(answer).await
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut open = lock(&self.inflight.open);
        // One that was cancelled has left already, and another may have its id.
        if !self.cancelled.is_cancelled() {
            open.remove(&self.id);
        }
        drop(open);
        self.inflight.closed.notify_waiters();
    }
}
