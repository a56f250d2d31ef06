//! Files that a case expects its script to write: compared after the call, and then as before it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::compare::diff;

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
    Content(Vec<u8>, Option<SystemTime>),
    /// It is left alone.
    Unreadable,
}

impl<'a> WrittenFiles<'a> {
    /// Remembers the files as they are before the call.
    pub(crate) fn before(root: &Path, expected: &'a BTreeMap<String, String>) -> Self {
        let remembered = expected.keys().map(|path| {
            let file = root.join(path);
            let before = match fs::read(&file) {
                Ok(content) => Before::Content(content, modification_time(&file)),
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
            let is_untouched =
                matches!(before, Before::Content(_, time) if *time == modification_time(file));
            match fs::read(file) {
                Ok(content) if !is_untouched => (content != expected.as_bytes()).then(|| {
                    let diff = diff(expected, &String::from_utf8_lossy(&content));
                    format!("the file `{path}` differs:\n{diff}")
                }),
                _ => Some(format!("the file `{path}` was not written")),
            }
        });
        compared.collect()
    }

    /// Content of the written files, as far as it is text.
    pub(crate) fn contents(&self) -> BTreeMap<String, String> {
        let files = self.before.iter();
        let contents = files.filter_map(|(path, (file, _))| {
            Some(((*path).to_owned(), fs::read_to_string(file).ok()?))
        });
        contents.collect()
    }
}

impl Drop for WrittenFiles<'_> {
    fn drop(&mut self) {
        for (file, before) in self.before.values() {
            // An error leaves what the call has written.
            match before {
                Before::Content(content, _) => fs::write(file, content).ok(),
                Before::Absent => fs::remove_file(file).ok(),
                Before::Unreadable => None,
            };
        }
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
}
