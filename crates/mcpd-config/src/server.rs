//! Servers from combined options and the configuration file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{self, Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_exec::{Config, Executor, Limits};
use mcpd_server::transport::http::{Auth, Token};
use mcpd_server::{
    DEFAULT_KEEP, Database, Interpreters, Policy, Principal, Server, ServerBuilder, Settings,
};

use self::cluster::FrontNode;
use crate::file::File;
use crate::listening::{self, Http};
use crate::lock_file;
use crate::options::{BuiltIn, Confinement, Enabling, RunLimits, Scanning, Serve, Serving};
use crate::{directories, token};

mod approval;
pub(crate) mod audit;
pub(crate) mod changes;
pub(crate) mod clients;
#[cfg(feature = "cluster")]
pub(crate) mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "server/cluster/absent.rs"]
pub(crate) mod cluster;
pub(crate) mod environment;
pub(crate) mod identity;
pub(crate) mod interpreters;
pub(crate) mod kit;
pub(crate) mod oauth;
pub(crate) mod policy;
mod probe;
pub(crate) mod profiles;
pub(crate) mod run_command;
pub(crate) mod search;
pub(crate) mod sources;
pub(crate) mod unmatched;
mod upstreams;
mod user;

/// Process ID of the first process of a container, which reaps all orphans.
const INIT_PID: u32 = 1;

/// Minimum length of the state key in bytes, long enough not to be guessed.
const MIN_STATE_KEY_LEN: usize = 32;

/// Builds a server for commands that send a few requests and exit.
///
/// # Errors
///
/// A faulty value in the file, with its place, or a system that runs no processes.
pub async fn server_for_query<'a>(
    file: &File,
    roots: impl IntoIterator<Item = &'a PathBuf>,
    enabling: &Enabling,
    scanning: &Scanning,
    confinement: &Confinement,
    limits: Limits,
) -> anyhow::Result<ServerBuilder> {
    let database = script_database(scanning);
    let executor = executor(None, confinement.cgroup.as_deref())?;
    let roots: Vec<_> = roots.into_iter().collect();
    let settings =
        reloadable_settings(file, confinement, enabling, limits, Vec::new(), &executor).await?;
    let settings = only_locked(settings, file, scanning, roots.iter().copied())?;
    Ok(server_with_scripts(roots, database, enabling, settings)
        .watch(false)
        .probes(executor.clone())
        .executor(executor))
}

/// Builds a server of one tool for a test, whose script has `variables` besides the configured
/// ones. Several servers share the `executor`.
///
/// # Errors
///
/// A faulty value in the file, with its place.
pub async fn server_for_test(
    file: &File,
    root: &Path,
    tool: &str,
    confinement: &Confinement,
    limits: Limits,
    executor: &Executor,
    variables: &BTreeMap<String, String>,
) -> anyhow::Result<ServerBuilder> {
    let running = execution_settings(file, confinement, limits, Some(executor)).await?;
    let environment = environment::environment(file)?;
    let environment = variables
        .iter()
        .fold(environment, |all, (name, value)| all.set(name, value));
    let server = Server::builder()
        .scripts(root)
        .only(tool)
        .policy(running.policy.environment(environment).without_approval())
        .interpreters(running.interpreters);
    Ok(server
        .watch(false)
        .probes(executor.clone())
        .executor(executor.clone()))
}

/// Builds a server of the configured sources alone; none if no source is configured.
///
/// # Errors
///
/// A faulty value in the file, with its place, or a system that runs no processes.
pub async fn server_for_sources(
    confinement: &Confinement,
    file: &File,
) -> anyhow::Result<Option<ServerBuilder>> {
    if !sources::has_sources(file)? {
        return Ok(None);
    }
    let executor = executor(None, confinement.cgroup.as_deref())?;
    let running = execution_settings(file, confinement, Limits::default(), Some(&executor)).await?;
    let settings = Settings::default().policy(running.policy);
    let settings = sources::add(settings, file, Some(&executor)).await?;
    let server = Server::builder().settings(settings).watch(false);
    Ok(Some(server.probes(executor.clone()).executor(executor)))
}

/// The client that started this process and speaks to it over pipes.
///
/// # Errors
///
/// A faulty rule in the file, with its place.
pub fn local_client(file: &File) -> anyhow::Result<Principal> {
    clients::principal(file, &[], clients::LOCAL, None)
}

/// Builds a server for the client on the pipes of this process, and returns that client.
///
/// # Errors
///
/// A faulty value in the file, with its place, or a system that runs no processes.
pub async fn server_for_stdio(
    options: &Serving,
    file: &File,
) -> anyhow::Result<(ServerBuilder, Principal)> {
    let selected = profiles::requested(file, &options.selecting)?;
    let client = clients::principal(file, &selected, clients::LOCAL, None)?;
    Ok((
        server_for_clients(file, options, secret_files(options)).await?,
        client,
    ))
}

