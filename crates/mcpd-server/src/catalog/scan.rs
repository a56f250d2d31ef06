//! Scanner: walks the roots, reads scripts that describe themselves, and probes the rest with
//! `--help`. A script that can be neither read nor probed is part of the result, with the reason
//! as a diagnostic.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mcpd_exec::Executor;
use mcpd_scriptspec::ScriptPath;
use tokio::time::Instant;

use super::file::StaticFile;
use super::pins::digests::FileDigests;
use super::pins::{ApprovedOffers, HeldBack, Locked};
use super::probe_cache::{CachedResult, ProbeCache};
use super::skill::Skill;
use super::walk::{self, Candidate, Walked};
use crate::policy::Policy;
use crate::script::interpreter::Interpreters;
use crate::support::blocking::join_blocking;
use crate::support::sync;

mod conditions;
mod file_debounce;
mod files;
mod frontmatter;
mod image;
mod inspector;
mod instructions;
mod kit;
mod locking;
mod probe;
mod probe_queue;
mod probe_schedule;
mod program_check;
mod reading;
mod script;
mod skills;

pub use crate::database::rows::HelpText;
use file_debounce::Debounce;
pub use files::{PassOverKind, PassedOver, TEST_CASES, UnusableFile};
pub(crate) use inspector::InspectedFile;
use inspector::{Inspection, Inspector};
pub use instructions::INSTRUCTIONS;
pub use kit::SchemalessScript;
use locking::Judged;
use probe_queue::ProbeQueue;
use probe_schedule::Pending;
pub use script::ScannedScript;

/// Findings under the roots, in the order of the roots and then of the paths.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Scan {
    /// Scripts, faulty ones included.
    pub scripts: Vec<Arc<ScannedScript>>,
    /// Static files.
    pub(crate) files: Vec<Arc<StaticFile>>,
    /// Skills, whose files are static files.
    pub(crate) skills: Vec<Arc<Skill>>,
    /// Instructions of the roots that have some.
    pub(crate) instructions: Vec<String>,
    /// Files that should be served and cannot.
    pub unusable: Vec<UnusableFile>,
    /// Files that are passed over and look like scripts. Only a [thorough](Scanner::thorough)
    /// scanner searches for them.
    pub overlooked: Vec<UnusableFile>,
    /// Files and directories that should not be served. Entries that are [not
    /// remarkable](PassedOver::is_remarkable) are reported by a [thorough](Scanner::thorough)
    /// scanner only, except for [scripts without a schema](PassOverKind::Schemaless) and
    /// [test cases](PassOverKind::TestCases).
    pub passed_over: Vec<PassedOver>,
    /// Tells whether some entry could not be read or probed for a passing reason, so that another
    /// scan may succeed.
    pub(crate) is_transient: bool,
    /// Files and instructions that are held back; scripts say so themselves.
    held_back: Vec<HeldBack>,
}

impl Scan {
    /// Returns whether nothing differs from `other`, so that a catalog built from it is still
    /// valid.
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        let same_scripts = self.scripts.len() == other.scripts.len()
            && self
                .scripts
                .iter()
                .zip(&other.scripts)
                .all(|(ours, theirs)| Arc::ptr_eq(ours, theirs));
        same_scripts
            && self.files == other.files
            && self.skills == other.skills
            && self.instructions == other.instructions
            && self.unusable == other.unusable
            && self.passed_over == other.passed_over
            && self.held_back == other.held_back
    }

    /// Iterates over the static files with their URIs.
    pub fn static_files(&self) -> impl Iterator<Item = (String, &Path)> {
        self.files.iter().map(|file| (file.uri(), file.file()))
    }

    /// Iterates over the scripts that are not served because of a fault.
    pub fn faulty(&self) -> impl Iterator<Item = &Arc<ScannedScript>> {
        self.scripts.iter().filter(|script| script.is_faulty())
    }
}

