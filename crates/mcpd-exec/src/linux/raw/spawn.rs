//! Creation of a process, from the side of its parent.

use std::cell::RefCell;
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libc::{c_int, c_long, c_void};
use rustix::process::Pid;

use super::check_call;
use super::child::child;
use super::plan::{SETUP_STAGES, SetupStage, SpawnPlan};
use super::signals::{BlockedSignals, ChangedSignals};
use super::wait::reap;

/// Returns whether `close_range` can mark descriptors close-on-exec in a child (Linux 5.11), even
/// those the host has not marked.
pub(crate) fn marks_descriptors() -> bool {
    // SAFETY: there is no such descriptor.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            u32::MAX,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        ) == 0
    }
}

/// Stack size of the child, for its few frames.
const STACK_SIZE: usize = 64 * 1024;

/// Process that has reached its program.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
}

/// Stage at which a start failed, and its error.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) stage: SetupStage,
    pub(crate) error: io::Error,
}

/// Report of the child. `errno` stays 0 unless it gives up.
#[derive(Debug, Default)]
pub(super) struct ChildReport {
    pub(super) stage: AtomicU32,
    pub(super) errno: AtomicI32,
}

pub(super) struct ChildContext<'a> {
    pub(super) plan: &'a SpawnPlan<'a>,
    pub(super) changed_signals: ChangedSignals,
    pub(super) report: ChildReport,
}

thread_local! {
    static STACK_MEMORY: RefCell<Vec<u128>> = RefCell::new(vec![0; STACK_SIZE / size_of::<u128>()]);
}

/// Creates a process and waits until it has reached its program.
///
/// # Errors
///
/// The stage at which the child failed. It has ended then.
pub(crate) fn spawn(plan: &SpawnPlan<'_>) -> Result<Spawned, Failure> {
    let mut job = ChildContext {
        plan,
        changed_signals: ChangedSignals::of_this_process(),
        report: ChildReport::default(),
    };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let flags = flags | plan.namespaces.map_or(0, |namespaces| namespaces.flags);
    let flags = flags | plan.network.as_ref().map_or(0, |network| network.flags);
    let mut pidfd: RawFd = -1;
    let _dumpable = plan.run_as.map(|_| Dumpable::new());
    let cloned = STACK_MEMORY.with_borrow_mut(|stack| {
        let job: *mut ChildContext<'_> = &raw mut job;
        let _quiet = BlockedSignals::new();
        // SAFETY: the stack is this thread's alone, aligned, and unused until the child is done
        // with it, since CLONE_VFORK makes this thread sleep meanwhile; `job` lives longer than
        // that, and `child` does only what CLONE_VM allows.
        unsafe {
            let top = stack.as_mut_ptr_range().end.cast::<c_void>();
            check_call(|| libc::clone(child, top, flags, job.cast(), &raw mut pidfd) as c_long)
        }
    });
    let pid = cloned.map_err(|error| Failure {
        stage: SetupStage::Clone,
        error,
    })?;
    let failed = job.report.errno.load(Relaxed);
    let (Some(pid), true) = (Pid::from_raw(pid as i32), pidfd >= 0) else {
        return Err(Failure {
            stage: SetupStage::Clone,
            error: io::Error::other("the kernel gave no pidfd"),
        });
    };
    // SAFETY: CLONE_PIDFD has created it for this call.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    if failed == 0 {
        return Ok(Spawned { pid, pidfd });
    }
    // The child has ended, or is about to.
    reap(pid, true).ok();
    Err(Failure {
        stage: SETUP_STAGES[job.report.stage.load(Relaxed) as usize],
        error: io::Error::from_raw_os_error(failed),
    })
}

/// Guard that restores `PR_DUMPABLE` when the last one is dropped. A child that changes its user
/// in our memory clears the flag, so no process of that user can look into this one meanwhile.
struct Dumpable;

impl Dumpable {
    /// Number of guards, and the value of the flag before the first.
    fn guards() -> MutexGuard<'static, (usize, c_int)> {
        static GUARDS: Mutex<(usize, c_int)> = Mutex::new((0, 0));
        GUARDS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new() -> Self {
        let mut guards = Self::guards();
        if guards.0 == 0 {
            // SAFETY: no pointers.
            guards.1 = unsafe { libc::prctl(libc::PR_GET_DUMPABLE) };
        }
        guards.0 += 1;
        Self
    }
}

impl Drop for Dumpable {
    fn drop(&mut self) {
        let mut guards = Self::guards();
        guards.0 -= 1;
        if guards.0 == 0 {
            // SAFETY: no pointers.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, guards.1) };
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};

    use super::*;

    #[test]
    fn dumpable_flag_is_restored_by_the_last_guard() {
        let (first, second) = (Dumpable::new(), Dumpable::new());
        // The kernel does this when a child in our memory changes its user.
        set_dumpable_behavior(DumpableBehavior::NotDumpable).unwrap();
        let third = Dumpable::new();
        drop((first, second));
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        drop(third);
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::Dumpable);
    }
}
