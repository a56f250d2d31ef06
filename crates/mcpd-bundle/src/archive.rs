//! Zip archive with reproducible bytes: entries in the order of their paths, without times and
//! owners, with the execute permission alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek, Write};
use std::path::{Path, PathBuf};

use memchr::memmem;
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::{BundleError, Tree};

/// Maximum length of a path in an archive, in bytes.
const MAX_PATH: usize = 1000;

/// Entries of a bundle, by their paths.
#[derive(Debug, Default)]
pub struct Archive {
    entries: BTreeMap<String, Entry>,
    /// Paths as file systems see them that ignore the case of letters.
    folded: BTreeSet<String>,
}

#[derive(Debug)]
struct Entry {
    content: Content,
    is_executable: bool,
}

#[derive(Debug)]
enum Content {
    Bytes(Vec<u8>),
    File(PathBuf),
}

impl Archive {
    /// Adds bytes as a file.
    ///
    /// # Errors
    ///
    /// The path is unsafe, or there is such a file.
    pub fn add_bytes(
        &mut self,
        path: impl Into<String>,
        bytes: impl Into<Vec<u8>>,
    ) -> Result<(), BundleError> {
        self.add(path.into(), Content::Bytes(bytes.into()), false)
    }

    /// Adds a file, whose content is read when the archive is written.
    ///
    /// # Errors
    ///
    /// The path is unsafe, or there is such a file.
    pub fn add_file(
        &mut self,
        path: impl Into<String>,
        file: impl Into<PathBuf>,
        is_executable: bool,
    ) -> Result<(), BundleError> {
        self.add(path.into(), Content::File(file.into()), is_executable)
    }

    /// Adds the files of a directory below the path `prefix`.
    ///
    /// # Errors
    ///
    /// A path is unsafe, or two differ in the case of letters only.
    pub fn add_tree(&mut self, prefix: &str, tree: &Tree) -> Result<(), BundleError> {
        tree.files.iter().try_for_each(|file| {
            let path = format!("{prefix}/{}", file.path);
            self.add_file(path, &file.file, file.is_executable)
        })
    }

    fn add(
        &mut self,
        path: String,
        content: Content,
        is_executable: bool,
    ) -> Result<(), BundleError> {
        check_path(&path)?;
        if !self.folded.insert(path.to_lowercase()) {
            let reason = "another file has the same path, apart from the case of letters";
            return Err(BundleError::Path { path, reason });
        }
        let entry = Entry {
            content,
            is_executable,
        };
        self.entries.insert(path, entry);
        Ok(())
    }

    /// Paths in their order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Finds a file below the path `prefix` that contains one of these texts, such as a secret.
    /// Returns its path and the position of the text.
    ///
    /// # Errors
    ///
    /// A file can't be read.
    pub fn find_text(
        &self,
        prefix: &str,
        texts: &[&str],
    ) -> Result<Option<(&str, usize)>, BundleError> {
        let entries = self.entries.iter();
        for (path, entry) in entries.filter(|(path, _)| path.starts_with(prefix)) {
            let read;
            let bytes = match &entry.content {
                Content::Bytes(bytes) => bytes,
                Content::File(file) => {
                    read = fs::read(file).map_err(BundleError::of_file("read", file))?;
                    &read
                }
            };
            let mut texts = texts.iter();
            let found = texts.position(|text| memmem::find(bytes, text.as_bytes()).is_some());
            if let Some(position) = found {
                return Ok(Some((path, position)));
            }
        }
        Ok(None)
    }

