//! From a directory to what its scripts say of themselves: walk, read what describes itself, ask the rest with
//! `--help`. A script that can't be read or asked is part of the result, with the reason as a diagnostic.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use futures_util::stream::{self, StreamExt as _};
use indexmap::IndexMap;
use mcpd_exec::Executor;

use super::file::StaticFile;
use super::memory::Memory;
use super::walk::{self, Candidate, Reason, Rejected, Walked};
use crate::interpreter::Interpreters;
use crate::policy::Policy;
use crate::sync;

mod examiner;
mod probe;
mod reading;
mod script;

use examiner::Examiner;
pub(crate) use examiner::{Answer, Looked};
pub use probe::{HelpText, PROBE_OUTPUT_LIMIT, PROBE_TIME_LIMIT};
pub use script::ScannedScript;

/// A file that can't even be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnusableFile {
    /// Where it is.
    pub file: PathBuf,
    /// Why, as a sentence fragment.
    pub reason: String,
}

/// Everything found under the roots, in the order of the roots and then of the paths.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Scan {
    /// The scripts, faulty ones included.
    pub scripts: Vec<Arc<ScannedScript>>,
    /// What is served as it is.
    pub(crate) files: Vec<Arc<StaticFile>>,
    /// Files that should be served and can't be.
    pub unusable: Vec<UnusableFile>,
    /// Something could not be seen or asked for a passing reason: another look is worth while.
    pub(crate) is_passing: bool,
}

impl Scan {
    /// Whether nothing is different from `other`, so that what was made of it is still right.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        let same_scripts = self.scripts.len() == other.scripts.len()
            && self
                .scripts
                .iter()
                .zip(&other.scripts)
                .all(|(ours, theirs)| Arc::ptr_eq(ours, theirs));
        same_scripts && self.files == other.files && self.unusable == other.unusable
    }

    /// The scripts that a fault keeps from being served.
    pub fn faulty(&self) -> impl Iterator<Item = &Arc<ScannedScript>> {
        self.scripts.iter().filter(|script| script.spec.is_none())
    }
}

/// Scans roots, again and again; looks only at the files that are new or changed.
#[derive(Debug)]
pub struct Scanner {
    examiner: Examiner,
    roots: Vec<PathBuf>,
    memory: Option<Arc<Mutex<Memory>>>,
    /// By the root's place and the file: one file may be under two roots.
    known: IndexMap<(usize, PathBuf), Arc<Looked>>,
}

impl Scanner {
    /// A scanner of `roots`: absolute paths of directories or single scripts, links among them followed
    /// anew by each scan. Scripts are asked under the policy they are called under, and started by `interpreters` where
    /// they are no programs.
    #[must_use]
    pub fn new(
        executor: Executor,
        policy: Policy,
        interpreters: Interpreters,
        roots: Vec<PathBuf>,
    ) -> Self {
        Self {
            examiner: Examiner::new(executor, policy, interpreters),
            roots,
            memory: None,
            known: IndexMap::new(),
        }
    }

    /// Asks no script again that has answered before, in another process even.
    #[cfg(feature = "database")]
    #[must_use]
    pub fn database(mut self, database: crate::Database) -> Self {
        let memory = Memory::new(database, self.roots.clone());
        self.memory = Some(Arc::new(Mutex::new(memory)));
        self
    }

    /// Asks and runs scripts so from now on, as if none had been seen before.
    pub(crate) fn configure(&mut self, policy: Policy, interpreters: Interpreters) {
        self.examiner.configure(policy, interpreters);
        self.known.clear();
    }

