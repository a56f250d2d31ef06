//! Trial of a new bundle: unpacked elsewhere, started as a client of a desktop would, listed,
//! compared with its manifest, and called with the cases of its tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use mcpd_bundle::{Contents, Manifest, Platform, unpack};
use mcpd_check::render::base_directory;
use mcpd_clients::{Client, Connection};
use mcpd_doctor::entry;
use mcpd_server::{Catalog, Server};
use mcpd_testcase::{Options, Plan, Servers, SubjectKind, render};
use mcpd_upstream::Upstream;

use super::Content;

/// Time limit of the start, in which the server may have to ask every script for its description.
const START_TIMEOUT: Duration = Duration::from_secs(60);

const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Client whose environment the bundle is started in: it knows bundles.
const CLIENT: &str = "claude-desktop";

/// Numbers of a trial that succeeded.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Calls {
    /// Cases that passed.
    pub passed: usize,
    /// Cases that no client of a bundle can make: with variables or answers of their own.
    pub skipped: usize,
}

/// Trial of a bundle, with the settings of this machine and the cases beside the scripts.
pub struct Trial<'a> {
    content: &'a Content,
    plan: Plan,
    remark: &'a (dyn Fn(&str) + Sync),
}

impl fmt::Debug for Trial<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trial").finish_non_exhaustive()
    }
}

impl<'a> Trial<'a> {
    /// Trial with the cases of the catalog; `remark` gets the report about those that fail.
    #[must_use]
    pub fn new(content: &'a Content, catalog: &Catalog, remark: &'a (dyn Fn(&str) + Sync)) -> Self {
        Self {
            content,
            plan: Plan::of(catalog),
            remark,
        }
    }

    /// Tries the file of the bundle; none if `interrupt` ends first. The server has ended when this
    /// returns.
    ///
    /// # Errors
    ///
    /// The server does not start, lists other tools than the manifest, or fails a case.
    pub async fn run(
        self,
        bundle: &Path,
        interrupt: impl Future<Output = ()>,
    ) -> anyhow::Result<Option<Calls>> {
        let Self {
            content,
            mut plan,
            remark,
        } = self;
        let directory = tempfile::Builder::new().prefix("mcpd-bundle-").tempdir()?;
        let place = directory.path().canonicalize()?;
        unpack(File::open(bundle)?, &place)?;
        let manifest = Manifest::read(&fs::read(place.join("manifest.json"))?)?;
        let skipped = prepare(&mut plan, &content.contents, &place);
        let upstream = start(&manifest, &place, &content.values)?;
        let server = Server::builder().source(upstream.prefix("")).start()?;
        let work = async {
            wait_for_list(&server).await?;
            compare(&manifest, &server)?;
            let passed = call(plan, &server, remark).await?;
            Ok(Some(Calls { passed, skipped }))
        };
        let calls = tokio::select! {
            calls = work => calls,
            () = interrupt => Ok(None),
        };
        server.shutdown().await;
        calls
    }
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
        let faults = mcpd_check::faulty_sources(&catalog);
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
async fn call(
    plan: Plan,
    server: &Server,
    remark: &(dyn Fn(&str) + Sync),
) -> anyhow::Result<usize> {
    let report = mcpd_testcase::run(plan, &OneServer(server), &Options::default()).await;
    if !report.is_success() {
        remark(&render::human(&report, &base_directory()));
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