/// Repeated scan of roots; reads and probes only new and changed files.
#[derive(Debug)]
pub struct Scanner {
    inspector: Arc<Inspector>,
    roots: Vec<PathBuf>,
    probe_cache: Option<Arc<Mutex<ProbeCache>>>,
    is_thorough: bool,
    /// Path of the only script of interest, if there is one.
    wanted_path: Option<String>,
    processors: usize,
    /// By root and path. A script that is being probed keeps its previous entry.
    known: Arc<[BTreeMap<ScriptPath, Arc<InspectedFile>>]>,
    probe_queue: ProbeQueue,
    /// Files that are being written, each with the start of the changes.
    changing_since: BTreeMap<(usize, ScriptPath), Instant>,
    /// By root.
    files: Vec<Vec<Arc<StaticFile>>>,
    /// Instructions, each with its root.
    instructions: Vec<(PathBuf, String)>,
    /// Findings other than scripts and static files.
    rest: Scan,
    /// Digests of the files of skills.
    digests: Arc<FileDigests>,
    /// Approved state of all that.
    judged: Judged,
    approved_offers: ApprovedOffers,
}

impl Scanner {
    /// Creates a scanner of `roots`: absolute paths of directories or single scripts, whose links
    /// each scan resolves anew. Scripts are probed under the policy of their calls, and started
    /// by `interpreters` if they are not programs.
    #[must_use]
    pub fn new(
        executor: Executor,
        policy: Policy,
        interpreters: Interpreters,
        roots: Vec<PathBuf>,
    ) -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            inspector: Arc::new(Inspector::new(executor, policy, interpreters)),
            roots,
            probe_cache: None,
            is_thorough: false,
            wanted_path: None,
            processors,
            known: Arc::default(),
            probe_queue: ProbeQueue::new(processors),
            changing_since: BTreeMap::new(),
            files: Vec::new(),
            instructions: Vec::new(),
            rest: Scan::default(),
            digests: Arc::default(),
            judged: Judged::default(),
            approved_offers: ApprovedOffers::default(),
        }
    }

    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Also opens the files that are passed over, to find files that an operator may miss among
    /// the scripts.
    #[must_use]
    pub fn thorough(mut self) -> Self {
        self.is_thorough = true;
        self
    }

    /// Runs nothing: scripts that need a probe are [passed over](PassOverKind::NotProbed), and
    /// interpreters of the others need not be installed.
    #[must_use]
    pub fn static_only(mut self) -> Self {
        self.inspector = Arc::new(self.inspector.static_only());
        self
    }

    /// Probes no more scripts than necessary to know the one at `path`, such as `math/add`. Other
    /// scripts are found only if they are known without a probe.
    #[must_use]
    pub fn only(mut self, path: impl Into<String>) -> Self {
        self.wanted_path = Some(path.into());
        self
    }

    /// Probes no script again that has answered before, even in another process.
    #[cfg(feature = "database")]
    #[must_use]
    pub fn database(mut self, database: crate::database::Database) -> Self {
        self.inspector = Arc::new(self.inspector.keep_versions_in(database.clone()));
        let probe_cache = ProbeCache::new(database, self.roots.clone());
        self.probe_cache = Some(Arc::new(Mutex::new(probe_cache)));
        self
    }

    /// Changes how scripts are probed and run, and forgets all results.
    pub(crate) fn configure(
        &mut self,
        policy: Policy,
        interpreters: Interpreters,
        locked: Option<Arc<Locked>>,
    ) {
        self.inspector = Arc::new(self.inspector.with_configuration(policy, interpreters));
        self.set_lock(locked);
        self.approved_offers = ApprovedOffers::default();
        self.known = Arc::default();
        // Replaced, because a pending result may stem from the previous policy.
        self.probe_queue = ProbeQueue::new(self.processors);
    }

    /// Scans every root, and waits for all probes.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped halfway, probes may go on, and the next scan waits for them. They are
    /// killed with the scanner.
    pub async fn scan(&mut self) -> Scan {
        self.start_scan().await;
        self.finish_probes().await;
        self.compare_with_lock().await;
        self.save_cache().await;
        self.results()
    }

    /// Scans every root, and starts probes of the scripts that cannot be read otherwise.
    pub(crate) async fn start_scan(&mut self) {
        let (walked, ()) = tokio::join!(self.walk(), self.load_cache());
        self.inspect_roots(walked).await;
    }

    /// Examines what was found under each root.
    async fn inspect_roots(&mut self, walked: Vec<Walked>) {
        self.probe_queue.retain(|root, candidate| {
            let walked = &walked[root];
            match walked.scripts.get(&candidate.path) {
                Some(now) => now == candidate,
                None => walked.is_hidden(&candidate.file),
            }
        });
        let mut rest = Scan::default();
        let mut candidates = Vec::new();
        let mut inspected = Vec::new();
        let mut passed_over = Vec::new();
        let mut files = Vec::with_capacity(self.roots.len());
        self.instructions.clear();
        for (root, mut walked) in walked.into_iter().enumerate() {
            let found = std::mem::take(&mut walked.files).into_iter();
            let mut found: Vec<_> = found.map(Arc::new).collect();
            if !walked.unseen.is_empty() {
                // An entry that could not be read this time is not gone.
                inspected.extend(self.unseen_scripts(root, &walked));
                found.extend(self.unseen_files(root, &walked, &found));
                found.sort_by(|a, b| a.path().cmp(b.path()));
                rest.is_transient = true;
            }
            candidates.extend(walked.scripts.into_values().map(|script| (root, script)));
            files.push(found);
            rest.unusable
                .extend(walked.rejected.into_iter().map(UnusableFile::from));
            rest.skills.extend(walked.skills.into_iter().map(Arc::new));
            rest.unusable.extend(walked.faulty_skills);
            match walked.instructions {
                Some(Ok(text)) => {
                    self.instructions.push((walked.root, text.clone()));
                    rest.instructions.push(text);
                }
                Some(Err(unusable)) => rest.unusable.push(unusable),
                None => {}
            }
            passed_over.extend(walked.passed_over.into_values());
        }
        if self.is_thorough {
            let unmarked = passed_over.iter();
            let unmarked = unmarked.filter(|passed| passed.kind == PassOverKind::Unmarked);
            rest.overlooked =
                files::overlooked_files(unmarked.map(|passed| passed.file.clone()).collect()).await;
        } else {
            passed_over.retain(PassedOver::is_always_reported);
        }
        rest.passed_over = passed_over;
        self.rest = rest;
        self.files = files;
        self.inspect_files(candidates, inspected).await;
    }

    /// Waits for the next probe to end. Returns whether there was one.
    ///
    /// May be dropped and called again.
    pub(crate) async fn finish_next_probe(&mut self) -> bool {
        let Some((root, inspected)) = self.probe_queue.next_result().await else {
            return false;
        };
        let path = inspected.candidate.path.clone();
        self.changing_since.remove(&(root, path.clone()));
        Arc::make_mut(&mut self.known)[root].insert(path, Arc::new(inspected));
        true
    }

    /// Waits for all probes.
    pub(crate) async fn finish_probes(&mut self) {
        while self.finish_next_probe().await {}
    }

    /// Returns all current results.
    pub(crate) fn results(&self) -> Scan {
        let mut scan = self.rest.clone();
        scan.files = self.files.iter().flatten().map(Arc::clone).collect();
        let mut scripts = Vec::new();
        for (root, inspected) in self.results_by_root() {
            scan.is_transient |= inspected.is_transient;
            let passed = inspected.passed_over.iter();
            let passed = passed.filter(|passed| self.is_thorough || passed.is_always_reported());
            scan.passed_over.extend(passed.cloned());
            scripts.extend(inspected.scripts.iter().map(|script| (root, script)));
        }
        // Of two with one path the first is served, so that every scan decides alike.
        scripts.sort_by_key(|(root, script)| (*root, &script.path, &script.file));
        scan.scripts = scripts
            .into_iter()
            .map(|(_, script)| Arc::clone(script))
            .collect();
        scan.passed_over.sort_by(|a, b| a.file.cmp(&b.file));
        self.hold_back(&mut scan);
        scan
    }

    /// Iterates over the known files, each with its root.
    fn results_by_root(&self) -> impl Iterator<Item = (usize, &InspectedFile)> {
        let roots = self.known.iter().enumerate();
        roots.flat_map(|(root, files)| files.values().map(move |inspected| (root, &**inspected)))
    }

    /// Walks every root on the thread pool, because it blocks.
    async fn walk(&self) -> Vec<Walked> {
        let (roots, inspector) = (self.roots.clone(), Arc::clone(&self.inspector));
        let digests = Arc::clone(&self.digests);
        let work = move || {
            let walk_one = |root: &PathBuf| {
                let root = root.canonicalize().unwrap_or_else(|_| root.clone());
                let mut walked = walk::walk(&root, inspector.rule(&root));
                instructions::add(&root, &mut walked);
                (walked.skills, walked.faulty_skills) = skills::read(&mut walked, &digests);
                walked
            };
            roots.iter().map(walk_one).collect()
        };
        join_blocking(tokio::task::spawn_blocking(work)).await
    }

    /// Loads the cache on first use, on the thread pool as well.
    async fn load_cache(&self) {
        if let Some(probe_cache) = self.probe_cache.clone() {
            let work = move || sync::lock(&probe_cache).load();
            tokio::task::spawn_blocking(work).await.ok();
        }
    }

    /// Iterates over the known scripts of a root that could not be read this time.
    fn unseen_scripts(
        &self,
        root: usize,
        walked: &Walked,
    ) -> impl Iterator<Item = (usize, Arc<InspectedFile>)> {
        let known = self.known.get(root).into_iter().flatten();
        known
            .filter(|(path, inspected)| {
                walked.is_hidden(&inspected.candidate.file) && !walked.scripts.contains_key(*path)
            })
            .map(move |(_, inspected)| (root, Arc::clone(inspected)))
    }

    /// Returns the known static files that could not be read this time, without those that were
    /// `found`.
    fn unseen_files(
        &self,
        root: usize,
        walked: &Walked,
        found: &[Arc<StaticFile>],
    ) -> Vec<Arc<StaticFile>> {
        let known = self.files.get(root).into_iter().flatten();
        let is_found = |file: &StaticFile| {
            let found = found.binary_search_by_key(&file.path(), |found| found.path());
            found.is_ok()
        };
        known
            .filter(|file| walked.is_hidden(file.file()) && !is_found(file))
            .map(Arc::clone)
            .collect()
    }

    /// Reads files, unless their result is still known, and starts probes of those that need one.
    /// Some are `inspected` at already.
    async fn inspect_files(
        &mut self,
        candidates: Vec<(usize, Candidate)>,
        mut inspected: Vec<(usize, Arc<InspectedFile>)>,
    ) {
        let mut new = Vec::new();
        for (root, candidate) in candidates {
            let earlier = self.earlier(root, &candidate);
            let is_known = earlier.is_some_and(|earlier| {
                earlier.candidate == candidate && !earlier.is_transient && !earlier.is_refused
            });
            if is_known || self.probe_queue.contains(root, &candidate) {
                inspected.extend(earlier.map(|earlier| (root, Arc::clone(earlier))));
            } else {
                new.push((root, candidate));
            }
        }
        let debounce = self.debounce();
        let mut pending = Vec::new();
        for (root, inspection) in self.inspect_all(new, debounce).await {
            let script = match inspection {
                Ok(Inspection::Done(seen)) => {
                    inspected.push((root, Arc::new(seen)));
                    continue;
                }
                Ok(Inspection::NeedsProbe(script)) => Pending::NeedsProbe(script),
                Err(candidate) => Pending::Changing(*candidate, debounce),
            };
            let earlier = self.earlier(root, script.candidate());
            inspected.extend(earlier.map(|earlier| (root, Arc::clone(earlier))));
            pending.push((root, script));
        }
        let mut known = vec![BTreeMap::new(); self.roots.len()];
        for (root, inspected) in inspected {
            known[root].insert(inspected.candidate.path.clone(), inspected);
        }
        self.known = known.into();
        self.note_scripts();
        self.probe(pending).await;
    }

    /// Reads files without running them, on one thread of the pool per processor.
    async fn inspect_all(
        &self,
        mut candidates: Vec<(usize, Candidate)>,
        debounce: Debounce,
    ) -> Vec<(usize, Result<Inspection, Box<Candidate>>)> {
        let share = candidates.len().div_ceil(self.processors);
        let mut reading = Vec::with_capacity(self.processors);
        while !candidates.is_empty() {
            let rest = candidates.split_off(share.min(candidates.len()));
            let ours = std::mem::replace(&mut candidates, rest);
            let (inspector, probe_cache) = (Arc::clone(&self.inspector), self.probe_cache.clone());
            let inspect = move |(root, candidate): (usize, Candidate)| {
                let cached = cached_result(probe_cache.as_deref(), root, &candidate);
                (
                    root,
                    inspector.inspect(candidate, cached, debounce.quiet_time),
                )
            };
            let work = move || ours.into_iter().map(inspect).collect::<Vec<_>>();
            reading.push(tokio::task::spawn_blocking(work));
        }
        let mut read = Vec::new();
        for part in reading {
            read.extend(join_blocking(part).await);
        }
        read
    }

    /// Saves the results on disk for the next start, on the thread pool as well.
    pub(crate) async fn save_cache(&self) {
        if let Some(probe_cache) = self.probe_cache.clone() {
            let known = Arc::clone(&self.known);
            let work = move || sync::lock(&probe_cache).save(&known);
            tokio::task::spawn_blocking(work).await.ok();
        }
    }
}

