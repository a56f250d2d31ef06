//! Files that only their owner can read, written atomically: no reader sees half of one.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes `content` to a temporary file beside `file`, and creates the directory. The file is
/// removed on drop unless it is persisted.
///
/// # Errors
///
/// The file can't be created there.
pub fn write_temporary(file: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
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

/// Replaces or creates `file`.
///
/// # Errors
///
/// The file can't be created there.
pub fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    write_temporary(file, content)?.persist(file)?;
    Ok(())
}

/// Permission bits of `path` for owner, group and others, as `chmod` sets them; none
/// if there is no such file.
#[cfg(unix)]
pub fn permissions(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .map_or(0, |metadata| metadata.permissions().mode() & 0o777)
}

/// This system has no such bits.
#[cfg(not(unix))]
pub fn permissions(_: &Path) -> u32 {
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

/// On this system a user's own directory is private.
#[cfg(not(unix))]
fn create_directory(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)
}
