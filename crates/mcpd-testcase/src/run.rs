//! Test run: each script with a server of its own, several scripts at once, the calls of one in
//! their order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt as _;
use mcpd_files::{Access, NewFile};
use mcpd_server::Server;
use tempfile::TempDir;

use crate::call::Call;
use crate::case::Case;
use crate::compare::differences;
use crate::ending::{Ending, Observed};
use crate::fault::Fault;
use crate::plan::{Plan, Suite};
use crate::report::{CaseReport, Report, SuiteReport};
use crate::snapshot::{self, Snapshot};
use crate::written_files::WrittenFiles;

mod generated;

/// Variable with the directory for temporary files.
const TEMPORARY: &str = "TMPDIR";

/// Settings of a test run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Number of scripts that are tested at once.
    pub jobs: NonZeroUsize,
    /// Text in the path of a tool, a space and the name of a case; other cases are left out.
    pub filter: Option<String>,
    /// Results of failed cases become the expected ones.
    pub accept: bool,
    /// Number of generated calls for each tool.
    pub generate: usize,
    /// Seed of generated arguments.
    pub seed: u64,
    /// Time limit of a generated call.
    pub generated_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            jobs: NonZeroUsize::MIN,
            filter: None,
            accept: false,
            generate: 0,
            seed: 0,
            generated_timeout: Duration::from_secs(10),
        }
    }
}

/// Servers for tests.
pub trait Servers {
    /// Starts a server with one tool of a root, whose script has these variables besides its
    /// configured ones.
    ///
    /// # Errors
    ///
    /// The reason, as a fragment.
    fn start(
        &self,
        root: &Path,
        tool: &str,
        variables: &BTreeMap<String, String>,
    ) -> impl Future<Output = Result<Server, String>>;
}

/// Runs the tests of a plan.
///
/// # Cancel safety
///
/// Dropping the future ends all scripts. Files that a case has written are as before it.
pub async fn run(plan: Plan, servers: &impl Servers, options: &Options) -> Report {
    let suites = plan.suites.iter();
    let relevant = suites.filter(|suite| suite.has_cases() || options.generate > 0);
    let running = relevant.map(|suite| SuiteRun::new(suite, servers, options));
    let reports = futures_util::stream::iter(running.map(SuiteRun::run));
    let suites = reports.buffered(options.jobs.get()).collect().await;
    Report {
        suites,
        faults: plan.faults,
    }
}

/// Test run of one script.
struct SuiteRun<'a, S> {
    suite: &'a Suite,
    servers: &'a S,
    options: &'a Options,
    /// Servers by tool and variables.
    started: BTreeMap<(String, BTreeMap<String, String>), Server>,
    temporary: Option<TempDir>,
}

impl<'a, S: Servers> SuiteRun<'a, S> {
    fn new(suite: &'a Suite, servers: &'a S, options: &'a Options) -> Self {
        Self {
            suite,
            servers,
            options,
            started: BTreeMap::new(),
            temporary: TempDir::with_prefix("mcpd-test-").ok(),
        }
    }

    async fn run(mut self) -> SuiteReport {
        let suite = self.suite;
        let mut report = SuiteReport {
            script: suite.script.clone(),
            file: suite.has_cases().then(|| suite.cases.path.clone()),
            cases: Vec::new(),
            faults: suite.faults.clone(),
            uncovered: find_uncovered_options(suite),
            generated: None,
        };
        let mut snapshots = Vec::new();
        for (index, case) in suite.cases.cases.iter().enumerate() {
            // A case without a tool is a fault of the file.
            if let Ok(tool) = suite.tool_of(case)
                && self.is_wanted(tool, case)
            {
                let (mut result, snapshot) = self.run_case(tool, case, index).await;
                let is_new = !result.differences.is_empty() || case.expected.is_empty();
                match snapshot.refusal() {
                    _ if !self.options.accept || !is_new => {}
                    None => {
                        result.is_accepted = true;
                        snapshots.push(snapshot);
                    }
                    Some(why) => result.differences.push(format!("not accepted: {why}")),
                }
                report.cases.push(result);
            }
        }
        if !snapshots.is_empty()
            && let Err(why) = self.accept(&snapshots)
        {
            let path = &suite.cases.path;
            report.faults.push(Fault::of_file(path, why));
        }
        if self.options.generate > 0 && !suite.cases.generation.skip {
            report.generated = Some(self.run_generated().await);
        }
        report
    }

