//! Windows, compiled with care but not tested. Blocking threads of the runtime read and write the
//! pipes.

use std::fs::Metadata;
use std::io;
use std::os::windows::io::OwnedHandle;
use std::path::Path;
use std::process::ExitStatus;

use tokio::fs::File;

use super::Fault;

/// Our end of a pipe.
pub(crate) type Pipe = OwnedHandle;
pub(crate) type Reader = File;
pub(crate) type Writer = File;

pub(crate) fn reader(end: Pipe) -> io::Result<Reader> {
    Ok(File::from_std(end.into()))
}

pub(crate) fn writer(end: Pipe) -> io::Result<Writer> {
    Ok(File::from_std(end.into()))
}

/// Does nothing: the size of a pipe is fixed when it is made.
pub(crate) fn widen(_pipe: &File, _bytes: usize) {}

/// Reads nothing: anonymous pipes can't be non-blocking, so the runtime reads everything.
pub(crate) fn read_at_once(_pipe: &Reader, _buffer: &mut Vec<u8>) -> io::Result<usize> {
    Err(io::ErrorKind::WouldBlock.into())
}

/// Writes nothing: anonymous pipes can't be non-blocking, so the runtime writes everything.
pub(crate) fn first_write(_stdin: &Pipe, _bytes: &[u8]) -> io::Result<usize> {
    Err(io::ErrorKind::WouldBlock.into())
}

pub(crate) fn file_size_limit() -> u64 {
    u64::MAX
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

pub(crate) fn may_execute(_: &Path) -> bool {
    true
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
