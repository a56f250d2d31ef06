//! Read leases, as a test for writers: the kernel grants none on a file that a process has open
//! for writing.

use std::os::fd::AsRawFd as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Command of `fcntl` that sets the signal of a file; the same on all architectures that this is
/// compiled for.
const F_SETSIG: libc::c_int = 10;

/// Returns whether a process has `file` open for writing. Where the kernel grants this process no
/// leases, as on files of other users, it returns `false`.
pub(crate) fn is_open_for_writing(file: &Path) -> bool {
    // Blocks neither for the writer of a pipe nor for the lease of another process.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let Ok(file) = rustix::fs::open(file, flags, Mode::empty()) else {
        return false;
    };
    let set = |command, argument: libc::c_int| {
        // SAFETY: It is a file of ours, and none of these commands takes a pointer.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
        match result {
            -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error())),
            _ => Ok(()),
        }
    };
    // If another process opens the file for writing meanwhile, this process gets a signal. The
    // default, SIGIO, would end it; SIGURG is ignored.
    if set(F_SETSIG, libc::SIGURG).is_err() {
        return false;
    }
    let leased = set(libc::F_SETLEASE, libc::F_RDLCK);
    if leased.is_ok() {
        // Not left to the drop of `file`: a child on its way to its program may have a copy of
        // it.
        set(libc::F_SETLEASE, libc::F_UNLCK).ok();
    }
    leased == Err(Some(Errno::AGAIN))
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};

    use super::*;

    #[test]
    fn lease_tells_of_a_writer_until_it_has_closed_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let writer = File::create(&path).unwrap();
        let reader = File::open(&path).unwrap();
        assert!(is_open_for_writing(&path));
        drop(writer);
        assert!(!is_open_for_writing(&path));
        let appender = OpenOptions::new().append(true).open(&path).unwrap();
        assert!(is_open_for_writing(&path));
        drop((appender, reader));
        assert!(!is_open_for_writing(&path));
        assert!(!is_open_for_writing(&directory.path().join("gone")));
    }

    #[test]
    fn writer_neither_waits_for_a_lease_nor_ends_the_process() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        File::create(&path).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..2000).filter(|_| is_open_for_writing(&path)).count());
            for _ in 0..2000 {
                OpenOptions::new().write(true).open(&path).unwrap();
            }
        });
    }
}
