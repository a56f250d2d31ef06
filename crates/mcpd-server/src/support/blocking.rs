//! Work on the thread pool for what blocks.

use tokio::task::{JoinError, JoinHandle};

/// Returns the result of `work`, or propagates its panic: an aborted scan must not look like an
/// empty one.
pub(crate) async fn join_blocking<T>(work: JoinHandle<T>) -> T {
    match work.await.map_err(JoinError::try_into_panic) {
        Ok(done) => done,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The task was cancelled with the runtime, and so is the caller.
        Err(Err(_)) => std::future::pending().await,
    }
}
