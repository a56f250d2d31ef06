//! Differences between two contents of a source, file by file, for review.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use similar::TextDiff;
use walkdir::WalkDir;

use crate::{Digest, FetchError};

/// Size of a text, in bytes, above which only its digest is shown.
const MAX_TEXT: u64 = 1 << 20;

/// Time in which the shortest difference of two texts is looked for.
const DIFF_TIME: Duration = Duration::from_millis(500);

/// A file that differs between two contents of a source. It is serialized with its
/// [`diff`](Self::diff).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileChange {
    /// Path inside the source.
    pub path: String,
    /// The file before; none if it is new.
    pub before: Option<FileVersion>,
    /// The file after; none if it is gone.
    pub after: Option<FileVersion>,
}

/// One version of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileVersion {
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 of the content, in hexadecimal digits.
    pub digest: String,
    /// The file may be executed.
    pub is_executable: bool,
    /// Target of a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Content, if it is a text of at most 1 MiB.
    #[serde(skip)]
    text: Option<String>,
}

impl Serialize for FileChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_struct("FileChange", 4)?;
        members.serialize_field("path", &self.path)?;
        members.serialize_field("before", &self.before)?;
        members.serialize_field("after", &self.after)?;
        members.serialize_field("diff", &self.diff())?;
        members.end()
    }
}

/// A line with the kind of the change and the path, and then the difference.
impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match (&self.before, &self.after) {
            (None, Some(new)) if new.is_executable => "new program",
            (None, _) => "new",
            (_, None) => "deleted",
            _ => "changed",
        };
        write!(f, "{kind}: {}\n{}", self.path, self.diff())
    }
}

impl FileChange {
    /// The files that differ between the directory `before`, if there is one, and `after`.
    ///
    /// # Errors
    ///
    /// [`FetchError`] if a file can't be read.
    pub fn between(before: Option<&Path>, after: &Path) -> Result<Vec<Self>, FetchError> {
        let mut before = before.map(versions).transpose()?.unwrap_or_default();
        let mut after = versions(after)?;
        let paths: BTreeSet<_> = before.keys().chain(after.keys()).cloned().collect();
        let changes = paths.into_iter().map(|path| Self {
            before: before.remove(&path),
            after: after.remove(&path),
            path,
        });
        Ok(changes
            .filter(|change| change.before != change.after)
            .collect())
    }

    /// The change as a unified diff, or in words if a version is no text.
    #[must_use]
    pub fn diff(&self) -> String {
        let mut shown = String::new();
        let (before, after) = (self.before.as_ref(), self.after.as_ref());
        for version in [before, after] {
            if let Some(target) = version.and_then(|version| version.link.as_ref()) {
                shown += &format!("link to {target}\n");
            }
        }
        let is_program = |version: Option<&FileVersion>| version.is_some_and(|v| v.is_executable);
        match (is_program(before), is_program(after)) {
            (false, true) if before.is_some() => shown += "becomes executable\n",
            (true, false) if after.is_some() => shown += "is no longer executable\n",
            _ => {}
        }
        let text = |version: Option<&FileVersion>| match version {
            None => Some(String::new()),
            Some(version) => version.text.clone(),
        };
        let (Some(old), Some(new)) = (text(before), text(after)) else {
            let size = |version: Option<&FileVersion>| match version {
                None => "nothing".to_owned(),
                Some(version) => format!("{} bytes, {}", version.size, version.digest),
            };
            return shown + &format!("no text: {} → {}\n", size(before), size(after));
        };
        let diff = TextDiff::configure()
            .timeout(DIFF_TIME)
            .diff_lines(&*old, &*new);
        shown + &diff.unified_diff().to_string()
    }
}

fn versions(root: &Path) -> Result<BTreeMap<String, FileVersion>, FetchError> {
    let mut versions = BTreeMap::new();
    for entry in WalkDir::new(root).min_depth(1).sort_by_file_name() {
        let entry = entry.map_err(|error| FetchError::Write {
            path: root.to_owned(),
            reason: error.into(),
        })?;
        if entry.file_type().is_dir() {
            continue;
        }
        let path = entry.path();
        let version = version(path).map_err(|reason| FetchError::Write {
            path: path.to_owned(),
            reason,
        })?;
        let inside = path.strip_prefix(root).unwrap_or(path);
        versions.insert(inside.to_string_lossy().into_owned(), version);
    }
    Ok(versions)
}

fn version(path: &Path) -> std::io::Result<FileVersion> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        let target = fs::read_link(path)?.to_string_lossy().into_owned();
        return Ok(FileVersion {
            size: metadata.len(),
            digest: Digest::of(target.as_bytes()).to_string(),
            is_executable: false,
            link: Some(target),
            text: Some(String::new()),
        });
    }
    let content = fs::read(path)?;
    let is_text = content.len() as u64 <= MAX_TEXT && !content.contains(&0);
    Ok(FileVersion {
        size: metadata.len(),
        digest: Digest::of(&content).to_string(),
        is_executable: is_executable(&metadata),
        link: None,
        text: is_text.then(|| String::from_utf8(content).ok()).flatten(),
    })
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_metadata: &fs::Metadata) -> bool {
    false
}
