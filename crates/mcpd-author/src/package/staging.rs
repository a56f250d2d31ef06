//! Files that are written beside their places, and take them when they are finished.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use mcpd_files::{Access, NewFile};

/// New file that is to take its place, and is gone if it never does.
#[derive(Debug)]
pub struct Staged {
    file: NewFile,
    target: PathBuf,
}

impl Staged {
    /// Creates an empty file beside `target`.
    ///
    /// # Errors
    ///
    /// No file can be created there.
    pub fn beside(target: &Path) -> anyhow::Result<Self> {
        let file = NewFile::beside(target, Access::Default);
        Ok(Self {
            file: file.with_context(|| format!("write `{}`", target.display()))?,
            target: target.to_owned(),
        })
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
        self.file.open()
    }

    /// Puts the finished file in its place, readable as other new files are.
    ///
    /// # Errors
    ///
    /// The place is not free and nothing there is to be replaced, or the system refuses.
    pub fn persist(self, replaces: bool) -> anyhow::Result<()> {
        let Self { file, target } = self;
        let placed = match replaces {
            true => file.replace(),
            false => file.create(),
        };
        placed.with_context(|| format!("write `{}`", target.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn file_takes_its_place_only_when_it_may() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("x.mcpb");
        fs::write(&target, "before").unwrap();
        let count = || fs::read_dir(directory.path()).unwrap().count();

        let staged = Staged::beside(&target).unwrap();
        fs::write(staged.path(), "after").unwrap();
        assert_eq!(count(), 2);
        assert!(staged.persist(false).is_err(), "the place is not free");
        assert_eq!((count(), &*fs::read(&target).unwrap()), (1, &b"before"[..]));

        let staged = Staged::beside(&target).unwrap();
        fs::write(staged.path(), "after").unwrap();
        staged.persist(true).unwrap();
        assert_eq!((count(), &*fs::read(&target).unwrap()), (1, &b"after"[..]));
    }
}
