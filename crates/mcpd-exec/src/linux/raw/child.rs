//! The child of a vfork, on the way to its program. Only system calls are allowed here, and its
//! unsafe functions are for a child made by [`spawn`](super::spawn()) alone.

use std::convert::Infallible;
use std::os::fd::AsRawFd as _;
use std::ptr::null;
use std::sync::atomic::Ordering::Relaxed;

use libc::{c_int, c_long, c_void};

use super::errno;
use super::mount::{check_identity, perform_steps};
use super::network::open_network;
use super::plan::{Privileges, SetupStage, SpawnPlan};
use super::signals::reset_signals;
use super::spawn::ChildContext;
use crate::sandbox::RunAs;

/// Entry point of the child. Only system calls are allowed from here on.
pub(super) extern "C" fn child(job: *mut c_void) -> c_int {
    // SAFETY: `spawn` passes a `ChildContext` and sleeps until the child is gone.
    let job = unsafe { &*job.cast::<ChildContext<'_>>() };
    // SAFETY: this is the child.
    let Err((stage, errno)) = unsafe { become_program(job) };
    job.report.stage.store(stage as u32, Relaxed);
    job.report.errno.store(errno, Relaxed);
    // SAFETY: ends the child without running any exit handler of this process.
    unsafe { libc::_exit(127) }
}

/// Failed step, with the error number of the kernel.
pub(super) type FailedStep = (SetupStage, c_int);

/// Runs a system call in the child.
pub(super) fn try_step(
    stage: SetupStage,
    call: impl FnOnce() -> c_long,
) -> Result<c_long, FailedStep> {
    match call() {
        result if result < 0 => Err((stage, errno())),
        result => Ok(result),
    }
}

/// Performs the plan, step by step, and executes the program.
///
/// # Safety
///
/// Only for a child made by [`spawn`], like everything below.
unsafe fn become_program(job: &ChildContext<'_>) -> Result<Infallible, FailedStep> {
    let plan = job.plan;
    // SAFETY: this is the child.
    unsafe {
        // In this order: mounts need the privileges that later steps drop. A change of user
        // clears the parent death signal, so that is set after it. Landlock and seccomp require
        // `no_new_privs`. The filter comes last, as it may refuse the other steps.
        if let Some(namespaces) = plan.namespaces {
            perform_steps(namespaces.steps, plan.fixed, SetupStage::Namespaces)?;
        }
        if let Some(network) = &plan.network {
            open_network(network)?;
        }
        leave_group(plan.session)?;
        connect_pipes(plan)?;
        set_limits(plan)?;
        if let Some(run_as) = plan.run_as {
            change_user(run_as)?;
        }
        if let Some(directory) = plan.directory {
            try_step(SetupStage::Directory, || {
                c_long::from(libc::chdir(directory.as_ptr()))
            })?;
            // The path may have led elsewhere just then; what was entered stays.
            try_step(SetupStage::Directory, || match plan.fixed {
                Some(fixed) => check_identity(libc::AT_FDCWD, fixed),
                None => 0,
            })?;
        }
        if plan.privileges != Privileges::Kept {
            forbid_new_privileges()?;
        }
        if plan.privileges == Privileges::Dropped {
            drop_privileges()?;
        }
        if plan.namespaces.is_some() {
            // The first process, and with it all others, ends with the thread that starts it.
            // Such a thread lives as long as its executor, or until the whole host is killed.
            try_step(SetupStage::Lifeline, || {
                let signal = libc::SIGKILL;
                c_long::from(libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0))
            })?;
        }
        for ruleset in plan.rulesets.iter().flatten() {
            try_step(SetupStage::Landlock, || {
                libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0)
            })?;
        }
        reset_signals(job.changed_signals)?;
        if let Some(filter) = plan.filter {
            let program = libc::sock_fprog {
                len: filter.len() as u16,
                filter: filter.as_ptr().cast_mut().cast(),
            };
            try_step(SetupStage::Seccomp, || {
                let mode = libc::SECCOMP_SET_MODE_FILTER;
                libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program)
            })?;
        }
        execute(plan)
    }
}

/// Starts a session, or only a group.
unsafe fn leave_group(session: bool) -> Result<(), FailedStep> {
    // SAFETY: neither touches memory.
    let begin = || unsafe {
        match session {
            true => libc::setsid(),
            false => libc::setpgid(0, 0),
        }
    };
    try_step(SetupStage::Session, || c_long::from(begin())).map(drop)
}

