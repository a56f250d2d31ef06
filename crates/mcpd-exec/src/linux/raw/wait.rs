//! Ends of children, and limits of other processes.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::ptr::null;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use libc::{c_int, c_void};
use rustix::process::Pid;

use crate::outcome::Usage;

/// Takes the status and resource usage of a child that has ended. With `wait`, it waits for the
/// end.
///
/// # Errors
///
/// It is not, or no longer, a child of this process.
pub(crate) fn reap(pid: Pid, wait: bool) -> io::Result<Option<(ExitStatus, Usage)>> {
    let mut status: c_int = 0;
    let options = if wait { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: an all-zero rusage is valid, and both pointers are to live values.
        let (reaped, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            let pid = pid.as_raw_nonzero().get();
            let reaped = libc::wait4(pid, &raw mut status, options, &raw mut usage);
            (reaped, usage)
        };
        match reaped {
            0 => return Ok(None),
            1.. => return Ok(Some((ExitStatus::from_raw(status), usage_from(&usage)))),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

pub(super) fn usage_from(usage: &libc::rusage) -> Usage {
    let time = |time: libc::timeval| {
        Duration::new(
            time.tv_sec.unsigned_abs(),
            time.tv_usec.unsigned_abs() as u32 * 1000,
        )
    };
    let peak = peak(usage);
    Usage {
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        peak_memory: exceeds_own_peak(peak).then_some(peak),
    }
}

/// Peak of the resident memory, in bytes.
fn peak(usage: &libc::rusage) -> u64 {
    usage.ru_maxrss.unsigned_abs() * 1024
}

/// Returns whether this peak of a child is its own: before `execve` it has our memory, and the
/// kernel counts that.
fn exceeds_own_peak(child: u64) -> bool {
    // Ours only grows: a child below an earlier value of it is below the present one too, and
    // the kernel need not be asked.
    static OURS: AtomicU64 = AtomicU64::new(0);
    child > OURS.load(Relaxed) && {
        let ours = peak(&own_usage());
        OURS.store(ours, Relaxed);
        child > ours
    }
}

fn own_usage() -> libc::rusage {
    // SAFETY: an all-zero rusage is valid, and the pointer is to a live value.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    }
}

/// Returns the hard limit of another process.
///
/// # Errors
///
/// There is no such process, or it belongs to another user and this process lacks
/// `CAP_SYS_RESOURCE`.
pub(crate) fn hard_limit_of(pid: Pid, resource: c_int) -> io::Result<u64> {
    // SAFETY: an all-zero rlimit is valid; nothing is set.
    unsafe {
        let mut limit: libc::rlimit64 = std::mem::zeroed();
        let pid = pid.as_raw_nonzero().get();
        let nothing = null::<c_void>();
        match libc::syscall(libc::SYS_prlimit64, pid, resource, nothing, &raw mut limit) {
            0 => Ok(limit.rlim_max),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
