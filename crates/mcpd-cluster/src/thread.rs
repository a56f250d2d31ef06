//! A thread with a runtime of its own for the connection and the state machines of a node: its
//! heartbeats go out on time, however busy the server's threads are.

use std::io;
use std::pin::pin;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Runs a future on a thread of its own. Returns `None` if it panics. The future gets a receiver
/// that is closed when this one is dropped, and then it has the time `farewell` to end.
///
/// # Errors
///
/// The system has no thread for it.
///
/// # Cancel safety
///
/// Dropping this future drops the other one, after its farewell.
pub(crate) async fn run_apart<T, F>(
    farewell: Duration,
    make: impl FnOnce(oneshot::Receiver<()>) -> F + Send + 'static,
) -> io::Result<Option<T>>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let (_guard, mut dropped) = oneshot::channel::<()>();
    let (result, done) = oneshot::channel();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let run = move || {
        runtime.block_on(async {
            let (stop, stopped) = oneshot::channel();
            let mut work = pin!(make(stopped));
            tokio::select! {
                ended = &mut work => {
                    // Without a receiver the result is not wanted any more.
                    result.send(ended).ok();
                }
                _ = &mut dropped => {
                    drop(stop);
                    timeout(farewell, work).await.ok();
                }
            }
        });
        // A file may be read on its pool still.
        runtime.shutdown_background();
    };
    thread::Builder::new()
        .name("mcpd-cluster".to_owned())
        .spawn(run)?;
    Ok(done.await.ok())
}
