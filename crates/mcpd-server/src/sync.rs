//! One way to take a lock, and one to stop.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// Locks `mutex`. No code of this crate panics while it holds a lock, so a poisoned one still
/// guards consistent data.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What `future` comes to, unless it is cancelled first. From then on nothing of it goes on, not even once more.
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
