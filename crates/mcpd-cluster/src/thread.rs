//! A thread with a runtime of its own for the connection and the state machines of a node: its
//! heartbeats go out on time, however busy the server's threads are.

use std::io;
use std::thread;

use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// Runs a future on a thread of its own. Returns `None` if it panics.
///
/// # Errors
///
/// The system has no thread for it.
///
/// # Cancel safety
///
/// Dropping this future drops the other one.
pub(crate) async fn run_apart<T, F>(
    make: impl FnOnce() -> F + Send + 'static,
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
            tokio::select! {
                ended = make() => {
                    // Without a receiver the result is not wanted any more.
                    result.send(ended).ok();
                }
                _ = &mut dropped => {}
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
