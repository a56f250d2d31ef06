//! Process that was started, and the wait for its end.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpgid, kill_process_group,
    pidfd_send_signal, waitid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::cgroup::Group;
use super::confinement::Confinement;
use super::isolation::Isolation;
use super::outside::Outside;
use super::raw;
use super::tree::{self, Orphans};
use crate::enforcement::Enforcement;
use crate::os::ExitReport;
use crate::process::Progress;
use crate::sandbox::Level;

/// Process that has not been reaped.
#[derive(Debug)]
pub(crate) struct Child {
    pub(super) pid: Pid,
    pub(super) pidfd: Arc<OwnedFd>,
    /// Set for a run of which nothing may be left.
    pub(super) killer: Option<tree::RunKiller>,
    pub(super) orphans: Option<&'static Orphans>,
    pub(super) confinement: Confinement,
}

impl Child {
    /// Sends TERM to the group, and CONT so that stopped members can receive it.
    pub(crate) fn terminate(&mut self) {
        let outside = self.confinement.outside.as_ref();
        for signal in [Signal::TERM, Signal::CONT] {
            match outside.map(Outside::is_transparent) {
                None => {}
                // The backend would die of it, and the run with it, without its grace.
                Some(true) => {
                    tree::signal_followers(self.pid, signal);
                    continue;
                }
                // It passes the signal on.
                Some(false) => {
                    self.signal_leader(signal);
                    continue;
                }
            }
            self.signal_group(signal);
            // Without its own session it may have joined another group. It must not get the
            // signals twice.
            if getpgid(Some(self.pid)) != Ok(self.pid) {
                self.signal_leader(signal);
            }
        }
    }

    /// Sends KILL to the group.
    pub(crate) fn kill(&mut self) {
        if let Some(group) = &self.confinement.group {
            group.kill();
        }
        self.signal_group(Signal::KILL);
        self.signal_leader(Signal::KILL);
    }

    /// Signals the group. Its number can't be reused before the leader is reaped.
    fn signal_group(&self, signal: Signal) {
        // Fails if the group is empty, or its members have changed their user. Either way nothing
        // more can be done.
        kill_process_group(self.pid, signal).ok();
    }

    /// Signals the leader, even if it has changed its group.
    fn signal_leader(&self, signal: Signal) {
        // Fails if it has ended, or has changed its user.
        pidfd_send_signal(self.pidfd.as_fd(), signal).ok();
    }

    /// Returns whether the leader has ended. It stays a zombie, so that its group can still be
    /// signalled.
    pub(crate) fn has_exited(&mut self) -> bool {
        match self.peek_status() {
            Ok(status) => status.is_some(),
            // The status was taken elsewhere: the host ignores SIGCHLD or waits for every child.
            Err(Errno::CHILD) => true,
            Err(_) => false,
        }
    }

    /// Returns the exit status of the leader, which stays a zombie. `None` if only the first
    /// process of its namespace knows it.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        if self.confinement.has_first_process() {
            return None;
        }
        let status = self.peek_status().ok()??;
        // Encoded as `wait` does.
        let core = if status.dumped() { 0x80 } else { 0 };
        let by_signal = status.terminating_signal().map(|signal| signal | core);
        let raw = status.exit_status().map(|code| (code & 0xff) << 8);
        raw.or(by_signal).map(ExitStatus::from_raw)
    }

    fn peek_status(&self) -> Result<Option<WaitIdStatus>, Errno> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::PidFd(self.pidfd.as_fd()), options)
    }

    pub(crate) fn watch(&self) -> io::Result<ExitWatch> {
        ExitWatch::new(Arc::clone(&self.pidfd))
    }

    /// Returns whether nothing may be left of its run.
    pub(crate) fn is_confined(&self) -> bool {
        self.confinement.enforced.level >= Level::Guarded
    }

    /// Returns, without waiting, whether it is certain that only the leader, which has ended, is
    /// left of the run. `None` if that can't be known.
    pub(crate) fn is_alone(&self) -> Option<bool> {
        if self.confinement.isolation.is_some() {
            // The first process of a namespace outlives all others in it.
            return Some(true);
        }
        let (orphans, mark) = (self.orphans?, self.confinement.mark?);
        Some(orphans.has_none(mark))
    }

    /// Returns whether the number of processes that are left can be known.
    pub(crate) fn counts_leftovers(&self) -> bool {
        let can_tell = self.orphans.is_some() && self.confinement.mark.is_some();
        can_tell && !self.confinement.has_first_process()
    }

    /// Returns the number of processes of the run that are left beside its leader, which has
    /// ended, if it can be known. May wait.
    pub(crate) fn leftover_count(&self) -> Option<u32> {
        if self.confinement.has_first_process() {
            return None;
        }
        let (orphans, mark) = (self.orphans?, self.confinement.mark?);
        Some(orphans.count_alive(mark))
    }

    /// Performs one round of ending what is left beside the leader.
    pub(crate) fn end_round(&mut self) -> Progress {
        let ended = self.has_exited();
        match &mut self.killer {
            Some(killer) => killer.round(self.pid, ended, self.orphans),
            None => {
                if self.is_confined() {
                    self.kill();
                }
                Progress::until(ended)
            }
        }
    }

    /// Number of processes that were killed after the leader.
    pub(crate) fn killed_count(&self) -> u32 {
        self.killer
            .as_ref()
            .map_or(0, tree::RunKiller::killed_count)
    }

    /// Takes the status of a leader that has ended. `None` if it has not.
    ///
    /// # Errors
    ///
    /// The status was taken elsewhere.
    pub(crate) fn reap(&mut self) -> io::Result<Option<ExitReport>> {
        let remains = raw::reap(self.pid, false)?;
        // The first process of a namespace reports the status of its program, unless it was
        // killed.
        let isolation = remains.and_then(|_| self.confinement.isolation.take());
        let outside = remains.and_then(|_| self.confinement.outside.take());
        let ending = isolation.and_then(Isolation::read_ending);
        let ending = ending.or_else(|| outside.and_then(Outside::read_ending));
        Ok(ending.or(remains))
    }

    /// Returns whether the kernel has killed it for lack of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let group = self.confinement.group.as_ref();
        group.is_some_and(Group::ran_out_of_memory)
    }

    pub(crate) fn enforcement(&self) -> &Enforcement {
        &self.confinement.enforced
    }
}

/// Future of the end of a process.
#[derive(Debug)]
pub(crate) struct ExitWatch(AsyncFd<Arc<OwnedFd>>);

impl ExitWatch {
    fn new(pidfd: Arc<OwnedFd>) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "its successor is unsafe, for types that may lose their descriptor; this one can't"
        )]
        let register = AsyncFd::with_interest;
        Ok(Self(register(pidfd, Interest::READABLE)?))
    }

    /// Resolves when the process has ended. Cancel safe.
    pub(crate) async fn wait(&mut self) {
        // The only error is that the runtime is shutting down, which drops this future next.
        if self.0.readable().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