/// Returns the cached knowledge of a file, if there is any.
fn cached_result(
    probe_cache: Option<&Mutex<ProbeCache>>,
    root: usize,
    candidate: &Candidate,
) -> CachedResult {
    probe_cache.map_or_else(CachedResult::default, |probe_cache| {
        sync::lock(probe_cache).get(root, candidate)
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use mcpd_exec::Config;

    use super::*;

    #[tokio::test]
    async fn unreadable_file_is_not_treated_as_gone() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let resources = root.join("resources");
        std::fs::create_dir(&resources).unwrap();
        std::fs::write(resources.join("a.txt"), "a").unwrap();
        let executor = Executor::new(Config::default()).unwrap();
        let (policy, interpreters) = (Policy::default(), Interpreters::default());
        let mut scanner = Scanner::new(executor, policy, interpreters, vec![root.clone()]);
        assert_eq!(scanner.scan().await.files.len(), 1);
        let hidden = |place: &Path| {
            let mut walked = Walked::default();
            walked.unseen.push(place.to_owned());
            walked
        };
        for (walked, files) in [
            (hidden(&resources), 1),
            // Two scans in a row.
            (hidden(&resources), 1),
            (walk::walk(&root, None), 1),
            (hidden(&root.join("elsewhere")), 0),
        ] {
            scanner.inspect_roots(vec![walked]).await;
            assert_eq!(scanner.results().files.len(), files);
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn changed_policy_repeats_all_probes() {
        use std::os::unix::fs::PermissionsExt as _;
        use std::time::Duration;

        use crate::policy::environment::Environment;

        let root = tempfile::tempdir().unwrap();
        let script = root.path().join("script");
        let text = "#!/bin/sh\nprintf '{\"description\": \"%s\"}' $POLICY\n";
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let executor = Executor::new(Config::default()).unwrap();
        let policy = |name| {
            let environment = Environment::of_this_process().set("POLICY", name);
            Policy::default().environment(environment)
        };
        let interpreters = Interpreters::default();
        let roots = vec![root.path().to_owned()];
        let mut scanner = Scanner::new(executor, policy("old"), interpreters.clone(), roots);
        scanner.start_scan().await;
        // The policy changes before the result is received.
        let answered = async {
            while tokio::runtime::Handle::current()
                .metrics()
                .num_alive_tasks()
                > 0
            {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let patience = Duration::from_secs(20);
        tokio::time::timeout(patience, answered).await.unwrap();
        scanner.configure(policy("new"), interpreters, None);
        let scan = scanner.scan().await;
        let spec = scan.scripts[0].spec.as_ref().unwrap();
        assert_eq!(spec.description.as_deref(), Some("new"));
    }
}