    fn is_wanted(&self, tool: &str, case: &Case) -> bool {
        let filter = self.options.filter.as_deref();
        filter.is_none_or(|text| format!("{tool} {}", case.name).contains(text))
    }

    async fn run_case(&mut self, tool: &str, case: &Case, index: usize) -> (CaseReport, Snapshot) {
        let expected = &case.expected;
        let files = WrittenFiles::before(&self.suite.root, &expected.files);
        let call = Call {
            tool,
            subject: &self.suite.subjects[tool],
            arguments: &case.arguments,
            answers: &case.answers,
            timeout: case.timeout,
        };
        let observed = match self.server(tool, &case.environment).await {
            Ok(server) => call.send(&server).await,
            Err(why) => Observed::without_result(Ending::Failed(why)),
        };
        let mut differences = differences(expected, &observed);
        if snapshot::is_acceptable(&observed.ending) {
            differences.extend(files.differences());
        }
        self.remove_temporary_files();
        let report = CaseReport {
            name: case.name.clone(),
            tool: tool.to_owned(),
            line: case.line,
            elapsed: observed.elapsed,
            differences,
            is_accepted: false,
        };
        let files = files.contents();
        let snapshot = Snapshot {
            index,
            observed,
            files,
        };
        (report, snapshot)
    }

    /// Writes results into the file with cases, which is replaced whole.
    fn accept(&self, snapshots: &[Snapshot]) -> Result<(), String> {
        let file = &self.suite.cases;
        let text = snapshot::accept(&self.suite.text, &file.cases, snapshots)
            .map_err(|error| format!("not TOML: {error}"))?;
        replace(&file.path, &text).map_err(|error| format!("not writable: {error}"))
    }

    /// Server with a tool and these variables, started on first use.
    async fn server(
        &mut self,
        tool: &str,
        variables: &BTreeMap<String, String>,
    ) -> Result<Server, String> {
        let key = (tool.to_owned(), variables.clone());
        if let Some(server) = self.started.get(&key) {
            return Ok(server.clone());
        }
        let mut variables = variables.clone();
        if let Some(path) = self.temporary.as_ref().and_then(|dir| dir.path().to_str()) {
            let path = path.to_owned();
            variables.entry(TEMPORARY.to_owned()).or_insert(path);
        }
        let root = &self.suite.root;
        let server = self.servers.start(root, tool, &variables).await?;
        server.catalog_ready().await;
        let subject = &self.suite.subjects[tool];
        if !subject.is_served(tool, &server.catalog()) {
            let kind = subject.kind_name();
            return Err(format!("there is no {kind} `{tool}`; run `mcpd check`"));
        }
        self.started.insert(key, server.clone());
        Ok(server)
    }

    /// Removes what calls have left in their temporary directory, and returns the names.
    fn remove_temporary_files(&self) -> Vec<String> {
        let Some(directory) = &self.temporary else {
            return Vec::new();
        };
        let entries = fs::read_dir(directory.path()).into_iter().flatten();
        let removed = entries.flatten().map(|entry| {
            let path = entry.path();
            // What can't be removed now goes with the directory.
            match path.is_dir() && !path.is_symlink() {
                true => fs::remove_dir_all(&path).ok(),
                false => fs::remove_file(&path).ok(),
            };
            entry.file_name().to_string_lossy().into_owned()
        });
        removed.collect()
    }
}

/// Replaces a file as a whole, with its permissions.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    // A link stays a link.
    let path = path.canonicalize()?;
    let access = Access::Of(&path.metadata()?);
    NewFile::with_content(&path, text.as_bytes(), access)?.replace()
}

/// Options of tools with cases that no case gives.
fn find_uncovered_options(suite: &Suite) -> Vec<String> {
    let mut given: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for case in &suite.cases.cases {
        if let Ok(tool) = suite.tool_of(case) {
            let names = case.arguments.keys().map(String::as_str);
            given.entry(tool).or_default().extend(names);
        }
    }
    let mut uncovered = Vec::new();
    for (tool, given) in given {
        let properties = suite.subjects[tool].schema["properties"].as_object();
        let names = properties.into_iter().flatten().map(|(name, _)| name);
        for name in names.filter(|name| !given.contains(name.as_str())) {
            uncovered.push(match suite.subjects.len() {
                1 => name.clone(),
                _ => format!("{tool}: {name}"),
            });
        }
    }
    uncovered
}
