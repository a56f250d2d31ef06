//! Static file, served unchanged. The conditions under which it was found are checked again when it
//! is read: a regular file, inside its root, of a size that fits into a message.

use std::fmt;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcpd_scriptspec::ScriptPath;
use sha2::{Digest as _, Sha256};

use crate::limits::admission::MAX_FILE_SIZE;
use crate::message::apps::APP_TYPE;
use crate::script::fingerprint::Fingerprint;
use crate::support::random_id::hex;
use crate::support::regular_file;
use crate::support::regular_file::real_path;

/// Directory of a root whose files are resources.
pub(super) const RESOURCE_DIRECTORY: &str = "resources";

/// A file below [`RESOURCE_DIRECTORY`], an app beside a script, or a part of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StaticFile {
    path: ScriptPath,
    role: FileRole,
    file: PathBuf,
    root: PathBuf,
    size: u64,
    fingerprint: Fingerprint,
    /// SHA-256 of the only content that is served, if there is one.
    content: Option<Arc<str>>,
}

/// Role of a static file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileRole {
    /// Listed as a resource.
    Resource,
    /// Page of the tool at this path.
    App(ScriptPath),
    /// Part of a skill.
    Skill,
}

/// Reason for which a file is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// No readable file is there, or not any more.
    #[error("{0}")]
    NotThere(&'static str),
    #[error("larger than {MAX_FILE_SIZE} bytes")]
    TooLarge,
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                Self::NotThere("the file no longer exists")
            }
            _ => Self::Io(error),
        }
    }
}

impl StaticFile {
    pub(super) fn new(
        path: ScriptPath,
        file: PathBuf,
        root: PathBuf,
        size: u64,
        fingerprint: Fingerprint,
    ) -> Self {
        Self {
            path,
            role: FileRole::Resource,
            file,
            root,
            size,
            fingerprint,
            content: None,
        }
    }

    /// Makes it the page of the tool at `tool`.
    pub(super) fn into_app(mut self, tool: ScriptPath) -> Self {
        self.role = FileRole::App(tool);
        self
    }

    /// Makes it part of a skill.
    pub(super) fn into_skill(mut self) -> Self {
        self.role = FileRole::Skill;
        self
    }

    /// Returns whether it is part of a skill.
    pub(super) fn is_of_skill(&self) -> bool {
        self.role == FileRole::Skill
    }

    /// Path of the tool whose page it is, if it is one.
    pub(crate) fn app_of(&self) -> Option<&ScriptPath> {
        match &self.role {
            FileRole::App(tool) => Some(tool),
            FileRole::Resource | FileRole::Skill => None,
        }
    }

    /// Returns the file with the digest of the only content that is served.
    pub(super) fn with_content(&self, digest: Arc<str>) -> Self {
        Self {
            content: Some(digest),
            ..self.clone()
        }
    }

    /// Path below the root, [`RESOURCE_DIRECTORY`] and the suffix of an app included.
    pub(crate) fn path(&self) -> &ScriptPath {
        &self.path
    }

    /// Location in the file system.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Root below which it lies.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn uri(&self) -> String {
        match &self.role {
            FileRole::Resource => self.path.uri(),
            FileRole::App(tool) => tool.app_uri(),
            FileRole::Skill => self.path.uri().replacen("mcpd://skills/", "skill://", 1),
        }
    }

    /// Path below [`RESOURCE_DIRECTORY`], or of the tool of an app.
    pub(crate) fn name(&self) -> &str {
        if let Some(tool) = self.app_of() {
            return tool.as_str();
        }
        let path = self.path.as_str();
        path.split_once('/').map_or(path, |(_, name)| name)
    }

    /// Size at the time of the scan, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Media type by the name of the file; its content is not inspected.
    pub(crate) fn mime_type(&self) -> Option<String> {
        if self.app_of().is_some() {
            return Some(APP_TYPE.to_owned());
        }
        mime_guess::from_path(&self.file)
            .first_raw()
            .map(str::to_owned)
    }

    /// Returns whether this is `before` with another content.
    pub(super) fn is_edited(&self, before: &Self) -> bool {
        self.fingerprint != before.fingerprint
    }

    /// Reads the file. Blocks.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub(crate) fn read(&self) -> Result<Vec<u8>, ReadError> {
        let file = regular_file::open(&self.file)?;
        let file = file.ok_or(ReadError::NotThere("not a regular file"))?;
        if !real_path(&file, &self.file)?.starts_with(&self.root) {
            return Err(ReadError::NotThere("outside of its root"));
        }
        let mut bytes = Vec::new();
        // The file may grow while it is read.
        file.take(MAX_FILE_SIZE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_FILE_SIZE {
            return Err(ReadError::TooLarge);
        }
        if let Some(content) = &self.content
            && **content != hex(&Sha256::digest(&bytes))
        {
            return Err(ReadError::NotThere("changed since it was approved"));
        }
        Ok(bytes)
    }
}

impl fmt::Display for StaticFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.path, self.file.display())
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::catalog::walk::walk;

    /// Creates a root with one file, and finds that file.
    fn scan_one_file(content: &[u8]) -> (tempfile::TempDir, StaticFile) {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("resources/sub/a b.md");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        let mut files = walk(&root.path().canonicalize().unwrap(), None).files;
        (root, files.remove(0))
    }

    #[test]
    fn static_file_is_described_by_name_and_size() {
        let (_root, file) = scan_one_file(b"# Hi");
        assert_eq!(file.uri(), "mcpd://resources/sub/a%20b.md");
        assert_eq!(file.name(), "sub/a b.md");
        assert_eq!(file.mime_type().as_deref(), Some("text/markdown"));
        assert_eq!(file.size(), 4);
        assert_eq!(file.read().unwrap(), b"# Hi");
    }

    #[track_caller]
    fn check(replace: impl Fn(&Path), refused: &str) {
        let (_root, file) = scan_one_file(b"x");
        fs::remove_file(&file.file).unwrap();
        replace(&file.file);
        let error = file.read().unwrap_err().to_string();
        assert!(error.contains(refused), "{error}");
    }

    #[test]
    fn static_file_that_was_replaced_is_not_read() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("a b.md"), "secret").unwrap();
        check(|_| {}, "no longer exists");
        check(|file| symlink("/etc/hostname", file).unwrap(), "outside");
        check(|file| symlink("/etc", file).unwrap(), "not a regular file");
        check(
            |file| symlink("/dev/zero", file).unwrap(),
            "not a regular file",
        );
        check(
            |file| {
                File::create(file)
                    .unwrap()
                    .set_len(MAX_FILE_SIZE + 1)
                    .unwrap()
            },
            "larger",
        );
        check(
            |file| {
                // The directory around it becomes a link to another place.
                fs::remove_dir(file.parent().unwrap()).unwrap();
                symlink(outside.path(), file.parent().unwrap()).unwrap();
            },
            "outside",
        );
    }
}