/// Builds a server for clients over HTTP, and returns how HTTP is served.
///
/// # Errors
///
/// A faulty value in the file, with its place; an address without authentication that others can
/// reach; a system that runs no processes.
pub async fn server_for_http(args: &Serve, file: &File) -> anyhow::Result<(ServerBuilder, Http)> {
    let mut http = listening::read_http(file, args)?;
    let node = cluster::session_prefix(file, args)?;
    let server = server_for_clients(file, &args.serving, http_secret_files(file, args)).await?;
    let server = match &node {
        Some(node) => server.node(node),
        None => server,
    };
    http.options.session_prefix = node;
    let (server, front) = FrontNode::join(server, file, args)?;
    http.front = front;
    Ok((server, http))
}

/// Collects the settings that a reload can change: policy, interpreters, sources,
/// identity and `run_command`.
async fn reloadable_settings(
    file: &File,
    confinement: &Confinement,
    enabling: &Enabling,
    limits: Limits,
    hidden: Vec<PathBuf>,
    executor: &Executor,
) -> anyhow::Result<Settings> {
    let running = execution_settings(file, confinement, limits, Some(executor)).await?;
    let settings = Settings::default()
        .policy(hidden.into_iter().fold(running.policy, Policy::hide))
        .interpreters(running.interpreters);
    let settings = sources::add(settings, file, Some(executor)).await?;
    let settings = identity::add(settings, file)?;
    let settings = profiles::add(settings, file)?;
    if enabling.enable.contains(&BuiltIn::RunCommand) {
        return Ok(settings.run_command(run_command::run_command(file, enabling)?));
    }
    if enabling.workdir.is_some() {
        bail!(
            "use `--workdir`: it applies to `run_command`, which is not enabled; add `--enable run_command`"
        );
    }
    Ok(settings)
}

/// Serves only what is approved, if that is wanted.
fn only_locked<'a>(
    settings: Settings,
    file: &File,
    scanning: &Scanning,
    roots: impl IntoIterator<Item = &'a PathBuf>,
) -> anyhow::Result<Settings> {
    Ok(match lock_file::locked(file, &scanning.locking, roots)? {
        Some(locked) => settings.locked(locked),
        None => settings,
    })
}

async fn server_for_clients(
    file: &File,
    options: &Serving,
    hidden: Vec<PathBuf>,
) -> anyhow::Result<ServerBuilder> {
    let database = script_database(&options.scanning);
    let executor = executor(options.concurrency, options.confinement.cgroup.as_deref())?;
    let probes = probe_executor()?;
    let Serving {
        confinement,
        enabling,
        ..
    } = options;
    let limits = limits_with_archive(limits(&options.limits));
    let settings =
        reloadable_settings(file, confinement, enabling, limits, hidden, &probes).await?;
    let settings = only_locked(settings, file, &options.scanning, options.roots.all())?;
    let server = server_with_scripts(options.roots.all(), database, enabling, settings);
    let mut server = with_tasks(server)
        .watch(!options.no_watch)
        .page_size(
            options
                .page_size
                .unwrap_or(mcpd_server::catalog::DEFAULT_PAGE_SIZE),
        )
        .probes(probes)
        .executor(executor);
    if let Some(audit) = audit::audit(file)? {
        server = server.audit(audit);
    }
    if options.search {
        server = server.search(search::search(file)?);
    }
    if options.kit {
        server = kit::add(server, file.kit()?);
    }
    Ok(match &options.state_key_file {
        Some(file) => server.state_secret(state_key(file)?),
        None => server,
    })
}

/// Returns the database of what is known of scripts, if it is used. It is opened while the rest of
/// the server is made.
fn script_database(scanning: &Scanning) -> Option<Database> {
    let file = directories::database().ok().filter(|_| !scanning.no_cache);
    Some(Database::new(file?).open_ahead())
}

fn server_with_scripts<'a>(
    roots: impl IntoIterator<Item = &'a PathBuf>,
    database: Option<Database>,
    enabling: &Enabling,
    settings: Settings,
) -> ServerBuilder {
    // A root that is given twice counts once.
    let mut seen = BTreeSet::new();
    let is_new =
        |root: &&PathBuf| seen.insert(root.canonicalize().unwrap_or_else(|_| root.to_path_buf()));
    let mut server = roots
        .into_iter()
        .filter(is_new)
        .fold(Server::builder(), ServerBuilder::scripts)
        .settings(settings);
    if enabling.enable.contains(&BuiltIn::Runs) {
        server = server.background_tools();
    }
    match database {
        Some(database) => server.database(database),
        None => server,
    }
}

/// Adds background tasks to the server; completed ones outlive this process.
fn with_tasks(server: ServerBuilder) -> ServerBuilder {
    match directories::database() {
        // The tasks use a database connection of their own, which no scan blocks.
        Ok(file) => server.tasks(Database::new(file)),
        Err(_) => server,
    }
}

