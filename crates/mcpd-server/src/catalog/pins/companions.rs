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
use crate::catalog::walk;
use crate::script::fingerprint::Fingerprint;
use crate::support::sync::lock;

/// Names of files of mcpd itself at the top of a root.
const LEFT_OUT_AT_TOP: [&str; 3] = ["mcpd.toml", "mcpd.lock", INSTRUCTIONS];

/// Maximum depth of a file that is noticed: deeper than any program needs.
const MAX_DEPTH: usize = 64;

/// Name in the lock file of what a directory of packages holds, which is not compared.
const PACKAGES: &str = "packages";

/// Names of directories whose content changes by itself.
const LEFT_OUT_DIRECTORIES: [&str; 3] = [".git", ".hg", ".svn"];

/// Names of directories that programs make while they run.
const CACHES: [&str; 2] = ["__pycache__", "node_modules"];

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

/// Place of an entry in the listing.
enum Place {
    /// It is listed, with what is below it.
    Listed,
    /// It is listed alone: a directory that another program maintains.
    Packages,
    LeftOut,
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
        let files = files.filter(|(_, companion)| !is_of_script(&scripts, &companion.file));
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
            let is_script = companion.is_executable || is_of_script(&scripts, &companion.file);
            if !is_script && !approved.contains_key(name) {
                changes.push(format!("new file `{name}`"));
            }
        }
        changes
    }

    fn content(&self, file: &Path) -> String {
        let link = file.read_link().ok();
        if link.is_none() && file.is_dir() {
            return PACKAGES.to_owned();
        }
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
        let mut entries = WalkDir::new(&self.root).max_depth(MAX_DEPTH).into_iter();
        // What cannot be read cannot be read by scripts either, or is noticed with its directory.
        while let Some(entry) = entries.next() {
            let Ok(entry) = entry else { continue };
            let place = self.place(&entry);
            if entry.file_type().is_dir() && !matches!(place, Place::Listed) {
                entries.skip_current_dir();
            }
            if matches!(place, Place::LeftOut) {
                continue;
            }
            let Ok(metadata) = entry.metadata() else {
                listing.is_settled = false;
                continue;
            };
            if metadata.is_dir() && matches!(place, Place::Listed) {
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

    fn place(&self, entry: &DirEntry) -> Place {
        if entry.depth() == 0 {
            return Place::Listed;
        }
        let (path, is_directory) = (entry.path(), entry.file_type().is_dir());
        let name = entry.file_name().to_string_lossy();
        let is_at_top = entry.depth() == 1;
        let is_left_out = match is_directory {
            true => {
                LEFT_OUT_DIRECTORIES.contains(&&*name)
                    || is_at_top && name == RESOURCE_DIRECTORY
                    // Approved file by file.
                    || walk::is_skill(&self.root, path)
            }
            false => {
                is_at_top && LEFT_OUT_AT_TOP.contains(&&*name)
                    // Nothing reads all files of a directory and hidden ones with them.
                    || name.starts_with('.') && (name == ".DS_Store" || walk::is_backup(path))
                    // Sockets and pipes have no content.
                    || !entry.file_type().is_file() && !entry.file_type().is_symlink()
            }
        };
        let unlocked = self
            .unlocked
            .matched_path_or_any_parents(path, is_directory);
        match is_directory
            .then(|| walk::belongs_to_others(path))
            .flatten()
        {
            _ if is_left_out || unlocked.is_ignore() => Place::LeftOut,
            Some(_) if CACHES.contains(&&*name) => Place::LeftOut,
            Some(_) => Place::Packages,
            None => Place::Listed,
        }
    }
}

/// Returns whether a file is a script, or belongs to one: its sidecar, its test cases, or its app,
/// which is approved by itself.
fn is_of_script(scripts: &BTreeSet<PathBuf>, file: &Path) -> bool {
    let text = file.as_os_str().to_string_lossy();
    let subject = text.strip_suffix(TEST_CASES).map(Path::new);
    let is_app = walk::subject_of_app(file).is_some_and(|subject| scripts.contains(&subject));
    is_app || scripts.contains(file) || subject.is_some_and(|subject| scripts.contains(subject))
}

impl Listing {
    fn is_current(&self) -> bool {
        self.directories.iter().all(|(directory, fingerprint)| {
            let metadata = directory.symlink_metadata();
            metadata.is_ok_and(|metadata| Fingerprint::of(&metadata) == *fingerprint)
        })
    }
}
