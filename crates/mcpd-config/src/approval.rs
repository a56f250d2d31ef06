//! Approval of tools: what an operator would approve now, and copies of approved files, which show
//! later what has changed in them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;
use mcpd_exec::Limits;
use mcpd_server::catalog::pins::{PinChange, PinnedEntry, PinnedFile, Pins, Roots};
use mcpd_server::catalog::scan::Scanner;
use serde_json::{Value, json};

use crate::file::File;
use crate::lock_file::LockFile;
use crate::options::{Confinement, Locking};
use crate::{directories, private_file, server};

/// Size of the largest file that is copied, in bytes.
const MAX_COPY: u64 = 1 << 20;

/// Returns everything below `roots` and of the sources in the file that can be approved, without
/// the files that match a pattern of `unlocked`. Scripts that only describe themselves when they
/// run are run with `--help`.
///
/// # Errors
///
/// A faulty value in the file, or a system that runs no processes.
async fn observe(
    file: &File,
    roots: &[PathBuf],
    names: Roots,
    unlocked: Vec<String>,
    confinement: &Confinement,
) -> anyhow::Result<Observed> {
    let executor = server::executor(None, confinement.cgroup.as_deref())?;
    let limits = Limits::default();
    let settings = server::execution_settings(file, confinement, limits, Some(&executor)).await?;
    let roots = roots
        .iter()
        .map(|root| root.canonicalize().unwrap_or(root.clone()));
    let mut scanner = Scanner::new(
        executor,
        settings.policy,
        settings.interpreters,
        roots.collect(),
    );
    let scan = scanner.scan().await;
    let faulty = scan.faulty();
    let faulty = faulty.map(|script| (names.label(&script.root), script.path.to_string()));
    let faulty = faulty.collect();
    let mut pins = scanner.observe(names, unlocked).await;
    if let Some(sources) = server::server_for_sources(confinement, file).await? {
        let sources = sources.start()?;
        sources.catalog_ready().await;
        pins.add_offers(sources.catalog().offers());
        sources.shutdown().await;
    }
    Ok(Observed { pins, faulty })
}

/// Entries that can be approved.
struct Observed {
    pins: Pins,
    /// Roots and paths of scripts that cannot be served.
    faulty: BTreeSet<(String, String)>,
}

/// Differences from a lock file, for review.
#[derive(Debug)]
#[non_exhaustive]
pub struct Review {
    /// The lock file as it is.
    pub lock: LockFile,
    /// Tools, prompts and resources that differ.
    pub entries: Vec<PinChange>,
    /// Other files that differ, each before and after.
    pub files: Vec<[Option<PinnedFile>; 2]>,
    /// Scripts that can't be approved, because they can't be served, by path.
    pub faulty: BTreeSet<String>,
    /// Directories of the roots.
    pub roots: Roots,
    /// Number of entries that could be approved.
    pub total: usize,
    /// Number of other files that could be approved.
    pub total_files: usize,
    /// Tells whether nothing of these roots was approved before.
    pub is_first: bool,
    unlocked: Vec<String>,
}

/// Compares everything below `roots`, and of the sources in the file, with the lock file. `except`
/// has patterns of further files that may change.
///
/// # Errors
///
/// A faulty lock file or value in the file, or a system that runs no processes.
pub async fn review(
    file: &File,
    locking: &Locking,
    roots: &[PathBuf],
    except: &[String],
    confinement: &Confinement,
) -> anyhow::Result<Review> {
    let lock = LockFile::read(file.lock_file(locking, roots))?;
    let names = lock.roots(file);
    let mut unlocked = lock.pins.unlocked.files.clone();
    unlocked.extend(except.iter().cloned());
    unlocked.sort();
    unlocked.dedup();
    let observed = observe(file, roots, names.clone(), unlocked.clone(), confinement).await?;
    let Observed { pins: now, faulty } = observed;
    let canonical = roots.iter().filter_map(|root| root.canonicalize().ok());
    let mut labels: BTreeSet<_> = canonical.map(|root| names.label(&root)).collect();
    let offered = now.entries.iter().filter(|entry| entry.file.is_none());
    labels.extend(offered.map(|entry| entry.root.clone()));
    let is_known = |label: &String| labels.contains(label);
    let is_first = !lock.pins.entries.iter().any(|entry| is_known(&entry.root));
    let mut entries = lock.pins.changed_entries(&now, &labels);
    // It may be mended, and keeps its approval until then.
    entries.retain(|change| match (&change.before, &change.after) {
        (Some(before), None) => !faulty.contains(&(before.root.clone(), before.path.clone())),
        _ => true,
    });
    let faulty = faulty.into_iter().map(|(_, path)| path).collect();
    Ok(Review {
        entries,
        faulty,
        files: lock.pins.changed_files(&now, &labels),
        total: now.entries.len(),
        total_files: now.files.len(),
        lock,
        roots: names,
        is_first,
        unlocked,
    })
}

