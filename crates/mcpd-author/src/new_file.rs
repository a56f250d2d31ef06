//! Files of authors that are created, and never overwritten.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

/// Creates a file with this text, and the directories above it. Nothing is left of a file that
/// could not be written whole.
///
/// # Errors
///
/// The system refuses, or something is there: [`ErrorKind::AlreadyExists`].
pub(crate) fn create(path: &Path, text: &str, is_executable: bool) -> io::Result<()> {
    let parent = path.parent();
    if let Some(parent) = parent.filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if is_executable {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o777);
    }
    #[cfg(not(unix))]
    let _ = is_executable;
    let mut file = options.open(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let what = "the file exists; remove it first, or choose another name";
            io::Error::new(ErrorKind::AlreadyExists, what)
        }
        _ => error,
    })?;
    file.write_all(text.as_bytes()).inspect_err(|_| {
        fs::remove_file(path).ok();
    })
}
