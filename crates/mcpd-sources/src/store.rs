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

    /// Directory for the content with this digest.
    #[must_use]
    pub fn place(&self, tree: Digest) -> PathBuf {
        self.directory.join(tree.to_string())
    }

    /// The content with this digest, which is computed anew. Files that were added or taken away
    /// are put right; there is none if the store does not have it, or a file has other content.
    ///
    /// # Errors
    ///
    /// [`FetchError::Write`] if it can't be put right.
    pub async fn find(&self, tree: Digest) -> Result<Option<PathBuf>, FetchError> {
        let place = self.place(tree);
        blocking(move || {
            // A link out of it is a change, too.
            let is_same = |place: &Path| Digest::of_tree(place).is_ok_and(|found| found == tree);
            if place.is_dir() && is_same(&place) {
                return Ok(Some(place));
            }
            let spare = spare(&place);
            if !spare.is_dir() || !is_same(&spare) {
                return Ok(None);
            }
            link_tree(&spare, &place).map_err(|reason| FetchError::Write {
                path: place.clone(),
                reason,
            })?;
            Ok(Some(place))
        })
        .await
    }

    /// Keeps what was fetched into this store, and returns its place. Only root can write
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
                let spare = spare(&place);
                remove(&spare)?;
                fs::rename(&root, &spare)?;
                set_writable(&spare, false)?;
                link_tree(&spare, &place)
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

/// A second directory with the same files. A script that runs as root can write beside itself, as
/// Python does, and what was reviewed must not be lost by that.
fn spare(place: &Path) -> PathBuf {
    place.with_extension("spare")
}

/// Makes `to` a directory with the files of `from`, in place of what is there.
fn link_tree(from: &Path, to: &Path) -> io::Result<()> {
    remove(to)?;
    for entry in WalkDir::new(from) {
        let entry = entry?;
        let inside = entry.path().strip_prefix(from).unwrap_or(Path::new(""));
        let place = to.join(inside);
        match entry.file_type().is_dir() {
            true => fs::create_dir(&place)?,
            false => fs::hard_link(entry.path(), &place)?,
        }
    }
    set_writable(to, false)
}

fn remove(place: &Path) -> io::Result<()> {
    if !place.exists() {
        return Ok(());
    }
    set_writable(place, true)?;
    fs::remove_dir_all(place)
}

/// Adds the right of the owner to write, or takes the right from all.
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
