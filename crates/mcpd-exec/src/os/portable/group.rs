//! Process groups and their signals, and a thread that waits for the end of a process.
//!
//! It installs no SIGCHLD handler, since signal dispositions belong to the host. It starts no
//! session either: only the process itself can start one, and the standard library would have to
//! fork for that.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::thread;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::sync::oneshot;

use super::StartedLeader;
use crate::enforcement::Containment;
use crate::sandbox::Level;

pub(super) const CONTAINMENT: Containment = Containment::Group;

pub(super) const IS_JOB: bool = false;

/// Mechanisms that level `guarded` lacks.
pub(super) const GAPS: &[(&str, &str)] = &[
    (
        "reaper",
        "a descendant that leaves its process group survives",
    ),
    (
        "watchdog",
        "leftover processes are not ended if the host itself is killed",
    ),
];

/// Leader of a group, not reaped.
#[derive(Debug)]
pub(super) struct Leader(Child);

impl Leader {
    pub(super) fn start(mut command: Command, _: Level) -> io::Result<StartedLeader> {
        // posix_spawn does this itself. A `pre_exec` hook would make std fork, which takes longer
        // the larger this process is.
        command.process_group(0);
        let mut child = command.spawn()?;
        let stdin = child.stdin.take().map(Into::into);
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        Ok(StartedLeader {
            leader: Self(child),
            stdin,
            stdout: stdout.into(),
            stderr: stderr.into(),
        })
    }

    /// Sends TERM to the group, and CONT so that stopped members can receive it.
    pub(super) fn terminate(&mut self) {
        self.signal_group(Signal::TERM);
        self.signal_group(Signal::CONT);
    }

    pub(super) fn kill(&mut self) {
        self.signal_group(Signal::KILL);
    }

    /// Signals the group. Its number can't be reused before the leader is reaped.
    fn signal_group(&self, signal: Signal) {
        // Fails if the group is empty, or its members have changed their user. Either way nothing
        // more can be done.
        rustix::process::kill_process_group(Pid::from_child(&self.0), signal).ok();
    }

    /// Returns whether it has ended. It stays a zombie, so that its group can still be signalled.
    pub(super) fn has_exited(&mut self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match rustix::process::waitid(WaitId::Pid(Pid::from_child(&self.0)), options) {
            Ok(status) => status.is_some(),
            // The status was taken elsewhere: the host ignores SIGCHLD or waits for every child.
            Err(Errno::CHILD) => true,
            Err(_) => false,
        }
    }

    pub(super) fn watch(&self) -> io::Result<ExitWatch> {
        ExitWatch::new(Pid::from_child(&self.0))
    }

    /// Takes its status. `None` if it has not ended.
    pub(super) fn reap(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }
}

/// Future of the end of a process.
#[derive(Debug)]
pub(crate) struct ExitWatch(oneshot::Receiver<()>);

impl ExitWatch {
    /// Watches a child that has not been reaped.
    fn new(pid: Pid) -> io::Result<Self> {
        let (exited, watch) = oneshot::channel();
        thread::Builder::new()
            .name("mcpd-exec-wait".to_owned())
            .spawn(move || {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                let wait = || rustix::process::waitid(WaitId::Pid(pid), options);
                while wait().is_err_and(|error| error == Errno::INTR) {}
                // The receiver is gone if the run was dropped.
                exited.send(()).ok();
            })?;
        Ok(Self(watch))
    }

    /// Resolves when the process has ended. Cancel safe, but it must not be awaited again
    /// afterwards.
    pub(crate) async fn wait(&mut self) {
        // An error means that the thread is gone, which happens only after the end of the
        // process.
        (&mut self.0).await.ok();
    }
}
