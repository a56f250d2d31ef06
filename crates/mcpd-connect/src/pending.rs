//! Table of the requests without an answer, by their ids.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcpd_protocol::jsonrpc::RequestId;
use tokio_util::sync::CancellationToken;

/// Time for a server to end the response to a request that was cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// Request without an answer.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    pub(crate) id: RequestId,
    /// Dropping the response is how the client cancels it.
    pub(crate) is_stateless: bool,
    /// Ends the exchange without an answer.
    pub(crate) stop: CancellationToken,
    pub(crate) cancelled: CancellationToken,
    is_sent: AtomicBool,
}

impl OpenRequest {
    /// Records that it is on its way, so that a cancellation must follow it. Returns whether it
    /// may go.
    pub(crate) fn start(&self) -> bool {
        self.is_sent.store(true, Relaxed);
        !self.is_cancelled()
    }

    /// Returns whether the client wants no answer any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Waits until it has been cancelled for some time.
    pub(crate) async fn cancellation_timeout(&self) {
        self.cancelled.cancelled().await;
        tokio::time::sleep(CANCEL_TIMEOUT).await;
    }

    /// Cancels it. Returns whether the server must be told.
    pub(crate) fn cancel(&self) -> bool {
        self.cancelled.cancel();
        let must_tell = self.is_sent.load(Relaxed) && !self.is_stateless;
        if !must_tell {
            self.stop.cancel();
        }
        must_tell
    }
}

/// Table of open requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending(Arc<Mutex<BTreeMap<RequestId, Arc<OpenRequest>>>>);

impl Pending {
    /// Adds a request. One with the same id, which a client must not send, is forgotten.
    pub(crate) fn insert(
        &self,
        id: RequestId,
        is_stateless: bool,
        stop: CancellationToken,
    ) -> Arc<OpenRequest> {
        let request = Arc::new(OpenRequest {
            id: id.clone(),
            is_stateless,
            stop,
            cancelled: CancellationToken::new(),
            is_sent: AtomicBool::new(false),
        });
        self.table().insert(id, Arc::clone(&request));
        request
    }

    pub(crate) fn get(&self, id: &RequestId) -> Option<Arc<OpenRequest>> {
        self.table().get(id).cloned()
    }

    /// Removes a request that has its answer.
    pub(crate) fn remove(&self, request: &Arc<OpenRequest>) {
        let mut table = self.table();
        if table
            .get(&request.id)
            .is_some_and(|open| Arc::ptr_eq(open, request))
        {
            table.remove(&request.id);
        }
    }

    /// Removes all requests, and returns the ids of those whose answer the client waits for.
    pub(crate) fn drain(&self) -> Vec<RequestId> {
        let table = std::mem::take(&mut *self.table());
        let waiting = table
            .into_values()
            .filter(|request| !request.is_cancelled());
        waiting.map(|request| request.id.clone()).collect()
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<RequestId, Arc<OpenRequest>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
