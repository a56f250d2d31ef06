//! Lock file: which commit and which content each source has, for review in version control.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

use crate::{Digest, LockError, Source};

const VERSION: u32 = 1;

/// Content of a lock file; its text is sorted by address, so that equal locks are equal bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    sources: BTreeMap<Source, Pin>,
}

/// Content that a source is pinned to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pin {
    /// Full id of the commit, in lower case; none for an archive.
    pub commit: Option<String>,
    /// Digest of the directory: [`Digest::of_tree`].
    pub tree: Digest,
}

impl Pin {
    /// Pin of an archive.
    #[must_use]
    pub const fn archive(tree: Digest) -> Self {
        Self { commit: None, tree }
    }

    /// Pin of a repository at a commit, a full id: 40 or 64 hexadecimal digits in lower case.
    #[must_use]
    pub const fn git(commit: String, tree: Digest) -> Self {
        Self {
            commit: Some(commit),
            tree,
        }
    }
}

impl Lock {
    /// Pin of a source; none if the source was never reviewed.
    #[must_use]
    pub fn get(&self, source: &Source) -> Option<&Pin> {
        self.sources.get(source)
    }

    /// Pins a source, in place of its former pin.
    ///
    /// # Errors
    ///
    /// [`LockError::Entry`] if a repository has no full commit id, or an archive has one.
    pub fn insert(&mut self, source: Source, pin: Pin) -> Result<(), LockError> {
        let reason = match (&source, pin.commit.as_deref()) {
            (Source::Git { .. }, Some(commit)) if is_commit(commit) => None,
            (Source::Git { .. }, _) => Some("a repository needs the full id of a commit"),
            (Source::Archive { .. }, Some(_)) => Some("an archive has no commit"),
            (Source::Archive { .. }, None) => None,
        };
        if let Some(reason) = reason {
            return Err(entry_error(&source.to_string(), reason));
        }
        self.sources.insert(source, pin);
        Ok(())
    }

    /// Drops the pins of sources that are no longer wanted, and returns whether there were any.
    pub fn retain(&mut self, wanted: impl Fn(&Source) -> bool) -> bool {
        let before = self.sources.len();
        self.sources.retain(|source, _| wanted(source));
        self.sources.len() < before
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "version")]
    _version: u32,
    #[serde(default)]
    source: Vec<Entry>,
}

#[derive(Deserialize)]
struct Format {
    version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: String,
    commit: Option<String>,
    tree: String,
}

impl FromStr for Lock {
    type Err = LockError;

    /// Reads the text of a lock file.
    ///
    /// # Errors
    ///
    /// [`LockError`] if the text is no TOML, has another format, or an entry is wrong or double.
    fn from_str(text: &str) -> Result<Self, LockError> {
        let Format { version } = toml::from_str(text)?;
        if version != VERSION {
            return Err(LockError::Version { found: version });
        }
        let file: File = toml::from_str(text)?;
        let mut lock = Self::default();
        for Entry { url, commit, tree } in file.source {
            let wrong = |error: crate::SourceError| entry_error(&url, &error.to_string());
            let source: Source = url.parse().map_err(wrong)?;
            let tree = tree.parse().map_err(wrong)?;
            if lock.get(&source).is_some() {
                return Err(entry_error(&url, "it is locked twice; leave one of them"));
            }
            lock.insert(source, Pin { commit, tree })?;
        }
        Ok(lock)
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut entries: Vec<_> = self
            .sources
            .iter()
            .map(|(source, pin)| (source.to_string(), pin))
            .collect();
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut tables = ArrayOfTables::new();
        for (url, pin) in entries {
            let mut table = Table::new();
            table.insert("url", value(url));
            if let Some(commit) = &pin.commit {
                table.insert("commit", value(commit));
            }
            table.insert("tree", value(pin.tree.to_string()));
            tables.push(table);
        }
        let mut document = DocumentMut::new();
        document.insert("version", value(i64::from(VERSION)));
        if !tables.is_empty() {
            document.insert("source", Item::ArrayOfTables(tables));
        }
        write!(formatter, "{document}")
    }
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn entry_error(source: &str, reason: &str) -> LockError {
    LockError::Entry {
        source_text: source.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        text.parse().unwrap()
    }

    #[test]
    fn the_order_of_pins_does_not_change_the_text() {
        let first = source("git+https://a.example/x?rev=main");
        let second = source("git+https://b.example/x");
        let pin = Pin::git("0123456789".repeat(4), Digest::of(b""));
        let (mut one, mut other) = (Lock::default(), Lock::default());
        one.insert(first.clone(), pin.clone()).unwrap();
        one.insert(second.clone(), pin.clone()).unwrap();
        other.insert(second, pin.clone()).unwrap();
        other.insert(first.clone(), pin.clone()).unwrap();
        assert_eq!(one.to_string(), other.to_string());
        let read: Lock = one.to_string().parse().unwrap();
        assert_eq!(read, one);
        assert_eq!(read.get(&first), Some(&pin));
        let mut read = read;
        assert!(read.retain(|source| *source == first));
        assert!(!read.retain(|source| *source == first));
        assert_eq!(read.to_string().matches("[[source]]").count(), 1);
    }

    #[test]
    fn wrong_locks_are_refused_with_the_reason() {
        let tree = Digest::of(b"");
        let entry = |more: &str| {
            format!("version = 1\n[[source]]\nurl = \"git+https://a.example/x\"\n{more}\n")
        };
        let commit = format!("commit = \"{}\"\ntree = \"{tree}\"", "a".repeat(40));
        let double = format!(
            "{}{}",
            entry(&commit),
            entry(&commit).replace("version = 1\n", "")
        );
        for (text, reason) in [
            ("version = 2\nfuture = true".to_owned(), "format 2"),
            (entry(&format!("tree = \"{tree}\"")), "full id"),
            (
                entry(&format!("commit = \"main\"\ntree = \"{tree}\"")),
                "full id",
            ),
            (
                entry(&commit.replace(&tree.to_string(), "12")),
                "64 hexadecimal",
            ),
            (entry(&format!("{commit}\nmore = 1")), "more"),
            (double, "twice"),
        ] {
            let error = text.parse::<Lock>().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
