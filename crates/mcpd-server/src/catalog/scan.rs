//! From a directory to what its scripts say of themselves: walk, ask each with `--help`, parse.
//! A script that can't be asked is part of the result, with the reason as a diagnostic.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use mcpd_exec::{Command, Ending, Executor, Outcome, StartError};
use mcpd_scriptspec::{Diagnostic, HelpOutput, ScriptPath, ScriptSpec, Stream, parse};

use super::cache::Cache;
use super::file::StaticFile;
use super::walk::{self, Candidate, Fingerprint, Reason, Rejected, Walked};
use crate::policy::{Policy, Terms};
use crate::schema::{Schemas, Unusable};

/// How long a script may take to describe itself.
pub const PROBE_TIME_LIMIT: Duration = Duration::from_secs(5);
/// How much it may print for that, per stream, in bytes.
pub const PROBE_OUTPUT_LIMIT: usize = 1 << 20;

/// What a script says of itself: what it printed when it was asked for `--help`, or what stands in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HelpText {
    /// The metadata, if all went well.
    pub stdout: Vec<u8>,
    /// The options, if all went well.
    pub stderr: Vec<u8>,
    /// The file, of a script that was not asked.
    pub source: Vec<u8>,
}

/// One script as it was found: described, or faulty, or both.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScannedScript {
    /// Its path relative to its root, which is its name.
    pub path: ScriptPath,
    /// The executable file.
    pub file: PathBuf,
    /// The root it was found under.
    pub root: PathBuf,
    /// What it said, parsed; absent if a fault keeps it from being served.
    pub spec: Option<Arc<ScriptSpec>>,
    /// What is wrong or doubtful.
    pub diagnostics: Vec<Diagnostic>,
    /// The text the diagnostics point into.
    pub help: HelpText,
    /// Its schemas, compiled.
    pub(crate) schemas: Arc<Schemas>,
    /// What it may do.
    pub(crate) terms: Arc<Terms>,
    fingerprint: Fingerprint,
    /// It could not be asked for a reason that has nothing to do with it: it is asked again.
    is_passing: bool,
}

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

/// Scans roots, again and again; asks only the scripts that are new or changed.
#[derive(Debug)]
pub struct Scanner {
    executor: Executor,
    policy: Policy,
    roots: Vec<PathBuf>,
    cache_directory: Option<PathBuf>,
    /// One for each root, once they have been opened.
    caches: Vec<Cache>,
    /// By the root's place and the file: one file may be under two roots, as two scripts.
    known: BTreeMap<(usize, PathBuf), Arc<ScannedScript>>,
}