impl Review {
    /// The differences for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let entries = self.entries.iter().filter_map(|change| {
            let entry = change.entry()?;
            Some(json!({
                "root": entry.root,
                "path": entry.path,
                "kind": entry.kind,
                "change": word(change.before.is_some(), change.after.is_some()),
                "differences": change.differences(),
            }))
        });
        let files = self.files.iter().filter_map(|[before, after]| {
            let file = after.as_ref().or(before.as_ref())?;
            Some(json!({
                "root": file.root,
                "path": file.path,
                "kind": "file",
                "change": word(before.is_some(), after.is_some()),
            }))
        });
        entries.chain(files).collect()
    }

    /// Returns whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.files.is_empty() && !self.has_new_exceptions()
    }

    fn has_new_exceptions(&self) -> bool {
        self.unlocked != self.lock.pins.unlocked.files
    }

    /// Keeps the entries with one of these names, and the other files below their roots.
    ///
    /// # Errors
    ///
    /// No entry that differs has a name.
    pub fn select(&mut self, names: &[String]) -> anyhow::Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let is_called = |change: &PinChange, name: &str| {
            let path = change.entry().map(|entry| entry.path.as_str());
            path.is_some_and(|path| path == name || path.replace(['/', '.'], "_") == name)
        };
        for name in names {
            if !self.entries.iter().any(|change| is_called(change, name)) {
                bail!("approve `{name}`: no entry of that name differs from what is approved");
            }
        }
        let entries = &mut self.entries;
        entries.retain(|change| names.iter().any(|name| is_called(change, name)));
        let entries = entries.iter().filter_map(PinChange::entry);
        let roots: BTreeSet<_> = entries.map(|entry| entry.root.clone()).collect();
        self.files.retain(|[before, after]| {
            let file = after.as_ref().or(before.as_ref());
            file.is_some_and(|file| roots.contains(&file.root))
        });
        Ok(())
    }

    /// Approves all of it, and keeps copies of the files.
    ///
    /// # Errors
    ///
    /// The lock file can't be written.
    pub fn approve_all(mut self) -> anyhow::Result<LockFile> {
        let pins = &mut self.lock.pins;
        for change in self.entries {
            pins.approve(change);
        }
        for change in self.files {
            pins.approve_file(change);
        }
        pins.unlocked.files = self.unlocked;
        self.lock.write()?;
        if let Ok(copies) = ApprovedCopies::open() {
            let pins = &self.lock.pins;
            for entry in &pins.entries {
                copies.keep_entry(&self.roots, entry);
            }
            for file in &pins.files {
                copies.keep_file(&self.roots, file);
            }
        }
        Ok(self.lock)
    }
}

/// Copies of approved files, by the digests of their contents.
#[derive(Debug, Clone)]
pub struct ApprovedCopies(PathBuf);

impl ApprovedCopies {
    /// Opens the copies of this user.
    ///
    /// # Errors
    ///
    /// There is no home directory.
    pub fn open() -> anyhow::Result<Self> {
        Ok(Self(directories::data()?.join("approved")))
    }

    /// Returns the text with this digest, if there is a copy.
    pub fn text(&self, digest: &str) -> Option<String> {
        let is_name = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bytes = fs::read(self.0.join(digest)).ok().filter(|_| is_name)?;
        // It may have been changed since.
        let is_intact = mcpd_sources::Digest::of(&bytes).to_string() == digest;
        String::from_utf8(bytes).ok().filter(|_| is_intact)
    }

    /// Keeps a copy of the file of an entry, if it is small.
    pub fn keep_entry(&self, roots: &Roots, entry: &PinnedEntry) {
        if let Some(file) = &entry.file {
            self.keep(&roots.directory(&entry.root).join(&file.path), &file.sha256);
        }
    }

    /// Keeps a copy of another file, if it is small.
    pub fn keep_file(&self, roots: &Roots, file: &PinnedFile) {
        self.keep(&roots.directory(&file.root).join(&file.path), &file.content);
    }

    /// A copy only serves to show a difference later, so it does not matter if it fails.
    fn keep(&self, file: &Path, digest: &str) {
        let is_small = file.metadata().is_ok_and(|file| file.len() <= MAX_COPY);
        let copy = self.0.join(digest);
        if !is_small || copy.exists() {
            return;
        }
        let Ok(bytes) = fs::read(file) else {
            return;
        };
        if mcpd_sources::Digest::of(&bytes).to_string() == digest {
            private_file::replace(&copy, &bytes).ok();
        }
    }
}

/// Returns the word for a change of something that was there or not, and is there or not.
fn word(was_there: bool, is_there: bool) -> &'static str {
    match (was_there, is_there) {
        (false, _) => "new",
        (_, false) => "gone",
        _ => "changed",
    }
}
