//! Noticing that a process has ended, by a thread that waits for it, where there is no pidfd.
//!
//! No SIGCHLD handler: signal dispositions belong to the host.

use std::io;
use std::process::Child;
use std::thread;

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions};
use tokio::sync::oneshot;

/// Becomes ready when a process has ended.
#[derive(Debug)]
pub(crate) struct ExitWatch(oneshot::Receiver<()>);

impl ExitWatch {
    /// Watches a child that has not been reaped.
    pub(crate) fn new(child: &Child) -> io::Result<Self> {
        let pid = super::unix::pid(child);
        let (exited, watch) = oneshot::channel();
        thread::Builder::new()
            .name("mcpd-exec-wait".to_owned())
            .spawn(move || {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                let wait = || rustix::process::waitid(WaitId::Pid(pid), options);
                while wait().is_err_and(|error| error == Errno::INTR) {}
                // Nobody listens any more when the run was dropped.
                exited.send(()).ok();
            })?;
        Ok(Self(watch))
    }

    /// Resolves when the process has ended. Cancel safe, but not to be awaited again afterwards.
    pub(crate) async fn exited(&mut self) {
        // An error means the thread is gone, and it goes only when the process has ended.
        (&mut self.0).await.ok();
    }
}
