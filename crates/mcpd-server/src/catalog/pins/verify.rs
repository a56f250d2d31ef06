//! Comparison of what a scan finds with what is approved: before a script is probed, before it
//! joins the catalog, and before each run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::companions::Companions;
use super::digests::FileDigests;
use super::observe::{
    InterpreterSearch, files_of, instructions_entry, script_entry, script_file, static_entry,
};
use super::{HeldBack, Locked, PinKind, PinnedScript};
use crate::catalog::file::StaticFile;
use crate::catalog::scan::{INSTRUCTIONS, InspectedFile, ScannedScript};
use crate::catalog::walk::Candidate;
use crate::policy::Policy;
use crate::script::start_command::StartCommand;
use crate::script::version_check::VersionCheck;
use crate::support::sync::lock;

/// Check against the lock file, with cached digests.
#[derive(Debug)]
pub(crate) struct LockCheck {
    locked: Arc<Locked>,
    digests: Arc<FileDigests>,
    roots: Mutex<BTreeMap<PathBuf, Arc<RootCheck>>>,
    /// Tells whether interpreters are unknown, because nothing may be run.
    is_static: bool,
}

/// Check of one root.
#[derive(Debug)]
struct RootCheck {
    label: String,
    companions: Companions,
    approved: BTreeMap<String, String>,
    /// Files of approved scripts, by path below the root.
    scripts: BTreeMap<String, PinnedScript>,
}

impl RootCheck {
    /// Returns how the files that are no scripts differ. Blocks.
    fn companion_changes(&self) -> Vec<String> {
        self.companions.changes(&self.approved)
    }
}

impl LockCheck {
    pub(crate) fn new(locked: Arc<Locked>, is_static: bool) -> Self {
        Self {
            locked,
            digests: Arc::default(),
            roots: Mutex::default(),
            is_static,
        }
    }

    /// Rule that it applies.
    pub(crate) fn locked(&self) -> &Arc<Locked> {
        &self.locked
    }

    /// Returns the same check for a scan that runs nothing.
    pub(crate) fn static_only(&self) -> Self {
        Self::new(Arc::clone(&self.locked), true)
    }

    /// Returns the check of the root at `root`, unless that was reviewed as a whole.
    fn root(&self, root: &Path) -> Option<Arc<RootCheck>> {
        let Locked { pins, roots } = &*self.locked;
        if roots.is_reviewed(root) {
            return None;
        }
        let mut known = lock(&self.roots);
        if let Some(check) = known.get(root) {
            return Some(Arc::clone(check));
        }
        let label = roots.label(root);
        let files = pins.files.iter().filter(|file| file.root == label);
        let entries = pins.entries.iter().filter(|entry| entry.root == label);
        let scripts = entries.filter_map(|entry| entry.file.as_ref());
        let scripts: BTreeMap<_, _> = scripts
            .map(|file| (file.path.clone(), file.clone()))
            .collect();
        let unlocked = &pins.unlocked.files;
        let companions = Companions::new(root, unlocked, Arc::clone(&self.digests));
        // Before the first script is inspected, what belongs to one is no new file already.
        companions.set_scripts(scripts.keys().map(|path| root.join(path)).collect());
        let check = Arc::new(RootCheck {
            companions,
            approved: files
                .map(|file| (file.path.clone(), file.content.clone()))
                .collect(),
            scripts,
            label,
        });
        known.insert(root.to_owned(), Arc::clone(&check));
        Some(check)
    }

    /// Returns why a script must not even be asked with `--help`: it would run. Blocks.
    pub(crate) fn refuse_probe(
        &self,
        candidate: &Candidate,
        start_command: &StartCommand,
        policy: &Policy,
    ) -> Option<HeldBack> {
        let root = self.root(&candidate.root)?;
        let effective = policy.effective_policy(&candidate.path, candidate.directory(), None);
        let search = InterpreterSearch {
            start_command: start_command.clone(),
            path: effective.variable("PATH"),
            directory: candidate.root.clone(),
        };
        let path = candidate.file.strip_prefix(&candidate.root);
        let path = super::slashed(path.unwrap_or(&candidate.file));
        let changes = match root.scripts.get(&path) {
            None => Vec::new(),
            Some(approved) => {
                let own = self.file_changes(candidate, &search, approved);
                let changes: Vec<_> = own.into_iter().chain(root.companion_changes()).collect();
                if changes.is_empty() {
                    return None;
                }
                changes
            }
        };
        Some(HeldBack {
            kind: PinKind::Tool,
            path: candidate.path.to_string(),
            file: candidate.file.clone(),
            changes,
        })
    }

    fn file_changes(
        &self,
        candidate: &Candidate,
        search: &InterpreterSearch,
        approved: &PinnedScript,
    ) -> Vec<String> {
        match script_file(candidate, search, &self.digests) {
            Ok(mut now) => {
                if self.is_static {
                    now.interpreter.clone_from(&approved.interpreter);
                }
                approved.changes(&now)
            }
            Err(error) => vec![format!("content ({error})")],
        }
    }