impl Scanner {
    /// A scanner of `roots`: absolute paths of directories or single scripts, links among them followed
    /// anew by each scan. Scripts are asked under the policy they are called under. Answers are remembered in `cache_directory`, if there is one.
    #[must_use]
    pub fn new(
        executor: Executor,
        policy: Policy,
        roots: Vec<PathBuf>,
        cache_directory: Option<&Path>,
    ) -> Self {
        Self {
            executor,
            policy,
            roots,
            cache_directory: cache_directory.map(Path::to_owned),
            caches: Vec::new(),
            known: BTreeMap::new(),
        }
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
        let (walked, opened) = tokio::join!(self.walk(), self.open_caches());
        self.caches.extend(opened);
        for (root, walked) in walked.into_iter().enumerate() {
            if walked.is_incomplete {
                // What could not be seen this time has not gone.
                kept.extend(self.unseen(root, &walked));
                scan.is_passing = true;
            }
            candidates.extend(walked.scripts.into_iter().map(|script| (root, script)));
            scan.files.extend(walked.files.into_iter().map(Arc::new));
            scan.unusable
                .extend(walked.rejected.into_iter().map(UnusableFile::from));
        }
        let workers = std::thread::available_parallelism().map_or(2, usize::from);
        let this = &*self;
        let mut looked: Vec<_> = stream::iter(candidates)
            .map(|(root, candidate)| async move { (root, this.look_at(root, candidate).await) })
            .buffer_unordered(workers)
            .collect()
            .await;
        looked.append(&mut kept);
        looked.sort_by(|(a, one), (b, other)| (a, &one.path).cmp(&(b, &other.path)));
        scan.is_passing |= looked.iter().any(|(_, script)| script.is_passing);
        self.remember(&looked).await;
        scan.scripts = looked.into_iter().map(|(_, script)| script).collect();
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

    /// Opens the caches, unless they are open already. It blocks as well.
    async fn open_caches(&self) -> Vec<Cache> {
        let Some(directory) = self.cache_directory.clone() else {
            return Vec::new();
        };
        if !self.caches.is_empty() {
            return Vec::new();
        }
        let roots = self.roots.clone();
        let open_one = move |root: &PathBuf| Cache::open(&directory, root);
        let work = move || roots.iter().map(open_one).collect();
        tokio::task::spawn_blocking(work).await.unwrap_or_default()
    }

    /// The scripts of a root that were there at the last look and are not in `walked`.
    fn unseen<'a>(
        &'a self,
        root: usize,
        walked: &'a Walked,
    ) -> impl Iterator<Item = (usize, Arc<ScannedScript>)> + 'a {
        let known = self
            .known
            .iter()
            .filter(move |((place, _), _)| *place == root);
        known
            .filter(|((_, file), _)| !walked.scripts.iter().any(|script| script.file == *file))
            .map(|((root, _), script)| (*root, Arc::clone(script)))
    }

    /// Asks one script, unless what it said is still known.
    async fn look_at(&self, root: usize, candidate: Candidate) -> Arc<ScannedScript> {
        let known = self.known.get(&(root, candidate.file.clone()));
        if let Some(known) =
            known.filter(|known| known.fingerprint == candidate.fingerprint && !known.is_passing)
        {
            return Arc::clone(known);
        }
        let cached = self
            .caches
            .get(root)
            .and_then(|cache| cache.get(candidate.path.as_str(), &candidate.fingerprint));
        let answer = match cached {
            Some(help) => Ok(help),
            None => self.probe(&candidate).await,
        };
        Arc::new(ScannedScript::new(candidate, answer, &self.policy))
    }

    async fn probe(&self, candidate: &Candidate) -> Result<HelpText, ProbeFault> {
        let command = Command::new(&candidate.file)
            .arg("--help")
            .current_dir(&candidate.root);
        let terms = self
            .policy
            .terms(&candidate.path, directory(&candidate.file), None);
        let mut limits = terms.limits().clone();
        limits.wall = PROBE_TIME_LIMIT;
        limits.capture_head = PROBE_OUTPUT_LIMIT;
        limits.capture_tail = 0;
        limits.output_hard = PROBE_OUTPUT_LIMIT as u64;
        let command = terms.apply(command).limits(limits);
        match self.executor.run(command).await {
            Ok(outcome) => match outcome.ending {
                Ending::Exited(0) => Ok(HelpText {
                    stdout: outcome.stdout.head.to_vec(),
                    stderr: outcome.stderr.head.to_vec(),
                    source: Vec::new(),
                }),
                _ => Err(ProbeFault::Ended(Box::new(outcome))),
            },
            Err(error) => Err(ProbeFault::NotStarted(error)),
        }
    }

    /// Keeps what was found for the next scan, and on disk for the next start.
    async fn remember(&mut self, looked: &[(usize, Arc<ScannedScript>)]) {
        self.known = looked
            .iter()
            .map(|(root, script)| ((*root, script.file.clone()), Arc::clone(script)))
            .collect();
        let (roots, mut caches) = (self.roots.clone(), std::mem::take(&mut self.caches));
        let looked = looked.to_vec();
        let store = move || {
            for (place, (root, cache)) in roots.iter().zip(&mut caches).enumerate() {
                let answers = looked
                    .iter()
                    .filter(|(at, script)| *at == place && script.spec.is_some())
                    .map(|(_, script)| (script.path.as_str(), script.fingerprint, &script.help));
                if let Err(error) = cache.store(root, answers) {
                    tracing::warn!(%error, "failed to write the cache of `{}`", root.display());
                }
            }
            caches
        };
        self.caches = tokio::task::spawn_blocking(store).await.unwrap_or_default();
    }
}

