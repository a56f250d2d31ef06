//! Errors of a walk: the reason that an operator reads, and whether another walk may succeed.

use std::io::ErrorKind;

use super::Reason;

/// Converts an error without its path, which is reported beside the reason.
pub(super) fn unreadable(error: &walkdir::Error) -> Reason {
    Reason::Unreadable(match error.io_error() {
        Some(error) => format!("not readable: {error}"),
        None => error.to_string(),
    })
}

/// Returns whether another scan may succeed: the cause is a shortage of the machine, not a
/// missing entry, a missing permission or a loop of links.
pub(super) fn is_transient(error: &walkdir::Error) -> bool {
    #[cfg(unix)]
    const LOOP: i32 = rustix::io::Errno::LOOP.raw_os_error();
    #[cfg(not(unix))]
    const LOOP: i32 = i32::MAX;
    error.io_error().is_some_and(|error| {
        let is_final = matches!(
            error.kind(),
            ErrorKind::NotFound
                | ErrorKind::PermissionDenied
                | ErrorKind::NotADirectory
                | ErrorKind::InvalidFilename
        );
        !is_final && error.raw_os_error() != Some(LOOP)
    })
}