    /// Tells the check which files are scripts, so that they do not count as other files.
    pub(crate) fn note_scripts(&self, inspected: &[(PathBuf, Arc<InspectedFile>)]) {
        let mut scripts: BTreeMap<&Path, BTreeSet<PathBuf>> = BTreeMap::new();
        for (root, inspected) in inspected {
            scripts.entry(root).or_default().extend(files_of(inspected));
        }
        for (path, mut scripts) in scripts {
            if let Some(root) = self.root(path) {
                // An approved script keeps its place, even while it is faulty.
                scripts.extend(root.scripts.keys().map(|script| path.join(script)));
                root.companions.set_scripts(scripts);
            }
        }
    }

    /// Returns how the files that are no scripts differ below each root. Blocks.
    pub(crate) fn check_companions<'a>(
        &self,
        roots: impl IntoIterator<Item = &'a PathBuf>,
    ) -> BTreeMap<PathBuf, Vec<String>> {
        let roots: BTreeSet<_> = roots.into_iter().collect();
        let checks = roots.into_iter();
        let checks = checks.filter_map(|path| Some((path, self.root(path)?)));
        checks
            .map(|(path, root)| (path.clone(), root.companion_changes()))
            .collect()
    }

    /// Compares a script, below a root whose other files differ by `companion_changes`. An approved
    /// one will be compared again before each run. Blocks.
    pub(crate) fn judge(
        &self,
        candidate: &Candidate,
        script: &ScannedScript,
        companion_changes: &[String],
    ) -> Option<HeldBack> {
        let served = script.served.as_ref()?;
        let root = self.root(&script.root)?;
        let now = script_entry(root.label.clone(), served);
        let held_back = |changes| {
            Some(HeldBack {
                kind: now.kind,
                path: now.path.clone(),
                file: script.file.clone(),
                changes,
            })
        };
        let entries = &self.locked.pins.entries;
        let approved = entries.iter().find(|entry| entry.key() == now.key());
        let Some((approved, file)) = approved.and_then(|one| Some((one, one.file.as_ref()?)))
        else {
            return held_back(Vec::new());
        };
        let mut approved = approved.clone();
        approved.file = None;
        let search = InterpreterSearch::of(served);
        let differences = approved.differences(&now).into_iter();
        let mut changes: Vec<_> = differences.map(|difference| difference.member).collect();
        changes.extend(self.file_changes(candidate, &search, file));
        changes.extend_from_slice(companion_changes);
        if !changes.is_empty() {
            return held_back(changes);
        }
        served.script.version_check.get_or_init(|| {
            Arc::new(ApprovedVersion {
                root,
                digests: Arc::clone(&self.digests),
                candidate: candidate.clone(),
                search,
                approved: file.clone(),
            })
        });
        None
    }

    /// Returns a static file with the content that it must have, or why it is held back. Blocks.
    pub(crate) fn judge_file(&self, file: &StaticFile) -> Result<Option<StaticFile>, HeldBack> {
        let Some(root) = self.root(file.root()) else {
            return Ok(None);
        };
        let held_back = |changes| HeldBack {
            kind: PinKind::Resource,
            path: file.path().to_string(),
            file: file.file().to_owned(),
            changes,
        };
        let digest = self.digests.digest(file.file());
        let digest = digest.map_err(|error| held_back(vec![format!("content ({error})")]))?;
        let now = static_entry(root.label.clone(), file, &digest);
        match self.locked.pins.changes(&now) {
            Some(changes) => Err(held_back(changes)),
            None => Ok(Some(file.with_content(digest))),
        }
    }

    /// Returns why the instructions of a root are held back.
    pub(crate) fn judge_instructions(&self, root: &Path, text: &str) -> Option<HeldBack> {
        let check = self.root(root)?;
        let now = instructions_entry(check.label.clone(), text);
        let changes = self.locked.pins.changes(&now)?;
        Some(HeldBack {
            kind: PinKind::Instructions,
            path: INSTRUCTIONS.to_owned(),
            file: root.join(INSTRUCTIONS),
            changes,
        })
    }
}

/// Approval of one script.
#[derive(Debug)]
struct ApprovedVersion {
    root: Arc<RootCheck>,
    digests: Arc<FileDigests>,
    candidate: Candidate,
    search: InterpreterSearch,
    approved: PinnedScript,
}

impl VersionCheck for ApprovedVersion {
    fn changes(&self) -> Vec<String> {
        let mut changes = match script_file(&self.candidate, &self.search, &self.digests) {
            Ok(now) => self.approved.changes(&now),
            Err(error) => vec![format!("content ({error})")],
        };
        changes.extend(self.root.companion_changes());
        changes
    }
}
