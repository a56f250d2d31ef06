//! Files that only their owner can read, put in place complete: nobody ever reads half of one.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// A file with this content beside where `file` is to be, whose directory is made. It has to be put in place, and goes
/// if it is not.
///
/// # Errors
///
/// It can't be made there.
pub(crate) fn complete(file: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    let directory = match file.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    create_directory(directory)?;
    // Such a file is created exclusively, and readable for its owner only.
    let mut complete = NamedTempFile::new_in(directory)?;
    complete.write_all(content)?;
    complete.as_file().sync_all()?;
    Ok(complete)
}

/// Replaces `file`, or makes it.
///
/// # Errors
///
/// It can't be made there.
pub(crate) fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    complete(file, content)?.persist(file)?;
    Ok(())
}

/// What the owner, the owner's group and everybody may do with what is at `path`, as the nine bits that `chmod` sets; none
/// if nothing is there.
#[cfg(unix)]
pub(crate) fn permissions(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .map_or(0, |metadata| metadata.permissions().mode() & 0o777)
}

/// Elsewhere there are no such bits.
#[cfg(not(unix))]
pub(crate) fn permissions(_: &Path) -> u32 {
    0
}

#[cfg(unix)]
fn create_directory(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// Elsewhere what is in a user's own directory is private.
#[cfg(not(unix))]
fn create_directory(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)
}