/// Sets everything by which the kernel limits the run, counts it, and tells it from others.
unsafe fn set_limits(plan: &SpawnPlan<'_>) -> Result<(), FailedStep> {
    let pair = |soft, hard| libc::rlimit64 {
        rlim_cur: soft,
        rlim_max: hard,
    };
    for &(resource, soft, hard) in plan.limits {
        let new = pair(soft, hard);
        // SAFETY: a live limit is set, none is asked for.
        try_step(SetupStage::Limits, || unsafe {
            let nothing = null::<c_void>();
            libc::syscall(libc::SYS_prlimit64, 0, resource, &raw const new, nothing)
        })?;
    }
    if let Some(cgroup) = plan.cgroup {
        // SAFETY: writes from a live string. "0" stands for the writing process.
        try_step(SetupStage::Cgroup, || unsafe {
            libc::write(cgroup.as_raw_fd(), c"0".as_ptr().cast(), 1) as c_long
        })?;
    }
    if let Some((mark, word)) = plan.mark {
        let mark = pair(mark, mark);
        // SAFETY: the limit is live. The kernel ignores the third argument; the filter on this
        // thread checks it.
        try_step(SetupStage::Mark, || unsafe {
            let resource = libc::RLIMIT_LOCKS;
            libc::syscall(libc::SYS_setrlimit, resource, &raw const mark, word)
        })?;
    }
    Ok(())
}

unsafe fn execute(plan: &SpawnPlan<'_>) -> Result<Infallible, FailedStep> {
    let (argv, envp) = (plan.image.argv.as_ptr(), plan.image.envp.as_ptr());
    let failed = try_step(SetupStage::Exec, || {
        // SAFETY: both arrays end with a null pointer, as do the strings, and `argv` is not empty.
        unsafe {
            match plan.namespaces {
                Some(namespaces) => {
                    let init = namespaces.init.as_raw_fd();
                    let flags = libc::AT_EMPTY_PATH;
                    libc::syscall(libc::SYS_execveat, init, c"".as_ptr(), argv, envp, flags)
                }
                None => c_long::from(libc::execve(*argv, argv, envp)),
            }
        }
    });
    // `execve` only returns if it failed.
    Err(failed.err().unwrap_or((SetupStage::Exec, libc::EINVAL)))
}

/// Connects the pipes to 0, 1 and 2, and what is handed to the next numbers. All other
/// descriptors are marked close-on-exec.
unsafe fn connect_pipes(plan: &SpawnPlan<'_>) -> Result<(), FailedStep> {
    for (target, source) in plan.stdio.iter().enumerate() {
        // SAFETY: the descriptors are the caller's.
        try_step(SetupStage::Stdio, || unsafe {
            c_long::from(libc::dup2(source.as_raw_fd(), target as c_int))
        })?;
    }
    let mut first = SpawnPlan::STATUS_FD;
    for source in plan.handed {
        // SAFETY: the descriptors are the caller's.
        try_step(SetupStage::Stdio, || unsafe {
            c_long::from(libc::dup2(source.as_raw_fd(), first))
        })?;
        first += 1;
    }
    // SAFETY: only marks descriptors of the child's own table.
    let marked = try_step(SetupStage::Descriptors, || unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    });
    match marked {
        // The flag exists since Linux 5.11: see `marks_descriptors`.
        Err((_, libc::ENOSYS | libc::EINVAL)) => Ok(()),
        other => other.map(drop),
    }
}

/// Changes the user by plain system calls: the functions of libc would change that of all our
/// threads.
unsafe fn change_user(run_as: RunAs) -> Result<(), FailedStep> {
    let (user, group) = (run_as.user, run_as.group);
    // SAFETY: no pointers but a null one with length 0.
    unsafe {
        try_step(SetupStage::User, || {
            libc::syscall(libc::SYS_setgroups, 0, null::<c_void>())
        })?;
        try_step(SetupStage::User, || {
            libc::syscall(libc::SYS_setresgid, group, group, group)
        })?;
        try_step(SetupStage::User, || {
            libc::syscall(libc::SYS_setresuid, user, user, user)
        })?;
    }
    Ok(())
}

/// Keeps programs from gaining privileges.
unsafe fn forbid_new_privileges() -> Result<(), FailedStep> {
    // SAFETY: no pointers.
    let forbidden = try_step(SetupStage::Privileges, || unsafe {
        c_long::from(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    });
    forbidden.map(drop)
}

/// Drops all privileges, and keeps root from regaining its capabilities with the next program.
unsafe fn drop_privileges() -> Result<(), FailedStep> {
    /// SECBIT_NOROOT and SECBIT_NO_SETUID_FIXUP, both locked: root has no special rights, for
    /// good.
    const NO_ROOT_SECUREBITS: c_long = 0b1111;
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let none = [0_u32; 6];
    // SAFETY: the two arrays have the layout of the kernel's structures.
    unsafe {
        // Without CAP_SETPCAP this is refused, and not needed.
        let special = try_step(SetupStage::Privileges, || {
            c_long::from(libc::prctl(
                libc::PR_SET_SECUREBITS,
                NO_ROOT_SECUREBITS,
                0,
                0,
                0,
            ))
        });
        if !matches!(special, Ok(_) | Err((_, libc::EPERM))) {
            return special.map(drop);
        }
        try_step(SetupStage::Privileges, || {
            libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr())
        })?;
    }
    Ok(())
}