/// Creates the executor of runs. `concurrency` bounds parallel processes; control groups lie below
/// `cgroup` or, without it, below the group delegated to this process.
///
/// # Errors
///
/// The system runs no processes.
pub fn executor(
    concurrency: Option<NonZeroUsize>,
    cgroup: Option<&Path>,
) -> anyhow::Result<Executor> {
    let mut config = process_owner_config();
    config.concurrency = concurrency.map_or(config.concurrency, NonZeroUsize::get);
    config.cgroup = cgroup.map(Path::to_owned).or_else(mcpd_exec::control_group);
    config.init = std::process::id() == INIT_PID;
    Executor::new(config).context("start the executor")
}

/// Creates the executor of probes, which request descriptions from scripts.
fn probe_executor() -> anyhow::Result<Executor> {
    Executor::new(process_owner_config()).context("start the executor")
}

/// Executor configuration for a process that mcpd owns: it may install what it takes
/// to leave no process behind.
fn process_owner_config() -> Config {
    let mut config = Config::default();
    config.reaper = true;
    config.watchdog = true;
    config
}

/// Execution settings of scripts.
#[derive(Debug)]
#[non_exhaustive]
pub struct ExecutionSettings {
    /// Permissions and limits of scripts.
    pub policy: Policy,
    /// Interpreters of scripts that are not executable.
    pub interpreters: Interpreters,
}

/// Execution settings from the configuration and the flags. Programs that print secrets run with
/// `executor`, and not at all without one.
///
/// # Errors
///
/// A faulty value in the file, with its place.
pub async fn execution_settings(
    file: &File,
    flags: &Confinement,
    limits: Limits,
    executor: Option<&Executor>,
) -> anyhow::Result<ExecutionSettings> {
    Ok(ExecutionSettings {
        policy: policy::policy(file, flags, limits, executor).await?,
        interpreters: interpreters::interpreters(file)?,
    })
}

/// Files with the secrets of a server, which confined scripts cannot read.
fn secret_files(options: &Serving) -> Vec<PathBuf> {
    absolute([&options.state_key_file])
}

/// Files with the secrets of a server over HTTP.
fn http_secret_files(file: &File, args: &Serve) -> Vec<PathBuf> {
    let own = absolute([&args.token_file, &args.tls_key]);
    let nodes = cluster::secret_files(file);
    let own = own
        .into_iter()
        .chain(nodes)
        .chain(cluster::own_key_file(args));
    own.chain(secret_files(&args.serving)).collect()
}

fn absolute<const N: usize>(files: [&Option<PathBuf>; N]) -> Vec<PathBuf> {
    let files = files.into_iter().flatten();
    files.filter_map(|file| path::absolute(file).ok()).collect()
}

/// Reads the state key in `file`, byte for byte.
pub(crate) fn state_key(file: &Path) -> anyhow::Result<Vec<u8>> {
    let key = fs::read(file).with_context(|| format!("read the state key `{}`", file.display()))?;
    if key.len() < MIN_STATE_KEY_LEN {
        bail!(
            "use the state key `{}`: it has {} bytes and needs at least {MIN_STATE_KEY_LEN}; \
             create one with `head -c 32 /dev/urandom`",
            file.display(),
            key.len()
        );
    }
    Ok(key)
}

/// Keeps outputs that are too long for a result for a while.
fn limits_with_archive(limits: Limits) -> Limits {
    let mut limits = limits;
    limits.keep = DEFAULT_KEEP;
    limits
}

/// Limits of one run.
pub fn limits(options: &RunLimits) -> Limits {
    let mut limits = Limits::default();
    limits.wall = options.timeout.map_or(limits.wall, |time| time.0);
    limits
}

/// Credentials that clients must present, and the path of the token that mcpd created for them.
pub(crate) fn authentication(file: &File, args: &Serve) -> anyhow::Result<(Auth, Option<PathBuf>)> {
    let selected = &profiles::requested(file, &args.serving.selecting)?;
    if args.no_auth {
        let anonymous = clients::principal(file, selected, clients::ANONYMOUS, None)?;
        return Ok((Auth::without_credentials(anonymous), None));
    }
    let mut tokens = clients::tokens(file, selected)?;
    let certificates = clients::certificates(file, selected, args.tls_client_ca.is_some())?;
    let oauth = oauth::oauth(file, selected)?;
    let token_file = match &args.token_file {
        _ if args.no_agent_token => None,
        Some(file) => Some(file.clone()),
        None => Some(directories::token()?),
    };
    match &token_file {
        Some(token_file) => {
            let agent = clients::principal(file, selected, clients::AGENT, None)?;
            tokens.push(Token::new(&token::load_or_create(token_file)?, agent));
        }
        None if tokens.is_empty() && certificates.is_empty() && oauth.is_none() => bail!(
            "serve without the token of mcpd: no client could identify itself; add a `[[token]]` as `mcpd token new NAME --write` does, a `[[certificate]]` or `[oauth]`"
        ),
        None => {}
    }
    let mut auth = Auth::tokens(tokens).certificates(certificates);
    if let Some(oauth) = oauth {
        auth = auth.oauth(oauth);
    }
    Ok((auth, token_file))
}
