//! Files that a case expects its script to write: compared after the call, and then as before it.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use mcpd_files::{Access, NewFile};

use crate::compare::diff;

/// Maximum size of a file that is compared, in bytes.
const MAX_SIZE: u64 = 16 << 20;

/// Files of one call. When it is dropped, each has the content from before, or is gone again.
#[derive(Debug)]
pub(crate) struct WrittenFiles<'a> {
    expected: &'a BTreeMap<String, String>,
    before: BTreeMap<&'a str, (PathBuf, Before)>,
}

/// File before the call.
#[derive(Debug)]
enum Before {
    Absent,
    Content(Box<Original>),
    /// It is left alone.
    Unreadable,
}

impl Before {
    /// Returns whether a call has written the file, which has this content now. Two changes may
    /// have the same time.
    fn is_changed(&self, file: &Path, content: &[u8]) -> bool {
        match self {
            Self::Content(original) => {
                let before = original.metadata.modified().ok();
                original.content != content || before != modification_time(file)
            }
            Self::Absent | Self::Unreadable => true,
        }
    }
}

/// File as it was.
#[derive(Debug)]
struct Original {
    /// The file behind all links.
    target: PathBuf,
    content: Vec<u8>,
    metadata: Metadata,
}

impl Original {
    fn read(file: &Path) -> io::Result<Self> {
        let target = file.canonicalize()?;
        let metadata = target.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let content = read(&target)?;
        Ok(Self {
            target,
            content,
            metadata,
        })
    }

    /// Puts the file back, whole or not at all, unless it is as it was. A link that the script has
    /// put in its place is replaced, and not followed.
    fn restore(&self) -> io::Result<()> {
        let target = &self.target;
        let is_file = target.symlink_metadata().is_ok_and(|now| now.is_file());
        if is_file && read(target).is_ok_and(|now| now == self.content) {
            return Ok(());
        }
        NewFile::with_content(target, &self.content, Access::Of(&self.metadata))?.replace()
    }
}

impl<'a> WrittenFiles<'a> {
    /// Remembers the files as they are before the call.
    pub(crate) fn before(root: &Path, expected: &'a BTreeMap<String, String>) -> Self {
        let remembered = expected.keys().map(|path| {
            let file = root.join(path);
            let before = match Original::read(&file) {
                Ok(original) => Before::Content(Box::new(original)),
                Err(_) if file.symlink_metadata().is_err() => Before::Absent,
                Err(_) => Before::Unreadable,
            };
            (path.as_str(), (file, before))
        });
        Self {
            before: remembered.collect(),
            expected,
        }
    }

    /// Differences between the written files and the expected ones.
    pub(crate) fn differences(&self) -> Vec<String> {
        let compared = self.before.iter().filter_map(|(path, (file, before))| {
            let expected = self.expected.get(*path)?;
            match read(file) {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => Some(format!(
                    "the file `{path}` is no regular file, or larger than {MAX_SIZE} bytes"
                )),
                Ok(content) if before.is_changed(file, &content) => {
                    (content != expected.as_bytes()).then(|| {
                        let diff = diff(expected, &String::from_utf8_lossy(&content));
                        format!("the file `{path}` differs:\n{diff}")
                    })
                }
                _ => Some(format!("the file `{path}` was not written")),
            }
        });
        compared.collect()
    }

    /// Texts of all files; none if one was not written, or is no text.
    pub(crate) fn contents(&self) -> Option<BTreeMap<String, String>> {
        let files = self.before.iter();
        let contents = files.map(|(path, (file, before))| {
            let content = read(file).ok()?;
            let is_written = before.is_changed(file, &content);
            let text = String::from_utf8(content).ok().filter(|_| is_written)?;
            Some(((*path).to_owned(), text))
        });
        contents.collect()
    }
}

impl Drop for WrittenFiles<'_> {
    fn drop(&mut self) {
        for (file, before) in self.before.values() {
            let restored = match before {
                Before::Content(original) => original.restore(),
                Before::Absent => remove(file),
                Before::Unreadable => Ok(()),
            };
            if let Err(error) = restored {
                let file = file.display();
                tracing::error!("`{file}` is as the call has left it: {error}");
            }
        }
    }
}

/// Reads a file that a script may have replaced by anything: a FIFO would block, a device never
/// end.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > MAX_SIZE {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut content = Vec::new();
    let file = fs::File::open(file)?;
    file.take(MAX_SIZE).read_to_end(&mut content)?;
    Ok(content)
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn modification_time(file: &Path) -> Option<SystemTime> {
    file.metadata().and_then(|file| file.modified()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_compared_and_restored() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("old"), "before").unwrap();
        fs::write(at("same"), "1").unwrap();
        let expected = ["new", "old", "same", "missing"];
        let expected = expected
            .map(|name| (name.to_owned(), "1".to_owned()))
            .into();
        let files = WrittenFiles::before(root.path(), &expected);
        fs::write(at("new"), "1").unwrap();
        fs::write(at("old"), "2").unwrap();
        let differences = files.differences();
        assert_eq!(differences[0], "the file `missing` was not written");
        assert_eq!(
            differences[1],
            "the file `old` differs:\n@@ -1 +1 @@\n-1\n+2"
        );
        assert_eq!(differences[2], "the file `same` was not written");
        assert_eq!(differences.len(), 3);
        drop(files);
        assert!(!at("new").exists());
        assert_eq!(fs::read(at("old")).unwrap(), b"before");
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_named_and_not_accepted() {
        let root = tempfile::tempdir().unwrap();
        let expected = [("device".to_owned(), "1".to_owned())].into();
        let files = WrittenFiles::before(root.path(), &expected);
        std::os::unix::fs::symlink("/dev/zero", root.path().join("device")).unwrap();
        assert!(files.differences()[0].contains("no regular file"));
        assert_eq!(files.contents(), None);
    }

    #[cfg(unix)]
    #[test]
    fn link_in_place_of_a_file_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::write(at("old"), "before").unwrap();
        fs::write(at("elsewhere"), "not of the test").unwrap();
        let expected = [("old".to_owned(), "1".to_owned())].into();
        let files = WrittenFiles::before(root.path(), &expected);
        fs::remove_file(at("old")).unwrap();
        std::os::unix::fs::symlink(at("elsewhere"), at("old")).unwrap();
        drop(files);
        assert_eq!(fs::read(at("elsewhere")).unwrap(), b"not of the test");
        assert_eq!(fs::read(at("old")).unwrap(), b"before");
        assert!(at("old").symlink_metadata().unwrap().is_file());
    }
}
