//! Process groups, signals and non-blocking pipes, for every Unix.

use std::fs::Metadata;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ExitStatus};

use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::net::unix::pipe;

use super::Fault;

pub(crate) type Reader = pipe::Receiver;
pub(crate) type Writer = pipe::Sender;

pub(crate) fn reader(end: impl Into<OwnedFd>) -> io::Result<Reader> {
    pipe::Receiver::from_owned_fd_unchecked(non_blocking(end.into())?)
}

pub(crate) fn writer(end: impl Into<OwnedFd>) -> io::Result<Writer> {
    pipe::Sender::from_owned_fd_unchecked(non_blocking(end.into())?)
}

/// Our end only: the process's end is another open file.
fn non_blocking(end: OwnedFd) -> io::Result<OwnedFd> {
    rustix::io::ioctl_fionbio(&end, true)?;
    Ok(end)
}

/// Writes what fits into the still empty pipe without waiting for a reader.
pub(crate) fn first_write(stdin: &mut ChildStdin, bytes: &[u8]) -> io::Result<usize> {
    rustix::io::ioctl_fionbio(&*stdin, true)?;
    stdin.write(bytes)
}

pub(crate) fn configure(command: &mut std::process::Command) {
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
    rustix::process::kill_process_group(pid(leader), signal).ok();
}

/// Whether the leader has ended. It stays a zombie, so that its group can still be signalled.
pub(crate) fn has_exited(leader: &mut Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match rustix::process::waitid(WaitId::Pid(pid(leader)), options) {
        Ok(status) => status.is_some(),
        // Somebody else reaped it: the host ignores SIGCHLD or waits for every child.
        Err(Errno::CHILD) => true,
        Err(_) => false,
    }
}

pub(super) fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
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

pub(crate) fn can_enter(directory: &Path) -> bool {
    directory.is_dir() && rustix::fs::access(directory, Access::EXEC_OK).is_ok()
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
