//! Files that only their owner can read, written atomically: no reader sees half of one.

use std::fs;
use std::io;
use std::path::Path;

use mcpd_files::{Access, NewFile, parent};

/// Writes `content` to a new file beside `file`, and creates the directory.
///
/// # Errors
///
/// The file can't be created there.
pub(crate) fn write_beside(file: &Path, content: &[u8]) -> io::Result<NewFile> {
    create_directory(parent(file))?;
    NewFile::with_content(file, content, Access::Owner)
}

/// Replaces or creates `file`.
///
/// # Errors
///
/// The file can't be created there.
pub fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    write_beside(file, content)?.replace()
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
