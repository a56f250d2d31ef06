//! A task for the connection and the state machines of a node, which outlives its caller for a
//! good-bye.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// Runs a future as a task of its own. Returns `None` if it panics. The future gets a receiver
/// that is closed when this one is dropped, and then it has the time `farewell` to end.
///
/// # Cancel safety
///
/// Dropping this future drops the other one, after its farewell; the end of the runtime drops it at
/// once.
pub(crate) async fn run_detached<T, F>(
    farewell: Duration,
    make: impl FnOnce(oneshot::Receiver<()>) -> F,
) -> Option<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let (_guard, mut dropped) = oneshot::channel::<()>();
    let (stop, stopped) = oneshot::channel();
    let mut work = Box::pin(make(stopped));
    let task = tokio::spawn(async move {
        tokio::select! {
            ended = &mut work => Some(ended),
            _ = &mut dropped => {
                drop(stop);
                timeout(farewell, work).await.ok()
            }
        }
    });
    task.await.ok().flatten()
}