/// Why a script could not be asked.
enum ProbeFault {
    NotStarted(StartError),
    Ended(Box<Outcome>),
}

impl ProbeFault {
    /// Whether it says something of the machine at this moment, and nothing of the script.
    fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::NotStarted(
                StartError::Busy { .. }
                    | StartError::Resource { .. }
                    | StartError::TextBusy { .. }
                    | StartError::ShuttingDown
            )
        )
    }

    fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::NotStarted(error) => Diagnostic::help_not_started(&error.to_string()),
            Self::Ended(outcome) => match outcome.ending {
                Ending::Exited(code) => Diagnostic::help_failed(code),
                Ending::Signaled { signal, .. } => Diagnostic::help_killed(signal),
                Ending::TimedOut { limit, .. } => Diagnostic::help_timed_out(limit),
                Ending::OutputLimit { .. } => {
                    let stdout_is_larger = outcome.stdout.total_bytes >= outcome.stderr.total_bytes;
                    let stream = if stdout_is_larger {
                        Stream::Stdout
                    } else {
                        Stream::Stderr
                    };
                    Diagnostic::help_too_large(stream, PROBE_OUTPUT_LIMIT)
                }
                _ => Diagnostic::help_not_started("the server is shutting down"),
            },
        }
    }

    /// What it printed all the same: often it says what is wrong.
    fn help(self) -> HelpText {
        match self {
            Self::NotStarted(_) => HelpText::default(),
            Self::Ended(outcome) => HelpText {
                stdout: outcome.stdout.head.to_vec(),
                stderr: outcome.stderr.head.to_vec(),
                source: Vec::new(),
            },
        }
    }
}

impl ScannedScript {
    fn new(candidate: Candidate, answer: Result<HelpText, ProbeFault>, policy: &Policy) -> Self {
        let is_passing = answer.as_ref().is_err_and(ProbeFault::is_passing);
        let (help, mut spec, mut diagnostics) = match answer {
            Ok(help) => {
                let parsed = parse(HelpOutput {
                    stdout: &help.stdout,
                    stderr: &help.stderr,
                });
                (help, parsed.spec, parsed.diagnostics)
            }
            Err(fault) => {
                let diagnostic = fault.diagnostic();
                (fault.help(), None, vec![diagnostic])
            }
        };
        let schemas = spec
            .as_ref()
            .map(Schemas::of)
            .unwrap_or(Ok(Schemas::default()));
        let schemas = schemas.unwrap_or_else(|Unusable { field, reason }| {
            spec = None;
            diagnostics.push(Diagnostic::invalid_schema(&help.stdout, field, &reason));
            Schemas::default()
        });
        let terms = policy.terms(&candidate.path, directory(&candidate.file), spec.as_ref());
        Self {
            terms: Arc::new(terms),
            path: candidate.path,
            file: candidate.file,
            root: candidate.root,
            spec: spec.map(Arc::new),
            diagnostics,
            help,
            schemas: Arc::new(schemas),
            fingerprint: candidate.fingerprint,
            is_passing,
        }
    }
}

/// Where a file is.
fn directory(file: &Path) -> &Path {
    file.parent().unwrap_or(file)
}

impl From<Rejected> for UnusableFile {
    fn from(rejected: Rejected) -> Self {
        let reason = match rejected.reason {
            Reason::LeavesRoot => "it is a link to a place outside of the root".to_owned(),
            Reason::Unnameable(why) => format!("nothing can have its name: {why}"),
            Reason::NotExecutable => "it is not executable; make it so with `chmod +x`".to_owned(),
            Reason::Unreadable(why) => why,
        };
        Self {
            file: rejected.file,
            reason,
        }
    }
}
