//! Non-blocking pipes, permissions and error numbers, for every Unix.

use std::fs::Metadata;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tokio::net::unix::pipe;

use super::Fault;

/// Our end of a pipe.
pub(crate) type Pipe = OwnedFd;
pub(crate) type Reader = pipe::Receiver;
pub(crate) type Writer = pipe::Sender;

pub(crate) fn reader(end: Pipe) -> io::Result<Reader> {
    pipe::Receiver::from_owned_fd_unchecked(non_blocking(end)?)
}

pub(crate) fn writer(end: Pipe) -> io::Result<Writer> {
    pipe::Sender::from_owned_fd_unchecked(non_blocking(end)?)
}

/// Enlarges a pipe so that its writer can be further ahead: each time it blocks costs two context
/// switches.
pub(crate) fn widen(pipe: &impl AsFd, bytes: usize) {
    // Refused to a user with many large pipes; the small one stays.
    #[cfg(target_os = "linux")]
    rustix::pipe::fcntl_setpipe_size(pipe, bytes).ok();
    #[cfg(not(target_os = "linux"))]
    let _ = (pipe, bytes);
}

/// Reads what is there, regardless of the readiness that the runtime knows.
///
/// # Errors
///
/// Nothing is there.
pub(crate) fn read_at_once(pipe: &Reader, buffer: &mut Vec<u8>) -> io::Result<usize> {
    Ok(rustix::io::read(
        pipe,
        rustix::buffer::spare_capacity(buffer),
    )?)
}

/// Makes our end non-blocking. The process's end is another open file.
fn non_blocking(end: OwnedFd) -> io::Result<OwnedFd> {
    rustix::io::ioctl_fionbio(&end, true)?;
    Ok(end)
}

/// Writes what fits into the still empty pipe without waiting for a reader.
pub(crate) fn first_write(stdin: &Pipe, bytes: &[u8]) -> io::Result<usize> {
    rustix::io::ioctl_fionbio(stdin, true)?;
    Ok(rustix::io::write(stdin, bytes)?)
}

/// Returns the file size limit of this process. Exceeding it raises SIGXFSZ, which ends a process
/// that does not ignore it.
pub(crate) fn file_size_limit() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

pub(crate) fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

pub(crate) fn core_dumped(status: ExitStatus) -> bool {
    status.core_dumped()
}

pub(crate) fn is_executable(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

/// Returns whether this user may execute the file.
pub(crate) fn may_execute(file: &Path) -> bool {
    rustix::fs::access(file, Access::EXEC_OK).is_ok()
}

pub(crate) fn can_enter(directory: &Path) -> bool {
    directory.is_dir() && may_execute(directory)
}

pub(crate) fn fault(error: &io::Error) -> Fault {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => Fault::Missing,
        Some(Errno::NOTDIR) => Fault::NotDirectory,
        Some(Errno::ACCESS | Errno::PERM | Errno::ISDIR) => Fault::Denied,
        Some(Errno::LOOP) => Fault::Loop,
        Some(Errno::NOEXEC) => Fault::NotAProgram,
        Some(Errno::TOOBIG) => Fault::TooLarge,
        Some(Errno::TXTBSY) => Fault::Busy,
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => Fault::Exhausted,
        _ => Fault::Other,
    }
}
