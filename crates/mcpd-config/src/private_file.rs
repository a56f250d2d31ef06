//! Files that only their owner can read, written atomically: no reader sees half of one.

use std::io;
use std::path::Path;

use mcpd_files::{Access, NewFile, create_private_directory, parent};

/// Writes `content` to a new file beside `file`, and creates the directory.
fn write_beside(file: &Path, content: &[u8]) -> io::Result<NewFile> {
    create_private_directory(parent(file))?;
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

/// Creates `file`, unless there is one. Returns whether it did: of two processes that create it at
/// once, one does.
///
/// # Errors
///
/// The file can't be created there.
pub(crate) fn create(file: &Path, content: &[u8]) -> io::Result<bool> {
    match write_beside(file, content)?.create() {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
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
