//! Writing of a client's file: whole or not at all, with its mode and owner, at the end of its
//! symbolic links, and only if it is as it was read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mcpd_files::{Access, NewFile, parent};

/// Suffix of the copy of a file before its last change.
const BACKUP_SUFFIX: &str = ".mcpd-backup";

/// Most symbolic links that are followed to a file.
const MAX_LINKS: usize = 32;

/// Largest file that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Change of a file from one text to another.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    path: &'a Path,
    before: Option<&'a str>,
    after: Option<&'a str>,
    is_private: bool,
    backup: Backup,
}

/// Treatment of the copy of a file, of which there is one: `NAME.mcpd-backup` beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backup {
    /// Makes a copy of the file as it is before the change. A new file has none.
    Replace,
    /// Makes a copy unless there is one: for a change of an entry that is there already, the file
    /// before it had the entry is of more use.
    KeepOld,
    /// Makes none: for a removal, as the copy is what it restores.
    Skip,
}

/// Reason why a file was not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file is not what it was when it was read.
    #[error("`{}` was changed in the meantime; nothing is written, try again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file is not text in UTF-8.
    #[error("`{}` is not text in UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refused it.
    #[error("failed to {action} `{}`", path.display())]
    Io {
        /// Attempt, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// Text of a file; none if there is no such file.
///
/// # Errors
///
/// The file can't be read, or is not text.
pub fn read(path: &Path) -> Result<Option<String>, FileError> {
    let failed = |source| FileError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    };
    match path.metadata() {
        Ok(metadata) if !metadata.is_file() => {
            return Err(failed(io::Error::other("it is no regular file")));
        }
        Ok(metadata) if metadata.len() > MAX_BYTES => {
            return Err(failed(io::Error::other("it is larger than 64 MiB")));
        }
        _ => {}
    }
    match fs::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(FileError::NotText {
                path: path.to_owned(),
            }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Path of the copy of a file before a change, which may not exist. It is beside the file at the
/// end of symbolic links.
#[must_use]
pub fn backup_path(path: &Path) -> PathBuf {
    let target = follow_links(path).unwrap_or_else(|_| path.to_owned());
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(BACKUP_SUFFIX);
    target.with_file_name(name)
}

/// Writes a text to a file that has, or misses, the text that was read; with a backup.
///
/// # Errors
///
/// The file was changed in the meantime, or the operating system refuses it.
pub fn write(path: &Path, before: Option<&str>, after: &str) -> Result<(), FileError> {
    Change::new(path, before, Some(after)).apply()
}

impl<'a> Change<'a> {
    /// Change of a file from the text that was read (none if it was missing) to another; none
    /// deletes it.
    #[must_use]
    pub fn new(path: &'a Path, before: Option<&'a str>, after: Option<&'a str>) -> Self {
        Self {
            path,
            before,
            after,
            is_private: true,
            backup: Backup::Replace,
        }
    }

    /// Makes a new file readable for the user only, as is the default, or for all whom the umask
    /// allows, as a file of a project should be. An existing file keeps its mode.
    #[must_use]
    pub fn set_private(mut self, is_private: bool) -> Self {
        self.is_private = is_private;
        self
    }

    /// Sets what becomes of the copy of the file: it is replaced by default.
    #[must_use]
    pub fn set_backup(mut self, backup: Backup) -> Self {
        self.backup = backup;
        self
    }

    /// Makes the change, and the copy of the file before it.
    ///
    /// # Errors
    ///
    /// The file was changed since it was read, or the operating system refuses it. The file is
    /// then as it was.
    pub fn apply(self) -> Result<(), FileError> {
        let target = follow_links(self.path)?;
        self.require_unchanged(&target)?;
        if let Some(before) = self.before {
            self.back_up(&target, before)?;
        }
        match self.after {
            Some(after) => {
                create_directory(&target)?;
                let file = self.write_beside(&target, &target, after)?;
                // Again, as late as can be: there is no rename that compares.
                self.require_unchanged(&target)?;
                file.replace().map_err(failed_to("replace", &target))
            }
            None if self.before.is_some() => {
                fs::remove_file(&target).map_err(failed_to("delete", &target))
            }
            None => Ok(()),
        }
    }

    fn require_unchanged(&self, target: &Path) -> Result<(), FileError> {
        if read(target)?.as_deref() == self.before {
            Ok(())
        } else {
            Err(FileError::Changed {
                path: target.to_owned(),
            })
        }
    }

    fn back_up(&self, target: &Path, before: &str) -> Result<(), FileError> {
        let backup = backup_path(target);
        let is_made = match self.backup {
            Backup::Replace => true,
            Backup::KeepOld => backup.symlink_metadata().is_err(),
            Backup::Skip => false,
        };
        if !is_made {
            return Ok(());
        }
        let copy = self.write_beside(&backup, target, before)?;
        copy.replace().map_err(failed_to("replace", &backup))
    }

    /// New file beside its place, with the mode and owner of the target, on disk.
    fn write_beside(&self, place: &Path, target: &Path, text: &str) -> Result<NewFile, FileError> {
        let access = match self.is_private {
            true => Access::Owner,
            false => Access::Default,
        };
        let existing = target.metadata().ok();
        NewFile::with_content(place, text.as_bytes(), access.or_of(existing.as_ref()))
            .map_err(failed_to("write a file beside", place))
    }
}

fn failed_to(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    move |source| FileError::Io {
        action,
        path,
        source,
    }
}

fn create_directory(target: &Path) -> Result<(), FileError> {
    let directory = parent(target);
    fs::create_dir_all(directory).map_err(failed_to("create", directory))
}

/// Path of the file at the end of the links, which may not exist: a rename would replace a link.
fn follow_links(path: &Path) -> Result<PathBuf, FileError> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = parent(&target).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(failed_to("follow the links of", path)(io::Error::other(
        "too many symbolic links",
    )))
}
