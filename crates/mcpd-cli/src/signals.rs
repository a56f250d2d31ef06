//! Being asked to end: SIGTERM by a service manager, SIGINT by Ctrl-C.

use std::io;

/// Listens from its making on, so that no request to end is lost.
#[derive(Debug)]
pub(crate) struct Termination {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Termination {
    /// Takes the signals over from the system, which would end the process and leave its scripts.
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next request to end.
    pub(crate) async fn requested(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Termination {
    /// There is nothing to take over.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for Ctrl-C.
    pub(crate) async fn requested(&mut self) {
        tokio::signal::ctrl_c().await.ok();
    }
}
