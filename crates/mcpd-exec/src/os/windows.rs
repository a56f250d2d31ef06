//! Windows, compiled with care but not tested.
//!
//! There is no job object yet: only the process itself is killed, and at once, since there is no TERM. What it started
//! lives on. Pipes are read and written by the runtime's blocking threads.

use std::fs::Metadata;
use std::io;
use std::os::windows::io::OwnedHandle;
use std::os::windows::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ExitStatus};
use std::time::Duration;

use tokio::fs::File;

use super::Fault;

pub(crate) type Reader = File;
pub(crate) type Writer = File;

pub(crate) fn reader(end: impl Into<OwnedHandle>) -> io::Result<Reader> {
    Ok(File::from_std(end.into().into()))
}

pub(crate) fn writer(end: impl Into<OwnedHandle>) -> io::Result<Writer> {
    Ok(File::from_std(end.into().into()))
}

/// Anonymous pipes can't be told not to block, so the runtime writes everything.
pub(crate) fn first_write(_stdin: &mut ChildStdin, _bytes: &[u8]) -> io::Result<usize> {
    Err(io::ErrorKind::WouldBlock.into())
}

pub(crate) fn configure(command: &mut std::process::Command) {
    const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
    const CREATE_NO_WINDOW: u32 = 0x0800_0000;
    command.creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW);
}

pub(crate) fn terminate(leader: &mut Child) {
    kill(leader);
}

pub(crate) fn kill(leader: &mut Child) {
    // Fails if it has ended already.
    leader.kill().ok();
}

pub(crate) fn has_exited(leader: &mut Child) -> bool {
    !matches!(leader.try_wait(), Ok(None))
}

pub(crate) fn signal(_status: ExitStatus) -> Option<i32> {
    None
}

pub(crate) fn core_dumped(_status: ExitStatus) -> bool {
    false
}

pub(crate) fn is_executable(metadata: &Metadata) -> bool {
    metadata.is_file()
}

pub(crate) fn can_enter(directory: &Path) -> bool {
    directory.is_dir()
}

pub(crate) fn fault(error: &io::Error) -> Fault {
    const ERROR_SHARING_VIOLATION: i32 = 32;
    const ERROR_BAD_EXE_FORMAT: i32 = 193;
    const ERROR_FILENAME_EXCED_RANGE: i32 = 206;
    const ERROR_CANT_RESOLVE_FILENAME: i32 = 1921;
    match (error.kind(), error.raw_os_error()) {
        (_, Some(ERROR_SHARING_VIOLATION)) => Fault::Busy,
        (_, Some(ERROR_CANT_RESOLVE_FILENAME)) => Fault::Loop,
        (_, Some(ERROR_BAD_EXE_FORMAT)) => Fault::NotAProgram,
        (_, Some(ERROR_FILENAME_EXCED_RANGE)) => Fault::TooLarge,
        (io::ErrorKind::NotFound, _) => Fault::Missing,
        (io::ErrorKind::NotADirectory, _) => Fault::NotDirectory,
        (io::ErrorKind::PermissionDenied, _) => Fault::Denied,
        (io::ErrorKind::OutOfMemory, _) => Fault::Exhausted,
        _ => Fault::Other,
    }
}

/// Becomes ready from time to time, for somebody to look.
#[derive(Debug)]
pub(crate) struct ExitWatch;

impl ExitWatch {
    pub(crate) fn new(_child: &Child) -> io::Result<Self> {
        Ok(Self)
    }

    /// Resolves when the process may have ended. Cancel safe.
    pub(crate) async fn exited(&mut self) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
