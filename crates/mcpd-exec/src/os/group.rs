//! Process groups and their signals, and a thread that waits for the end of a process.
//!
//! No SIGCHLD handler: signal dispositions belong to the host.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::sync::oneshot;

pub(crate) fn configure(command: &mut Command) {
    // Done by posix_spawn itself. Anything in `pre_exec` would make std fork, which takes the longer the larger we are.
    command.process_group(0);
}

/// Asks the group to end, and wakes those who are stopped and could not hear it.
pub(crate) fn terminate(leader: &mut Child) {
    signal_group(leader, Signal::TERM);
    signal_group(leader, Signal::CONT);
}

pub(crate) fn kill(leader: &mut Child) {
    signal_group(leader, Signal::KILL);
}

/// The leader must not have been reaped: until then its number is nobody else's.
fn signal_group(leader: &Child, signal: Signal) {
    // Fails if nobody is left, or those left have changed their user. Either way there is nothing more to do.
    rustix::process::kill_process_group(Pid::from_child(leader), signal).ok();
}

/// Whether the leader has ended. It stays a zombie, so that its group can still be signalled.
pub(crate) fn has_exited(leader: &mut Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match rustix::process::waitid(WaitId::Pid(Pid::from_child(leader)), options) {
        Ok(status) => status.is_some(),
        // Somebody else reaped it: the host ignores SIGCHLD or waits for every child.
        Err(Errno::CHILD) => true,
        Err(_) => false,
    }
}

/// Becomes ready when a process has ended.
#[derive(Debug)]
pub(crate) struct ExitWatch(oneshot::Receiver<()>);

impl ExitWatch {
    /// Watches a child that has not been reaped.
    pub(crate) fn new(child: &Child) -> io::Result<Self> {
        let pid = Pid::from_child(child);
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
