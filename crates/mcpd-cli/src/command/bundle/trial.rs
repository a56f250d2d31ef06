//! Trial of a new bundle: unpacked elsewhere, started as a client of a desktop would, listed,
//! compared with its manifest, and called with the cases of its tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use mcpd_bundle::{Contents, Manifest, Platform, unpack};
use mcpd_check::render::base_directory;
use mcpd_clients::{Client, Connection};
use mcpd_doctor::entry;
use mcpd_server::Server;
use mcpd_service::signals::Termination;
use mcpd_testcase::{Options, Plan, Servers, SubjectKind, render};
use mcpd_upstream::Upstream;

use super::content::Content;
use crate::command::describe_faulty_sources;
use crate::output;

/// Time limit of the start, in which the server may have to ask every script for its description.
const START_TIMEOUT: Duration = Duration::from_secs(60);

const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Client whose environment the bundle is started in: it knows bundles.
const CLIENT: &str = "claude-desktop";

/// Numbers of a trial that succeeded.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Calls {
    /// Cases that passed.
    pub(super) passed: usize,
    /// Cases that no client of a bundle can make: with variables or answers of their own.
    pub(super) skipped: usize,
}

/// Tries the bundle with the settings of this machine; `None` if the user interrupts it.
///
/// # Errors
///
/// The server does not start, lists other tools than the manifest, or fails a case.
pub(super) async fn run(
    bundle: &Path,
    content: &Content,
    mut plan: Plan,
) -> anyhow::Result<Option<Calls>> {
    let directory = tempfile::Builder::new().prefix("mcpd-bundle-").tempdir()?;
    let place = directory.path().canonicalize()?;
    unpack(File::open(bundle)?, &place)?;
    let manifest = Manifest::read(&fs::read(place.join("manifest.json"))?)?;
    let skipped = prepare(&mut plan, &content.contents, &place);
    let upstream = start(&manifest, &place, &content.values)?;
    let server = Server::builder().source(upstream.prefix("")).start()?;
    let mut termination = Termination::listen_at_terminal().context("listen for signals")?;
    let work = async {
        wait_for_list(&server).await?;
        compare(&manifest, &server)?;
        let passed = call(plan, &server).await?;
        Ok(Some(Calls { passed, skipped }))
    };
    let calls = tokio::select! {
        calls = work => calls,
        () = termination.wait() => Ok(None),
    };
    server.shutdown().await;
    calls
}

/// Server as a client starts it for its manifest.
fn start(
    manifest: &Manifest,
    place: &Path,
    values: &BTreeMap<String, String>,
) -> anyhow::Result<Upstream> {
    let place = place.to_str().context("use the temporary directory")?;
    let launch = manifest.launch(place, Platform::current(), values)?;
    let client = Client::find(CLIENT).context("find the client")?;
    let mut environment = client.variables(&Connection::Unknown, entry::own_environment());
    environment.extend(launch.env);
    // What the server remembers of these files goes with them.
    for (name, directory) in [("XDG_STATE_HOME", ".state"), ("XDG_CACHE_HOME", ".cache")] {
        environment.insert(name.to_owned(), format!("{place}/{directory}"));
    }
    let name = &manifest.name;
    Ok(entry::program(
        name,
        &launch.command,
        &launch.args,
        environment,
    ))
}

/// Waits until the server has listed its tools.
async fn wait_for_list(server: &Server) -> anyhow::Result<()> {
    server.catalog_ready().await;
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        let catalog = server.catalog();
        let is_pending = catalog.offers().iter().all(|offer| offer.is_pending());
        let faults = describe_faulty_sources(&catalog);
        if faults.is_empty() {
            return Ok(());
        }
        if !is_pending || Instant::now() > deadline {
            bail!("start the bundle as a client would:{faults}");
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Compares what the server lists with the manifest.
fn compare(manifest: &Manifest, server: &Server) -> anyhow::Result<()> {
    let catalog = server.catalog();
    let tools = catalog.tools().iter();
    let listed: BTreeSet<_> = tools.map(|tool| tool.path().as_str()).collect();
    let meant: BTreeSet<_> = manifest.tools.iter().map(|tool| &*tool.name).collect();
    let join = |names: Vec<&&str>| {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    let missing = join(meant.difference(&listed).collect());
    let others = join(listed.difference(&meant).collect());
    match (&*missing, &*others) {
        ("", "") => {}
        (missing, "") => bail!("find {missing} among the tools of the bundle"),
        ("", others) => {
            bail!("compare the tools of the bundle: it lists {others}, which the directories lack")
        }
        _ => bail!("compare the tools of the bundle: it lists {others} in place of {missing}"),
    }
    if manifest.prompts_generated == catalog.prompts().is_empty() {
        bail!("list the prompts of the bundle: they are not those of the directories");
    }
    Ok(())
}

/// Points the plan at the unpacked files, and takes out the cases that can't be called. Returns
/// their number.
fn prepare(plan: &mut Plan, contents: &Contents, place: &Path) -> usize {
    let mut skipped = 0;
    plan.suites.retain(|suite| suite.has_cases());
    for suite in &mut plan.suites {
        let root = contents.roots.iter().find(|root| root.root == suite.root);
        if let Some(root) = root {
            suite.root = place.join(&root.path);
        }
        let listed = |path: &str| match contents.names.get(path) {
            Some(name) => name.clone(),
            None => path.to_owned(),
        };
        let subjects = std::mem::take(&mut suite.subjects).into_iter();
        suite.subjects = subjects
            .map(|(name, subject)| match subject.kind {
                SubjectKind::Tool => (listed(&name), subject),
                _ => (name, subject),
            })
            .collect();
        suite.cases.cases.retain_mut(|case| {
            case.tool = case.tool.as_deref().map(listed);
            let is_callable = case.environment.is_empty() && case.answers.is_empty();
            skipped += usize::from(!is_callable);
            is_callable
        });
    }
    skipped
}

/// Calls the tools with their cases. Returns the number of cases.
async fn call(plan: Plan, server: &Server) -> anyhow::Result<usize> {
    let report = mcpd_testcase::run(plan, &OneServer(server), &Options::default()).await;
    if !report.is_success() {
        output::note(&render::human(&report, &base_directory()));
        let failed = report.counts().2;
        bail!(
            "call the tools of the bundle: {failed} of its cases failed; `mcpd test` tells whether they fail without the bundle too"
        );
    }
    Ok(report.counts().0)
}

/// The server of the bundle, for all cases.
struct OneServer<'a>(&'a Server);

impl Servers for OneServer<'_> {
    async fn start(
        &self,
        _: &Path,
        _: &str,
        _: &BTreeMap<String, String>,
    ) -> Result<Server, String> {
        Ok(self.0.clone())
    }
}
