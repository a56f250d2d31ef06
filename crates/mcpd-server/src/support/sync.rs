//! Helpers for locks and cancellation.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Locks `mutex`. No code of this crate panics while it holds a lock, so a poisoned one still
/// guards consistent data.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for `future`, unless `token` is cancelled first. After that the future is not polled
/// again.
pub(crate) async fn unless_cancelled<T>(
    token: &CancellationToken,
    future: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        () = token.cancelled() => None,
        output = future => Some(output),
    }
}
