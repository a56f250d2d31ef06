//! Noticing that a process has ended, by its pidfd.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;

use rustix::process::PidfdFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Becomes ready when a process has ended.
#[derive(Debug)]
pub(crate) struct ExitWatch(AsyncFd<OwnedFd>);

impl ExitWatch {
    /// Watches a child that has not been reaped.
    pub(crate) fn new(child: &Child) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "its successor is unsafe, for types that may lose their descriptor; `OwnedFd` can't"
        )]
        let register = AsyncFd::with_interest;
        let pidfd = rustix::process::pidfd_open(super::unix::pid(child), PidfdFlags::empty())?;
        Ok(Self(register(pidfd, Interest::READABLE)?))
    }

    /// Resolves when the process has ended. Cancel safe.
    pub(crate) async fn exited(&mut self) {
        // The only error is that the runtime is shutting down, which drops us next.
        if self.0.readable().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
