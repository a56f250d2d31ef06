//! Trees in the making: files and links of one source, written one by one within limits.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Digest, FetchError};

/// Maximum number of files and links of a source.
const MAX_ENTRIES: usize = 20_000;

/// Maximum size of all files of a source together, in bytes.
pub(crate) const MAX_BYTES: u64 = 256 << 20;

/// A directory that gets the content of a source.
#[derive(Debug)]
pub(crate) struct Staging {
    directory: TempDir,
    /// Written last, so that no file is written through one.
    links: BTreeMap<PathBuf, String>,
    entries: usize,
    bytes: u64,
}

impl Staging {
    /// A new directory inside `parent`, which is made if it is missing.
    pub(crate) fn new_in(parent: &Path) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        Ok(Self {
            directory: tempfile::Builder::new()
                .prefix(".fetching-")
                .tempdir_in(parent)?,
            links: BTreeMap::new(),
            entries: 0,
            bytes: 0,
        })
    }

    /// Counts a file before it is read.
    pub(crate) fn reserve(&mut self, path: &str, size: u64) -> Result<(), FetchError> {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(size);
        if self.entries > MAX_ENTRIES || self.bytes > MAX_BYTES {
            return Err(FetchError::TooLarge {
                path: path.to_owned(),
                entries: MAX_ENTRIES,
                bytes: MAX_BYTES,
            });
        }
        Ok(())
    }

    /// Writes a file.
    pub(crate) fn write(
        &mut self,
        path: &str,
        content: &[u8],
        is_executable: bool,
    ) -> Result<(), FetchError> {
        let target = self.place(path)?;
        let write = || -> io::Result<()> {
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(
                &mut options,
                if is_executable { 0o755 } else { 0o644 },
            );
            options.open(&target)?.write_all(content)
        };
        #[cfg(not(unix))]
        let _ = is_executable;
        write().map_err(|reason| FetchError::Write {
            path: target.clone(),
            reason,
        })
    }

    /// Adds a link. Whether it stays inside is checked with the digest.
    pub(crate) fn link(&mut self, path: &str, target: &[u8]) -> Result<(), FetchError> {
        let place = self.place(path)?;
        let target = std::str::from_utf8(target).map_err(|_| FetchError::Entry {
            path: path.to_owned(),
            reason: "it is a link whose target is no UTF-8",
        })?;
        self.links.insert(place, target.to_owned());
        Ok(())
    }

    /// Path of an entry, which must be inside and no part of a repository.
    fn place(&self, path: &str) -> Result<PathBuf, FetchError> {
        let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !is_git(part);
        let is_inside = !path.contains(['\\', '\0']) && path.split('/').all(is_plain);
        match is_inside {
            true => Ok(self.directory.path().join(path)),
            false => Err(FetchError::Entry {
                path: path.to_owned(),
                reason: "its name leaves the directory, or is one of git's own",
            }),
        }
    }

    /// Ends the directory: writes the links, and computes the digest of `root` inside it.
    pub(crate) fn finish(self, root: &Path) -> Result<(TempDir, PathBuf, Digest), FetchError> {
        for (place, target) in &self.links {
            link(place, target).map_err(|reason| FetchError::Write {
                path: place.clone(),
                reason,
            })?;
        }
        let root = self.directory.path().join(root);
        let digest = Digest::of_tree(&root)?;
        Ok((self.directory, root, digest))
    }

    /// The only directory, if nothing stands beside it.
    pub(crate) fn only_directory(&self) -> Result<PathBuf, FetchError> {
        let top = self.directory.path();
        let has_link = self.links.keys().any(|link| link.parent() == Some(top));
        let find = || -> io::Result<PathBuf> {
            let mut entries = fs::read_dir(top)?;
            let (first, second) = (entries.next().transpose()?, entries.next());
            Ok(match (first, second) {
                (Some(first), None) if first.file_type()?.is_dir() && !has_link => {
                    PathBuf::from(first.file_name())
                }
                _ => PathBuf::new(),
            })
        };
        find().map_err(|reason| FetchError::Write {
            path: top.to_owned(),
            reason,
        })
    }
}

/// Names that a file system may take for `.git`.
fn is_git(part: &str) -> bool {
    let part = part.trim_end_matches(['.', ' ']);
    part.eq_ignore_ascii_case(".git") || part.eq_ignore_ascii_case("git~1")
}

#[cfg(unix)]
fn link(place: &Path, target: &str) -> io::Result<()> {
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent)?;
    }
    std::os::unix::fs::symlink(target, place)
}

#[cfg(not(unix))]
fn link(_place: &Path, _target: &str) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "links are not supported on this system",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_directory_are_refused() {
        let parent = tempfile::tempdir().unwrap();
        let mut staging = Staging::new_in(parent.path()).unwrap();
        for path in [
            "../x",
            "/etc/x",
            "a/../../x",
            ".git/hooks/x",
            "a/.GIT. /x",
            "a\\b",
            "",
        ] {
            let result = staging.write(path, b"", false);
            assert!(matches!(result, Err(FetchError::Entry { .. })), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_through_a_link() {
        let parent = tempfile::tempdir().unwrap();
        let mut staging = Staging::new_in(parent.path()).unwrap();
        staging.link("a", b"..").unwrap();
        staging.write("a/x", b"1", false).unwrap();
        let result = staging.finish(Path::new(""));
        assert!(
            matches!(result, Err(FetchError::Write { .. })),
            "{result:?}"
        );
        assert!(!parent.path().join("x").exists());
    }

    #[test]
    fn too_much_is_refused_before_it_is_read() {
        let parent = tempfile::tempdir().unwrap();
        let mut staging = Staging::new_in(parent.path()).unwrap();
        assert!(staging.reserve("a", MAX_BYTES).is_ok());
        let result = staging.reserve("b", 1);
        assert!(matches!(result, Err(FetchError::TooLarge { .. })));
    }
}
