//! Files of a root that are no scripts, but may be read by them: libraries, templates, settings.
//! mcpd cannot know which script reads which, so all count for each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use walkdir::{DirEntry, WalkDir};

use super::digests::FileDigests;
use super::slashed;
use crate::catalog::file::RESOURCE_DIRECTORY;
use crate::catalog::scan::{INSTRUCTIONS, TEST_CASES};
use crate::catalog::walk::{self, MAX_DEPTH};
use crate::script::fingerprint::Fingerprint;
use crate::support::sync::lock;

/// Names of files that no script reads as code, or that an approval itself changes.
const LEFT_OUT: [&str; 4] = ["mcpd.toml", "mcpd.lock", ".DS_Store", "Thumbs.db"];

/// Names of directories whose content changes by itself, besides those of installed packages.
const LEFT_OUT_DIRECTORIES: [&str; 3] = [".git", ".hg", ".svn"];

/// Other files of one root.
#[derive(Debug)]
pub(super) struct Companions {
    root: PathBuf,
    unlocked: Gitignore,
    digests: Arc<FileDigests>,
    /// Files of scripts, and their sidecars.
    scripts: Mutex<BTreeSet<PathBuf>>,
    listing: Mutex<Option<Arc<Listing>>>,
}

/// Files below a root, valid until one of the directories changes.
#[derive(Debug)]
struct Listing {
    directories: Vec<(PathBuf, Fingerprint)>,
    /// By path below the root.
    files: BTreeMap<String, Companion>,
    is_settled: bool,
}

#[derive(Debug)]
struct Companion {
    file: PathBuf,
    is_executable: bool,
}

impl Companions {
    /// Creates the set of files below `root` that match none of the patterns `unlocked`.
    pub(super) fn new(root: &Path, unlocked: &[String], digests: Arc<FileDigests>) -> Self {
        let mut patterns = GitignoreBuilder::new(root);
        for pattern in unlocked {
            // A wrong pattern matches nothing, so it unlocks nothing.
            patterns.add_line(None, pattern).ok();
        }
        Self {
            root: root.to_owned(),
            unlocked: patterns.build().unwrap_or_else(|_| Gitignore::empty()),
            digests,
            scripts: Mutex::default(),
            listing: Mutex::default(),
        }
    }

    /// Sets the files that are scripts, or describe some.
    pub(super) fn set_scripts(&self, scripts: BTreeSet<PathBuf>) {
        *lock(&self.scripts) = scripts;
    }

    /// Returns the content of every file, by its path below the root. Blocks.
    pub(super) fn contents(&self) -> BTreeMap<String, String> {
        let listing = self.current_listing();
        let scripts = lock(&self.scripts).clone();
        let files = listing.files.iter();
        let files = files.filter(|(_, companion)| !scripts.contains(&companion.file));
        files
            .map(|(name, companion)| (name.clone(), self.content(&companion.file)))
            .collect()
    }

    /// Returns how the files differ from those `approved`, one entry for each. Blocks.
    pub(super) fn changes(&self, approved: &BTreeMap<String, String>) -> Vec<String> {
        let listing = self.current_listing();
        let scripts = lock(&self.scripts);
        let mut changes = Vec::new();
        for (name, content) in approved {
            match listing.files.get(name) {
                None => changes.push(format!("deleted file `{name}`")),
                Some(companion) if self.content(&companion.file) != *content => {
                    changes.push(format!("file `{name}`"));
                }
                Some(_) => {}
            }
        }
        for (name, companion) in &listing.files {
            // A new program is a tool to approve, and no part of another one.
            let is_script = companion.is_executable || scripts.contains(&companion.file);
            if !is_script && !approved.contains_key(name) {
                changes.push(format!("new file `{name}`"));
            }
        }
        changes
    }

    fn content(&self, file: &Path) -> String {
        let link = file.read_link().ok();
        match (self.digests.digest(file), link) {
            (Ok(digest), None) => digest.to_string(),
            (Ok(digest), Some(target)) => format!("{digest} at {}", slashed(&target)),
            (Err(_), Some(target)) => format!("link to {}", slashed(&target)),
            (Err(_), None) => "unreadable".to_owned(),
        }
    }

    /// Returns the list of files, walked anew if a directory has changed.
    fn current_listing(&self) -> Arc<Listing> {
        let mut listing = lock(&self.listing);
        if let Some(known) = &*listing
            && known.is_settled
            && known.is_current()
        {
            return Arc::clone(known);
        }
        let new = Arc::new(self.walk());
        *listing = Some(Arc::clone(&new));
        new
    }

    fn walk(&self) -> Listing {
        let now = SystemTime::now();
        let mut listing = Listing {
            directories: Vec::new(),
            files: BTreeMap::new(),
            is_settled: true,
        };
        let entries = WalkDir::new(&self.root)
            .max_depth(MAX_DEPTH)
            .into_iter()
            .filter_entry(|entry| entry.depth() == 0 || self.is_relevant(entry));
        // What cannot be read cannot be read by scripts either, or is noticed with its directory.
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else {
                listing.is_settled = false;
                continue;
            };
            if metadata.is_dir() {
                let fingerprint = Fingerprint::of(&metadata);
                listing.is_settled &= fingerprint.is_settled(now);
                listing.directories.push((entry.into_path(), fingerprint));
            } else {
                let name = entry.path().strip_prefix(&self.root);
                let name = slashed(name.unwrap_or(entry.path()));
                let target = entry.path().metadata();
                let is_executable = target.is_ok_and(|target| {
                    target.is_file() && walk::is_executable(entry.path(), &target)
                });
                let companion = Companion {
                    is_executable,
                    file: entry.into_path(),
                };
                listing.files.insert(name, companion);
            }
        }
        listing
    }

    fn is_relevant(&self, entry: &DirEntry) -> bool {
        let is_directory = entry.file_type().is_dir();
        let name = entry.file_name().to_string_lossy();
        let is_at_top = entry.depth() == 1;
        let is_left_out = match is_directory {
            true => {
                LEFT_OUT_DIRECTORIES.contains(&&*name)
                    || is_at_top && name == RESOURCE_DIRECTORY
                    || walk::belongs_to_others(entry.path()).is_some()
            }
            false => {
                LEFT_OUT.contains(&&*name)
                    || is_at_top && name == INSTRUCTIONS
                    || name.ends_with(TEST_CASES)
                    || walk::is_backup(entry.path())
                    // It counts for the script that it describes.
                    || walk::subject_of_sidecar(entry.path()).is_some()
                    // Sockets and pipes have no content.
                    || !entry.file_type().is_file() && !entry.file_type().is_symlink()
            }
        };
        !is_left_out
            && !self
                .unlocked
                .matched_path_or_any_parents(entry.path(), is_directory)
                .is_ignore()
    }
}

impl Listing {
    fn is_current(&self) -> bool {
        self.directories.iter().all(|(directory, fingerprint)| {
            let metadata = directory.symlink_metadata();
            metadata.is_ok_and(|metadata| Fingerprint::of(&metadata) == *fingerprint)
        })
    }
}