    /// Looks at every root now.
    ///
    /// # Cancel safety
    ///
    /// Dropped halfway, probes still running are killed and the next scan starts over.
    pub async fn scan(&mut self) -> Scan {
        let mut scan = Scan::default();
        let mut candidates = Vec::new();
        let mut kept = Vec::new();
        let (walked, ()) = tokio::join!(self.walk(), self.recall());
        for (root, walked) in walked.into_iter().enumerate() {
            if walked.is_incomplete {
                // What could not be seen this time has not gone.
                kept.extend(self.unseen(root, &walked));
                scan.is_passing = true;
            }
            candidates.extend(walked.scripts.into_values().map(|script| (root, script)));
            scan.files.extend(walked.files.into_iter().map(Arc::new));
            scan.unusable
                .extend(walked.rejected.into_iter().map(UnusableFile::from));
        }
        let workers = std::thread::available_parallelism().map_or(2, usize::from);
        let this = &*self;
        let looked: Vec<_> = stream::iter(candidates)
            .map(|(root, candidate)| async move { (root, this.look_at(root, candidate).await) })
            .buffer_unordered(workers)
            .chain(stream::iter(kept))
            .collect()
            .await;
        scan.is_passing |= looked.iter().any(|(_, looked)| looked.is_passing);
        let mut scripts: Vec<_> = looked
            .iter()
            .flat_map(|(root, looked)| looked.scripts.iter().map(|script| (*root, script)))
            .collect();
        // Of two with one path the first is served, at every scan the same.
        scripts.sort_by_key(|(root, script)| (*root, &script.path, &script.file));
        scan.scripts = scripts
            .into_iter()
            .map(|(_, script)| Arc::clone(script))
            .collect();
        self.remember(looked).await;
        scan
    }

    /// Walks every root. It blocks; a thread pool is where blocking belongs.
    async fn walk(&self) -> Vec<Walked> {
        let roots = self.roots.clone();
        let walk_one =
            |root: &PathBuf| walk::walk(&root.canonicalize().unwrap_or_else(|_| root.clone()));
        let work = move || roots.iter().map(walk_one).collect();
        tokio::task::spawn_blocking(work).await.unwrap_or_default()
    }

    /// Reads what is remembered, the first time. It blocks as well.
    async fn recall(&self) {
        if let Some(memory) = self.memory.clone() {
            let work = move || sync::lock(&memory).recall();
            tokio::task::spawn_blocking(work).await.ok();
        }
    }

    /// The files of a root that were there at the last look and are not in `walked`.
    fn unseen<'a>(
        &'a self,
        root: usize,
        walked: &'a Walked,
    ) -> impl Iterator<Item = (usize, Arc<Looked>)> + 'a {
        let known = self
            .known
            .iter()
            .filter(move |((place, _), _)| *place == root);
        known
            .filter(|((_, file), _)| !walked.scripts.contains_key(file))
            .map(|((root, _), looked)| (*root, Arc::clone(looked)))
    }

    /// Looks at one file, unless what is to be seen is still known.
    async fn look_at(&self, root: usize, candidate: Candidate) -> Arc<Looked> {
        let known = self.known.get(&(root, candidate.file.clone()));
        if let Some(known) = known.filter(|known| known.candidate == candidate && !known.is_passing)
        {
            return Arc::clone(known);
        }
        let memory = self.memory.as_ref();
        let remembered = memory.and_then(|memory| sync::lock(memory).answer(root, &candidate));
        Arc::new(match remembered {
            Some(answer) => self.examiner.answered(candidate, answer).await,
            None => self.examiner.examine(candidate).await,
        })
    }

    /// Keeps what was found for the next scan, and on disk for the next start.
    async fn remember(&mut self, looked: Vec<(usize, Arc<Looked>)>) {
        if let Some(memory) = self.memory.clone() {
            let looked = looked.clone();
            let work = move || sync::lock(&memory).remember(&looked);
            tokio::task::spawn_blocking(work).await.ok();
        }
        let known = looked.into_iter();
        self.known = known
            .map(|(root, looked)| ((root, looked.candidate.file.clone()), looked))
            .collect();
    }
}

impl From<Rejected> for UnusableFile {
    fn from(rejected: Rejected) -> Self {
        let reason = match rejected.reason {
            Reason::LeavesRoot => "it is a link to a place outside of the root".to_owned(),
            Reason::Unnameable(why) => format!("nothing can have its name: {why}"),
            Reason::NotExecutable => "it is not executable; make it so with `chmod +x`".to_owned(),
            Reason::Orphan => "there is no file that it describes".to_owned(),
            Reason::SecondSidecar => "another sidecar describes the same file".to_owned(),
            Reason::Unreadable(why) => why,
        };
        Self {
            file: rejected.file,
            reason,
        }
    }
}
