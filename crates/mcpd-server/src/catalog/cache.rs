//! What scripts said of themselves last time, on disk, so that a warm start runs nothing.
//! A cache: whatever is unreadable, foreign or torn in it is ignored, never trusted, never fatal.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::scan::{Answer, HelpText};
use super::walk::Fingerprint;

/// The answers remembered for one root.
#[derive(Debug)]
pub(crate) struct Cache {
    file: PathBuf,
    entries: BTreeMap<String, Entry>,
}

/// A probe that went well: only those are remembered, so that a mended machine mends its scripts.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    fingerprint: Fingerprint,
    stdout: String,
    stderr: String,
    has_shebang: bool,
}

#[derive(Serialize, Deserialize)]
struct Document {
    mcpd: String,
    root: PathBuf,
    scripts: BTreeMap<String, Entry>,
}

impl Cache {
    /// Opens the cache of `root` under `directory`; an unusable one counts as empty.
    pub(crate) fn open(directory: &Path, root: &Path) -> Self {
        // A hash in the name keeps two roots apart; the path inside says which one it is.
        let hash = Sha256::digest(root.as_os_str().as_encoded_bytes());
        let short = u64::from_be_bytes(*hash.first_chunk().expect("a hash is longer"));
        let file = directory.join(format!("scripts-{short:016x}.json"));
        let entries = fs::read(&file)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Document>(&bytes).ok())
            .filter(|document| document.mcpd == env!("CARGO_PKG_VERSION") && document.root == root)
            .map(|document| document.scripts)
            .unwrap_or_default();
        Self { file, entries }
    }

    /// What the script at `path` printed, if it is still the same file.
    pub(crate) fn get(&self, path: &str, fingerprint: &Fingerprint) -> Option<Answer> {
        let entry = self
            .entries
            .get(path)
            .filter(|entry| entry.fingerprint == *fingerprint)?;
        let help = HelpText {
            stdout: entry.stdout.clone().into(),
            stderr: entry.stderr.clone().into(),
            ..HelpText::default()
        };
        Some(Answer {
            help,
            has_shebang: entry.has_shebang,
        })
    }

    /// Replaces everything remembered of the root; writes only when something is another.
    ///
    /// # Errors
    ///
    /// When the file can't be written; the next start then probes again.
    pub(crate) fn store<'a>(
        &mut self,
        root: &Path,
        answers: impl Iterator<Item = (&'a str, Fingerprint, &'a Answer)>,
    ) -> io::Result<()> {
        let entries: BTreeMap<String, Entry> = answers
            .filter_map(|(path, fingerprint, answer)| {
                let stdout = String::from_utf8(answer.help.stdout.to_vec()).ok()?;
                let stderr = String::from_utf8(answer.help.stderr.to_vec()).ok()?;
                Some((
                    path.to_owned(),
                    Entry {
                        fingerprint,
                        stdout,
                        stderr,
                        has_shebang: answer.has_shebang,
                    },
                ))
            })
            .collect();
        let unchanged = entries.len() == self.entries.len()
            && entries.iter().all(|(path, entry)| {
                self.entries
                    .get(path)
                    .is_some_and(|old| old.fingerprint == entry.fingerprint)
            });
        if unchanged {
            return Ok(());
        }
        self.entries = entries;
        let document = Document {
            mcpd: env!("CARGO_PKG_VERSION").to_owned(),
            root: root.to_owned(),
            scripts: self.entries.clone(),
        };
        let bytes = serde_json::to_vec(&document).map_err(io::Error::other)?;
        write_atomically(&self.file, &bytes)
    }
}

/// A reader sees the old file or the new one, and nobody else's writer is disturbed.
fn write_atomically(file: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let temporary = file.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&temporary, bytes)?;
    fs::rename(&temporary, file).inspect_err(|_| {
        // The rename failed; a stray file would only puzzle people.
        fs::remove_file(&temporary).ok();
    })
}
