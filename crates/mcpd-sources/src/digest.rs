//! SHA-256 of bytes and of whole directories.

use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use sha2::{Digest as _, Sha256};
use walkdir::WalkDir;

use crate::{SourceError, TreeError};

/// A SHA-256 digest, written as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Digest of bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Digest of all that is in a directory: names, content, executable bits and links.
    ///
    /// Times, owners and other permissions don't count. Nothing outside the directory is read.
    ///
    /// # Errors
    ///
    /// [`TreeError`] if something can't be read, a link leaves the directory, or an entry is
    /// neither a file, a directory nor a link.
    pub fn of_tree(root: &Path) -> Result<Self, TreeError> {
        let mut hash = Sha256::new();
        for entry in WalkDir::new(root).min_depth(1).sort_by_file_name() {
            let entry = entry.map_err(|error| read_error(root, error))?;
            let path = entry.path();
            let kind_error = || TreeError::Kind {
                path: path.to_owned(),
            };
            let inside = path.strip_prefix(root).map_err(|_| kind_error())?;
            let name = inside.to_str().ok_or_else(kind_error)?;
            let kind = entry.file_type();
            if kind.is_dir() {
                field(&mut hash, b"directory", name.as_bytes());
            } else if kind.is_symlink() {
                let target = fs::read_link(path).map_err(|reason| at(path, reason))?;
                if !stays_inside(inside, &target) {
                    return Err(TreeError::LinkOut {
                        path: path.to_owned(),
                    });
                }
                field(&mut hash, b"link", name.as_bytes());
                field(
                    &mut hash,
                    b"target",
                    target.to_str().ok_or_else(kind_error)?.as_bytes(),
                );
            } else if kind.is_file() {
                let kind: &[u8] = if is_executable(path)? {
                    b"program"
                } else {
                    b"file"
                };
                field(&mut hash, kind, name.as_bytes());
                field(&mut hash, b"content", &file(path)?.0);
            } else {
                return Err(kind_error());
            }
        }
        Ok(Self(hash.finalize().into()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl FromStr for Digest {
    type Err = SourceError;

    /// Reads 64 hexadecimal digits.
    ///
    /// # Errors
    ///
    /// [`SourceError::Digest`] if the text is anything else.
    fn from_str(text: &str) -> Result<Self, SourceError> {
        let error = || SourceError::Digest {
            value: text.to_owned(),
        };
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(error());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let digits = &text[2 * index..2 * index + 2];
            *byte = u8::from_str_radix(digits, 16).map_err(|_| error())?;
        }
        Ok(Self(bytes))
    }
}

/// Lengths keep two fields from being taken for others with the same bytes.
fn field(hash: &mut Sha256, kind: &[u8], value: &[u8]) {
    for part in [kind, value] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
}

fn file(path: &Path) -> Result<Digest, TreeError> {
    let mut hash = Sha256::new();
    let mut reader = fs::File::open(path).map_err(|reason| at(path, reason))?;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match reader
            .read(&mut buffer)
            .map_err(|reason| at(path, reason))?
        {
            0 => return Ok(Digest(hash.finalize().into())),
            count => hash.update(&buffer[..count]),
        }
    }
}

#[cfg(unix)]
fn is_executable(path: &Path) -> Result<bool, TreeError> {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = fs::symlink_metadata(path).map_err(|reason| at(path, reason))?;
    Ok(metadata.permissions().mode() & 0o100 != 0)
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on Unix")]
fn is_executable(_path: &Path) -> Result<bool, TreeError> {
    Ok(false)
}

/// A link may go up as far as the root, and never through a name before it goes up: that name
/// could be a link itself.
fn stays_inside(link: &Path, target: &Path) -> bool {
    let mut depth = link.components().count() - 1;
    let mut named = false;
    target.components().all(|component| match component {
        Component::CurDir => true,
        Component::Normal(_) => {
            named = true;
            true
        }
        Component::ParentDir if !named && depth > 0 => {
            depth -= 1;
            true
        }
        _ => false,
    })
}

fn at(path: &Path, reason: io::Error) -> TreeError {
    TreeError::Read {
        path: path.to_owned(),
        reason,
    }
}

fn read_error(root: &Path, error: walkdir::Error) -> TreeError {
    let path = error.path().map_or_else(|| root.to_owned(), PathBuf::from);
    at(&path, error.into())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn tree() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("sub")).expect("a directory");
        fs::write(directory.path().join("sub/tool"), "one").expect("a file");
        directory
    }

    #[test]
    fn each_change_that_matters_changes_the_digest() {
        let directory = tree();
        let path = directory.path();
        let tool = path.join("sub/tool");
        let mut seen = vec![Digest::of_tree(path).unwrap()];
        assert_eq!(
            seen[0],
            Digest::of_tree(tree().path()).unwrap(),
            "places don't count"
        );
        let mut step = |change: &dyn Fn()| {
            change();
            let digest = Digest::of_tree(path).unwrap();
            assert!(!seen.contains(&digest));
            seen.push(digest);
        };
        step(&|| fs::write(&tool, "two").unwrap());
        step(&|| fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap());
        step(&|| fs::rename(&tool, path.join("sub/other")).unwrap());
        step(&|| symlink("sub/other", path.join("link")).unwrap());
        step(&|| fs::create_dir(path.join("empty")).unwrap());
    }

    #[test]
    fn links_out_of_the_tree_are_refused() {
        for target in ["/etc/passwd", "..", "../../x", "other/../../x"] {
            let directory = tree();
            symlink(target, directory.path().join("sub/link")).unwrap();
            let result = Digest::of_tree(directory.path());
            let refused = matches!(result, Err(TreeError::LinkOut { .. }));
            assert_eq!(refused, target != "..", "{target}: {result:?}");
        }
    }

    #[test]
    fn a_digest_of_bytes_is_that_of_sha256sum() {
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), text);
        assert_eq!(text.parse(), Ok(Digest::of(b"abc")));
        assert!("é".repeat(32).parse::<Digest>().is_err());
    }
}
