//! Regular files, opened for reading. Other files are never opened: a named pipe would block
//! until a writer comes, and opening a device may have side effects.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens the file at `path`; returns `None` if it is no regular file.
///
/// # Errors
///
/// Fails if it does not exist, or cannot be opened.
pub(crate) fn open(path: &Path) -> io::Result<Option<File>> {
    if !path.metadata()?.is_file() {
        return Ok(None);
    }
    let mut options = OpenOptions::new();
    options.read(true);
    // A pipe may have replaced it in the meantime.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(path)?;
    let is_regular = file.metadata()?.is_file();
    Ok(is_regular.then_some(file))
}
