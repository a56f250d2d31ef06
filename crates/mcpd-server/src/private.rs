//! Directories that no other user can enter.

use std::io;

use tempfile::{Builder, TempDir};

/// A new one among the temporary files, whose name begins with `prefix`.
///
/// # Errors
///
/// It can't be made.
pub(crate) fn directory(prefix: &str) -> io::Result<TempDir> {
    let mut builder = Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir()
}
