//! Private directories, which no other user can enter. Those that a killed process left behind
//! are removed by the next process.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use tempfile::{Builder, TempDir};

/// Directory that lives as long as this process uses it, and is therefore locked.
#[derive(Debug)]
pub(crate) struct LockedDirectory {
    directory: TempDir,
    /// Marks the directory as in use. The system releases the lock however the process ends.
    _lock: Option<File>,
}

impl LockedDirectory {
    /// Creates a directory among the temporary files, with a name that begins with `prefix`, and
    /// removes abandoned ones.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be created.
    pub(crate) fn new(prefix: &str) -> io::Result<Self> {
        let new = loop {
            let directory = create(prefix)?;
            let lock = lock(directory.path())?;
            // Another process may have removed it as abandoned before it was locked.
            if directory.path().exists() {
                break Self {
                    directory,
                    _lock: lock,
                };
            }
        };
        remove_abandoned(prefix, new.path());
        Ok(new)
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Directory that is created on first use.
#[derive(Debug)]
pub(crate) struct LazyDirectory {
    prefix: &'static str,
    lasting: OnceLock<LockedDirectory>,
}

impl LazyDirectory {
    pub(crate) const fn new(prefix: &'static str) -> Self {
        Self {
            prefix,
            lasting: OnceLock::new(),
        }
    }

    /// Returns the path. Blocks.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be created.
    pub(crate) fn path(&self) -> io::Result<&Path> {
        if let Some(lasting) = self.lasting.get() {
            return Ok(lasting.path());
        }
        let lasting = LockedDirectory::new(self.prefix)?;
        Ok(self.lasting.get_or_init(|| lasting).path())
    }
}

/// Creates a directory among the temporary files, with a name that begins with `prefix`.
///
/// # Errors
///
/// Fails if the directory cannot be created.
pub(crate) fn create(prefix: &str) -> io::Result<TempDir> {
    create_in(&mcpd_exec::temporary_directory(), prefix)
}

/// Creates a directory in `parent`, with a name that begins with `prefix`.
///
/// # Errors
///
/// Fails if the directory cannot be created.
pub(crate) fn create_in(parent: &Path, prefix: &str) -> io::Result<TempDir> {
    let mut builder = Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir_in(parent)
}

/// Sets the mode of the file or directory at `path`, to admit other users than the owner.
///
/// # Errors
///
/// Fails if the mode cannot be changed.
#[cfg(unix)]
pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// Does nothing: on this system scripts run as the same user.
#[cfg(not(unix))]
pub(crate) fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn lock(directory: &Path) -> io::Result<Option<File>> {
    let file = match File::open(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match file.lock() {
        // Some file systems have no locks. Abandoned directories stay there.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
        locked => locked.map(|()| Some(file)),
    }
}

/// Directories cannot be opened as files on this system.
#[cfg(not(unix))]
fn lock(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// Removes the unlocked directories beside `own` with this prefix and the same owner.
#[cfg(unix)]
fn remove_abandoned(prefix: &str, own: &Path) {
    let siblings = own.parent().map(Path::read_dir).into_iter().flatten();
    for sibling in siblings.flatten().flatten() {
        let is_named_so = sibling
            .file_name()
            .as_encoded_bytes()
            .starts_with(prefix.as_bytes());
        if is_named_so && let Some(_lock) = lock_abandoned(&sibling.path(), own) {
            // A failed removal leaves the directory as it was.
            std::fs::remove_dir_all(sibling.path()).ok();
        }
    }
}

#[cfg(not(unix))]
fn remove_abandoned(_: &str, _: &Path) {}

/// Locks a directory that belongs to the owner of `own` and is unlocked. Does not follow links.
#[cfg(unix)]
fn lock_abandoned(path: &Path, own: &Path) -> Option<File> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = path.symlink_metadata().ok()?;
    if !metadata.is_dir() || metadata.uid() != own.metadata().ok()?.uid() {
        return None;
    }
    let file = File::open(path).ok()?;
    let opened = file.metadata().ok()?;
    let is_the_same = (opened.dev(), opened.ino()) == (metadata.dev(), metadata.ino());
    (is_the_same && file.try_lock().is_ok()).then_some(file)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn private_dir_removes_abandoned_directories_only() {
        let prefix = format!("mcpd-test-{}-", std::process::id());
        let used = LockedDirectory::new(&prefix).unwrap();
        let left = create(&prefix).unwrap().keep();
        fs::write(left.join("file"), "x").unwrap();
        let link = left.with_file_name(format!("{prefix}link"));
        symlink(used.path(), &link).unwrap();

        let next = LockedDirectory::new(&prefix).unwrap();
        assert!(!left.exists());
        assert!(used.path().exists() && next.path().exists() && link.exists());
        fs::remove_file(link).unwrap();

        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
