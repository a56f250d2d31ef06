//! Fault injection for tests: fails the n-th system call on the way to a program, for every n, in
//! this process and in the child. The kernel asks before each call, and a second thread answers
//! (`SECCOMP_RET_USER_NOTIF`).

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use libc::{c_int, c_long};

/// Calls that are never failed: those that can't fail, those of the allocator and of locks, and
/// those that end a thread or process.
const SPARED: &[c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_prlimit64,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_umask,
];

/// Value that turns injection off.
const OFF: i64 = -1;

/// Fails the n-th system call of `work` with `error`, counted from 0, on a thread of its own,
/// which continues with `after`. Returns the result with the number of the failed call, or else
/// with the count of calls.
///
/// # Errors
///
/// The kernel can't do that.
pub(crate) fn in_call<A, B: Send>(
    n: u32,
    error: c_int,
    work: impl FnOnce() -> A + Send,
    after: impl FnOnce(A) -> B + Send,
) -> io::Result<(B, Result<c_int, u32>)> {
    let left = &AtomicI64::new(OFF);
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let (sender, listener) = mpsc::channel();
        let worker = scope.spawn(move || {
            // Also after a panic.
            let _over = scopeguard::guard((), |()| is_over.store(true, SeqCst));
            sender.send(listen()).ok();
            left.store(n.into(), SeqCst);
            let result = work();
            let rest = left.swap(OFF, SeqCst);
            (after(result), n - rest.max(0) as u32)
        });
        let listener = listener.recv().map_err(io::Error::other)?;
        let failed = listener.map(|listener| answer(&listener, left, error, is_over))?;
        match worker.join() {
            Ok((result, calls)) => Ok((result, failed.ok_or(calls))),
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Makes the kernel ask before each system call of this thread and its children.
fn listen() -> io::Result<OwnedFd> {
    let statement = |code: u32, value: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k: value,
    };
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for spared in SPARED {
        filter.push(libc::sock_filter {
            jf: 1,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, *spared as u32)
        });
        filter.push(statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ALLOW,
        ));
    }
    filter.push(statement(
        libc::BPF_RET | libc::BPF_K,
        libc::SECCOMP_RET_USER_NOTIF,
    ));
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program is valid while the kernel copies it, and the descriptor is new and
    // owned by this call.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        match libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) {
            listener if listener < 0 => Err(io::Error::last_os_error()),
            listener => Ok(OwnedFd::from_raw_fd(listener as c_int)),
        }
    }
}

/// Answers the kernel until `is_over`, and returns the call that was failed.
fn answer(
    listener: &OwnedFd,
    left: &AtomicI64,
    error: c_int,
    is_over: &AtomicBool,
) -> Option<c_int> {
    let mut failed = None;
    while !is_over.load(SeqCst) {
        let Some(asked) = next(listener) else {
            continue;
        };
        // SAFETY: numbers only.
        let mut answer: libc::seccomp_notif_resp = unsafe { zeroed() };
        answer.id = asked.id;
        match left.load(SeqCst) {
            0 => {
                left.store(OFF, SeqCst);
                failed = Some(asked.data.nr);
                answer.error = -error;
            }
            more => {
                // It may have been turned off meanwhile.
                left.compare_exchange(more, more - i64::from(more > 0), SeqCst, SeqCst)
                    .ok();
                answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
            }
        }
        // SAFETY: the answer is valid. The asking thread may be gone.
        unsafe {
            libc::ioctl(
                listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw mut answer,
            )
        };
    }
    failed
}

/// Waits a moment for the next question of the kernel.
fn next(listener: &OwnedFd) -> Option<libc::seccomp_notif> {
    let mut polled = [rustix::event::PollFd::new(
        listener,
        rustix::event::PollFlags::IN,
    )];
    let soon = rustix::event::Timespec::try_from(Duration::from_millis(5)).ok()?;
    if !matches!(rustix::event::poll(&mut polled, Some(&soon)), Ok(1..)) {
        return None;
    }
    // SAFETY: the kernel wants it zeroed, and fills it in.
    unsafe {
        let mut asked: libc::seccomp_notif = zeroed();
        let received = libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_RECV,
            &raw mut asked,
        );
        (received == 0).then_some(asked)
    }
}
