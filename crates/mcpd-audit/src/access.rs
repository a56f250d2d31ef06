//! Rights of a process to its own files. A program that runs as the same user may change modes:
//! lost rights are restored, and the log notes it.

use std::path::{Path, PathBuf};

/// Restored rights.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Regained {
    /// File or directory.
    pub path: PathBuf,
    /// Mode before the restoration.
    pub mode: u32,
}

/// Restores lost `rights`, bits of a mode, to the file or directory at `path`, if it belongs to
/// the user of this process. Blocks.
pub fn regain(path: &Path, rights: u32) -> Option<Regained> {
    let mode = own_mode(path).filter(|mode| mode & rights != rights)?;
    set_mode(path, mode | rights)
        .inspect_err(|error| {
            let path = path.display();
            tracing::error!(%path, "the server has lost access to one of its own files and failed to restore the mode: {error}");
        })
        .ok()?;
    tracing::warn!(path = %path.display(), "the mode of one of the server's own files was {mode:04o}, perhaps changed by a script; the mode was restored");
    Some(Regained {
        path: path.to_owned(),
        mode,
    })
}

/// Mode of the file at `path`, if it belongs to the user of this process and is no link.
#[cfg(unix)]
#[must_use]
pub fn own_mode(path: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;

    let found = path.symlink_metadata().ok()?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    (is_own && !found.is_symlink()).then(|| found.mode() & 0o7777)
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// Returns `None`: modes exist on Unix only.
#[cfg(not(unix))]
#[must_use]
pub fn own_mode(_: &Path) -> Option<u32> {
    None
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> std::io::Result<()> {
    Ok(())
}