    /// Writes the archive.
    ///
    /// # Errors
    ///
    /// A file can't be read, or the archive can't be written.
    pub fn write(&self, to: impl Write + Seek) -> Result<(), BundleError> {
        let mut archive = ZipWriter::new(to);
        for (path, entry) in &self.entries {
            let mode = if entry.is_executable { 0o755 } else { 0o644 };
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Deflated)
                .compression_level(Some(6))
                .last_modified_time(DateTime::DEFAULT)
                .unix_permissions(mode);
            archive.start_file(path, options).map_err(of_zip)?;
            match &entry.content {
                Content::Bytes(bytes) => archive.write_all(bytes).map_err(BundleError::Archive)?,
                Content::File(file) => {
                    let mut content =
                        File::open(file).map_err(BundleError::of_file("read", file))?;
                    io::copy(&mut content, &mut archive)
                        .map_err(BundleError::of_file("pack", file))?;
                }
            }
        }
        let mut written = archive.finish().map_err(of_zip)?;
        written.flush().map_err(BundleError::Archive)
    }
}

pub(crate) fn of_zip(error: zip::result::ZipError) -> BundleError {
    BundleError::Archive(error.into())
}

/// SHA-256 of a file, as 64 hexadecimal digits.
///
/// # Errors
///
/// The file can't be read.
pub fn digest(file: &Path) -> Result<String, BundleError> {
    let failed = |error| BundleError::of_file("read", file)(error);
    let mut content = File::open(file).map_err(failed)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match content.read(&mut buffer).map_err(failed)? {
            0 => break,
            length => hash.update(&buffer[..length]),
        }
    }
    Ok(hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Checks that a path stays below the directory that an archive is unpacked to, on every system.
pub(crate) fn check_path(path: &str) -> Result<(), BundleError> {
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    let reason = if path.len() > MAX_PATH {
        "it is too long"
    } else if path.starts_with('/') {
        "it is absolute"
    } else if !path.split('/').all(is_part) {
        "it has an empty part, `.` or `..`"
    } else if path.contains(|char: char| char.is_control() || "\\:*?\"<>|".contains(char)) {
        "it has a character that no name on Windows has"
    } else {
        return Ok(());
    };
    let path = path.to_owned();
    Err(BundleError::Path { path, reason })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn archive(order: &[&str]) -> Vec<u8> {
        let mut archive = Archive::default();
        for path in order {
            archive.add_bytes(*path, path.as_bytes()).unwrap();
        }
        let mut bytes = Cursor::new(Vec::new());
        archive.write(&mut bytes).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn order_of_additions_does_not_change_the_bytes() {
        assert_eq!(archive(&["a", "b/c", "b/d"]), archive(&["b/d", "a", "b/c"]));
        assert_ne!(archive(&["a"]), archive(&["b"]));
    }

    #[test]
    fn time_of_a_file_does_not_change_the_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tool");
        let write = || {
            fs::write(&file, "text").unwrap();
            let mut archive = Archive::default();
            archive.add_file("tool", &file, true).unwrap();
            let mut bytes = Cursor::new(Vec::new());
            archive.write(&mut bytes).unwrap();
            bytes.into_inner()
        };
        let before = write();
        let old = std::time::SystemTime::UNIX_EPOCH;
        File::open(&file).unwrap().set_modified(old).unwrap();
        assert_eq!(before, write());
    }

    #[test]
    fn unsafe_paths_are_refused() {
        let mut archive = Archive::default();
        for path in [
            "", "/a", "../a", "a/../b", "a//b", "a\\b", "C:a", "a/.", "a\nb",
        ] {
            assert!(archive.add_bytes(path, "").is_err(), "{path:?}");
        }
        archive.add_bytes("scripts/Greet", "").unwrap();
        let twice = archive.add_bytes("scripts/greet", "").unwrap_err();
        assert!(twice.to_string().contains("case of letters"), "{twice}");
    }

    #[test]
    fn text_is_found_below_its_prefix_only() {
        let mut archive = Archive::default();
        archive.add_bytes("scripts/a", "one").unwrap();
        archive.add_bytes("server/mcpd", "s3cret").unwrap();
        let find = |prefix| archive.find_text(prefix, &["none", "s3cret"]).unwrap();
        assert_eq!(find("scripts/"), None);
        assert_eq!(find("server/"), Some(("server/mcpd", 1)));
    }
}
