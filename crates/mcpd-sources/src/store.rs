//! Store of contents, each a directory named by its digest, so that what was reviewed is served
//! whatever becomes of its source.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use crate::fetch::blocking;
use crate::{Digest, FetchError, Fetched};

/// Directory of contents on this machine; several configurations may share it.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// A store in this directory, which is made with the first content.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    /// The directory of the store.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where the content with this digest lies, or would.
    #[must_use]
    pub fn place(&self, tree: Digest) -> PathBuf {
        self.directory.join(tree.to_string())
    }

    /// The content with this digest, which is computed anew; none if the store does not have it,
    /// or somebody has changed it.
    ///
    /// # Errors
    ///
    /// [`FetchError::Tree`] if the content can't be read.
    pub async fn find(&self, tree: Digest) -> Result<Option<PathBuf>, FetchError> {
        let place = self.place(tree);
        blocking(move || {
            if !place.is_dir() {
                return Ok(None);
            }
            let is_same = Digest::of_tree(&place)? == tree;
            Ok(is_same.then_some(place))
        })
        .await
    }

    /// Keeps what was fetched into this store, and returns its place. Nobody but root can write
    /// there by mistake.
    ///
    /// # Errors
    ///
    /// [`FetchError::Write`] if the content can't be moved.
    pub async fn keep(&self, fetched: Fetched) -> Result<PathBuf, FetchError> {
        let place = self.place(fetched.pin().tree);
        blocking(move || {
            let (directory, root) = fetched.into_parts();
            let keep = || -> io::Result<()> {
                if place.exists() {
                    remove(&place)?;
                }
                fs::rename(&root, &place)?;
                set_writable(&place, false)
            };
            keep().map_err(|reason| FetchError::Write {
                path: place.clone(),
                reason,
            })?;
            drop(directory);
            Ok(place)
        })
        .await
    }
}

fn remove(place: &Path) -> io::Result<()> {
    set_writable(place, true)?;
    fs::remove_dir_all(place)
}

/// Gives everybody's right to write to the owner alone, or to nobody.
#[cfg(unix)]
fn set_writable(place: &Path, is_writable: bool) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    for entry in WalkDir::new(place) {
        let entry = entry?;
        if entry.file_type().is_symlink() {
            continue;
        }
        let mode = entry.metadata()?.permissions().mode();
        let mode = match is_writable {
            true => mode | 0o200,
            false => mode & !0o222,
        };
        fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Read-only files of this system can't be deleted, so they stay as they are.
#[cfg(not(unix))]
fn set_writable(place: &Path, _is_writable: bool) -> io::Result<()> {
    WalkDir::new(place)
        .into_iter()
        .try_for_each(|entry| entry.map(drop))?;
    Ok(())
}
