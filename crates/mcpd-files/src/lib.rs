//! Atomic replacement of files: whole or not at all, with the mode and owner that they are to have.
//!
//! ```
//! use mcpd_files::{Access, NewFile};
//!
//! # fn main() -> std::io::Result<()> {
//! # let directory = tempfile::tempdir()?;
//! # let file = directory.path().join("settings.toml");
//! NewFile::with_content(&file, b"level = 1\n", Access::Default)?.replace()?;
//! assert_eq!(std::fs::read(&file)?, b"level = 1\n");
//! # Ok(()) }
//! ```
//!
//! A new file is written beside its place and renamed into it, so no reader sees half of it, and
//! one that is never finished is removed on drop. Symbolic links are not followed: a link in the
//! place is replaced.
//!
//! Every function blocks.

#![forbid(unsafe_code)]

use std::fs::{File, Metadata};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// Users that may read and write a new file.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Access<'a> {
    /// Its owner alone.
    Owner,
    /// Those whom the umask of the process allows, as for any new file.
    Default,
    /// Those of an existing file, whose mode and owner it gets.
    Of(&'a Metadata),
}

impl<'a> Access<'a> {
    /// Returns the access of the existing file, if there is one, and `self` otherwise.
    #[must_use]
    pub fn or_of(self, existing: Option<&'a Metadata>) -> Self {
        existing.map_or(self, Access::Of)
    }
}

/// New file beside its place, which it takes when it is finished.
#[derive(Debug)]
pub struct NewFile {
    file: NamedTempFile,
    target: PathBuf,
}

impl NewFile {
    /// Creates an empty file in the directory of `target`.
    ///
    /// # Errors
    ///
    /// No such file can be created there.
    pub fn beside(target: &Path, access: Access<'_>) -> io::Result<Self> {
        let mut builder = Builder::new();
        builder.prefix(".mcpd-");
        if matches!(access, Access::Default) {
            #[cfg(unix)]
            // The system takes the bits of the umask away.
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        }
        let file = builder.tempfile_in(parent(target))?;
        if let Access::Of(existing) = access {
            keep_access(file.as_file(), existing)?;
        }
        let target = target.to_owned();
        Ok(Self { file, target })
    }

    /// Creates a file with this content, on disk, in the directory of `target`.
    ///
    /// # Errors
    ///
    /// No such file can be created there.
    pub fn with_content(target: &Path, content: &[u8], access: Access<'_>) -> io::Result<Self> {
        let mut new = Self::beside(target, access)?;
        new.file.write_all(content)?;
        new.file.as_file().sync_all()?;
        Ok(new)
    }

    /// Path of the file before it takes its place.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Opens the file to write into it.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn open(&self) -> io::Result<File> {
        self.file.reopen()
    }

    /// Takes the place of a file, or a free place.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn replace(self) -> io::Result<()> {
        let Self { file, target } = self;
        file.as_file().sync_all()?;
        file.persist(&target)?;
        sync_directory(parent(&target));
        Ok(())
    }

    /// Takes a free place.
    ///
    /// # Errors
    ///
    /// The place is not free ([`AlreadyExists`](io::ErrorKind::AlreadyExists)), or the system
    /// refuses.
    pub fn create(self) -> io::Result<()> {
        let Self { file, target } = self;
        file.as_file().sync_all()?;
        file.persist_noclobber(&target)?;
        sync_directory(parent(&target));
        Ok(())
    }
}

/// Returns the directory of a file.
#[must_use]
pub fn parent(file: &Path) -> &Path {
    file.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Creates a directory that only its owner can enter, and those above it that are missing.
///
/// # Errors
///
/// The system refuses.
#[cfg(unix)]
pub fn create_private_directory(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// Creates a directory, which on this system is private below that of its user.
///
/// # Errors
///
/// The system refuses.
#[cfg(not(unix))]
pub fn create_private_directory(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)
}

/// Gives a new file the mode and owner of another.
#[cfg(unix)]
fn keep_access(new: &File, existing: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};

    let own = new.metadata()?;
    if (own.uid(), own.gid()) != (existing.uid(), existing.gid()) {
        fchown(new, Some(existing.uid()), Some(existing.gid()))?;
    }
    // After the owner: a change of it takes bits away.
    new.set_permissions(std::fs::Permissions::from_mode(existing.mode() & 0o7777))
}

/// A new file has the access list of its directory; nothing else can be copied with the standard
/// library alone.
#[cfg(not(unix))]
fn keep_access(new: &File, existing: &Metadata) -> io::Result<()> {
    new.set_permissions(existing.permissions())
}

/// Makes a rename last; a file system that can't sync a directory does without.
#[cfg(unix)]
fn sync_directory(directory: &Path) {
    if let Ok(directory) = File::open(directory) {
        directory.sync_all().ok();
    }
}

#[cfg(not(unix))]
fn sync_directory(_directory: &Path) {}

#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "a test may fail where it stands")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn new_file_has_the_access_that_was_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let replace = |content: &[u8], access: Access<'_>| {
            let new = NewFile::with_content(&path, content, access).unwrap();
            new.replace().unwrap();
            assert_eq!(fs::read(&path).unwrap(), content);
            mode(&path)
        };
        assert_eq!(replace(b"a", Access::Owner), 0o600);
        let plain = directory.path().join("plain");
        fs::write(&plain, "").unwrap();
        assert_eq!(replace(b"b", Access::Default), mode(&plain));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o2751)).unwrap();
        let existing = path.metadata().unwrap();
        assert_eq!(replace(b"c", Access::Owner.or_of(Some(&existing))), 0o2751);
        assert_eq!(replace(b"d", Access::Owner.or_of(None)), 0o600);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
    }

    #[test]
    fn unfinished_file_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "before").unwrap();
        let taken = NewFile::with_content(&path, b"after", Access::Owner).unwrap();
        let error = taken.create().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        drop(NewFile::beside(&path, Access::Owner).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }

    #[test]
    fn link_is_replaced_and_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let [path, target] = ["link", "target"].map(|name| directory.path().join(name));
        fs::write(&target, "target").unwrap();
        symlink(&target, &path).unwrap();
        let new = NewFile::with_content(&path, b"new", Access::Default).unwrap();
        new.replace().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "target");
        assert!(!path.is_symlink());
    }
}
