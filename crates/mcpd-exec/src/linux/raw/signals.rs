//! Signals of this process, and of a child on the way to its program.

use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use libc::{c_int, c_long};

use super::child::{FailedStep, try_step};
use super::plan::SetupStage;

/// Last standard signal. The real-time signals after it are never ignored, and resetting each
/// would cost every run a system call.
pub(super) const LAST_SIGNAL: c_int = 31;

/// Makes children waitable, and ignores SIGXFSZ unless it has a handler.
pub(crate) fn prepare_signals() {
    if loses_children() {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
    if action(libc::SIGXFSZ).sa_sigaction == libc::SIG_DFL {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    }
}

/// Returns whether the exit statuses of children are lost, so that their numbers may be reused
/// unnoticed.
pub(crate) fn loses_children() -> bool {
    let action = action(libc::SIGCHLD);
    action.sa_sigaction == libc::SIG_IGN || action.sa_flags & libc::SA_NOCLDWAIT != 0
}

/// Returns the action of this process on a signal.
pub(super) fn action(signal: c_int) -> libc::sigaction {
    // SAFETY: an all-zero action is valid; nothing is set.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, null(), &raw mut action);
        action
    }
}

/// Guard that blocks all signals of this thread: a handler would run in the child, on our memory.
pub(super) struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    pub(super) fn new() -> Self {
        // SAFETY: both sets are valid, and written before they are read.
        unsafe {
            let (mut all, mut before) = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
            Self(before)
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set was filled in by the kernel.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, null_mut()) };
    }
}

/// Signals that have another action than the default one, one bit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChangedSignals(u32);

impl ChangedSignals {
    const ALL: Self = Self(u32::MAX);

    /// Time for which a result is used again. Asking takes 31 system calls, which would slow
    /// short runs down, and hosts change their signals when they start.
    const MAX_AGE: Duration = Duration::from_millis(50);

    /// Returns those of this process, as of [`Self::MAX_AGE`] ago or later.
    pub(super) fn of_this_process() -> Self {
        static KNOWN: Mutex<Option<(Instant, ChangedSignals)>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            Some((asked, changed)) if asked.elapsed() < Self::MAX_AGE => changed,
            _ => known.insert((Instant::now(), Self::ask())).1,
        }
    }

    fn ask() -> Self {
        let is_changed = |signal: &c_int| action(*signal).sa_sigaction != libc::SIG_DFL;
        let changed = (1..=LAST_SIGNAL).filter(is_changed);
        Self(changed.fold(0, |bits, signal| bits | 1 << signal))
    }

    fn iter(self) -> impl Iterator<Item = c_int> {
        (1..=LAST_SIGNAL).filter(move |signal| self.0 & 1 << signal != 0)
    }
}

/// Resets these signals to their default action, then unblocks all. In this order, because a
/// pending one would run our handler. `changed` may lack a handler that is newer than
/// [`ChangedSignals::MAX_AGE`], so with any signal pending all are reset.
pub(super) unsafe fn reset_signals(changed: ChangedSignals) -> Result<(), FailedStep> {
    // SAFETY: an all-zero action is the default one, an all-zero set is empty.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        let mut pending: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&raw mut pending);
        let is_pending = |signal| libc::sigismember(&raw const pending, signal) == 1;
        let changed = match (1..=LAST_SIGNAL).any(is_pending) {
            true => ChangedSignals::ALL,
            false => changed,
        };
        for signal in changed.iter() {
            // Fails for KILL, STOP and those reserved by libc, which are never ignored.
            libc::sigaction(signal, &raw const default, null_mut());
        }
        let empty: libc::sigset_t = std::mem::zeroed();
        try_step(SetupStage::Signals, || {
            let set = libc::SIG_SETMASK;
            c_long::from(libc::sigprocmask(set, &raw const empty, null_mut()))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_signals_with_another_action_are_reset() {
        let changed: Vec<_> = ChangedSignals::ask().iter().collect();
        // Every Rust program ignores the first, and none the second.
        assert!(changed.contains(&libc::SIGPIPE), "{changed:?}");
        assert!(!changed.contains(&libc::SIGUSR2), "{changed:?}");
    }
}
