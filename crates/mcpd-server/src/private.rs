//! Directories that no other user can enter. What a process that was killed has left behind, the next one removes.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use tempfile::{Builder, TempDir};

/// A directory that is there for as long as somebody in this process uses it, so that it is for long.
#[derive(Debug)]
pub(crate) struct Lasting {
    directory: TempDir,
    /// Says to other processes that somebody uses it. The system unlocks it when this process is gone, however it ends.
    _lock: Option<File>,
}

impl Lasting {
    /// A new one among the temporary files, whose name begins with `prefix`. Those that nobody uses any more are
    /// removed.
    ///
    /// # Errors
    ///
    /// It can't be made.
    pub(crate) fn new(prefix: &str) -> io::Result<Self> {
        let new = loop {
            let directory = directory(prefix)?;
            let lock = lock(directory.path())?;
            // Between the two, somebody may have taken it for one that nobody uses.
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

/// One that is made when it is needed first.
#[derive(Debug)]
pub(crate) struct Shared {
    prefix: &'static str,
    lasting: OnceLock<Lasting>,
}

impl Shared {
    pub(crate) const fn new(prefix: &'static str) -> Self {
        Self {
            prefix,
            lasting: OnceLock::new(),
        }
    }

    /// Where it is. Blocks.
    ///
    /// # Errors
    ///
    /// It can't be made.
    pub(crate) fn path(&self) -> io::Result<&Path> {
        if let Some(lasting) = self.lasting.get() {
            return Ok(lasting.path());
        }
        let lasting = Lasting::new(self.prefix)?;
        Ok(self.lasting.get_or_init(|| lasting).path())
    }
}

/// A new directory among the temporary files, whose name begins with `prefix`.
///
/// # Errors
///
/// It can't be made.
pub(crate) fn directory(prefix: &str) -> io::Result<TempDir> {
    directory_in(&mcpd_exec::temporary_directory(), prefix)
}

/// A new directory in `parent`, whose name begins with `prefix`.
///
/// # Errors
///
/// It can't be made.
pub(crate) fn directory_in(parent: &Path, prefix: &str) -> io::Result<TempDir> {
    let mut builder = Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir_in(parent)
}

/// Lets others than the owner do this with what is at `path`.
///
/// # Errors
///
/// It can't be changed.
#[cfg(unix)]
pub(crate) fn permit(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// Nobody else runs scripts there.
#[cfg(not(unix))]
pub(crate) fn permit(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn lock(directory: &Path) -> io::Result<Option<File>> {
    let file = match File::open(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match file.lock() {
        // There are file systems without locks. What is left behind there stays.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
        locked => locked.map(|()| Some(file)),
    }
}

/// A directory can't be opened as a file.
#[cfg(not(unix))]
fn lock(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// Removes the directories beside `own` with this prefix and the same owner that nobody has locked.
#[cfg(unix)]
fn remove_abandoned(prefix: &str, own: &Path) {
    let siblings = own.parent().map(Path::read_dir).into_iter().flatten();
    for sibling in siblings.flatten().flatten() {
        let is_named_so = sibling
            .file_name()
            .as_encoded_bytes()
            .starts_with(prefix.as_bytes());
        if is_named_so && let Some(_lock) = abandoned(&sibling.path(), own) {
            // What can't be removed stays, as it would without us.
            std::fs::remove_dir_all(sibling.path()).ok();
        }
    }
}

#[cfg(not(unix))]
fn remove_abandoned(_: &str, _: &Path) {}

/// The lock of a directory that belongs to the owner of `own` and that nobody has locked. Links are not followed.
#[cfg(unix)]
fn abandoned(path: &Path, own: &Path) -> Option<File> {
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
    fn what_a_process_left_behind_is_removed_and_nothing_else() {
        let prefix = format!("mcpd-test-{}-", std::process::id());
        let used = Lasting::new(&prefix).unwrap();
        let left = directory(&prefix).unwrap().keep();
        fs::write(left.join("file"), "x").unwrap();
        let link = left.with_file_name(format!("{prefix}link"));
        symlink(used.path(), &link).unwrap();

        let next = Lasting::new(&prefix).unwrap();
        assert!(!left.exists());
        assert!(used.path().exists() && next.path().exists() && link.exists());
        fs::remove_file(link).unwrap();

        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
