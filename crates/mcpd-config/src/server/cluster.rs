//! Node of a cluster: the front that `[cluster]` makes of a server, and a worker. Addresses, names
//! and patterns are checked here, before anything connects.

mod front;
mod placement;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use mcpd_cluster::{Credentials, Name, Settings, Worker};
use mcpd_scriptspec::ScriptPath;
use mcpd_server::policy::CallPattern;
use mcpd_server::{Server, ServerBuilder};
use tokio::sync::watch;

pub use self::front::FrontNode;
pub(crate) use self::front::own_key_file;
use self::front::replicas;
use self::placement::placement_rules;
use super::{
    audit, execution_settings, executor, limits, limits_with_archive, only_locked, probe_executor,
    script_database, server_with_scripts,
};
use crate::file::File;
use crate::options::{Clustering, Enabling, Serve, Worker as WorkerOptions, Working};
use crate::tables::ClusterTable;
use crate::value::Spanned;
use crate::variables::variable;

/// Schemes of the addresses of NATS servers; `tls` encrypts.
const SCHEMES: [&str; 2] = ["nats", "tls"];
/// Length of the public NKey of a user.
const PUBLIC_KEY_LENGTH: usize = 56;

/// Returns the beginning of the ids of sessions, which is the name of this node if there is a
/// cluster: a balancer can route by it.
///
/// # Errors
///
/// A faulty value, with its place if it is in the file.
pub(crate) fn session_prefix(file: &File, args: &Serve) -> anyhow::Result<Option<String>> {
    match args.clustering.cluster.is_empty() {
        true => Ok(None),
        false => Ok(Some(
            front_settings(file, &args.clustering, args.worker)?
                .node
                .to_string(),
        )),
    }
}

/// Builds the server of a worker, and the worker that serves it to fronts.
///
/// # Errors
///
/// A faulty value, with its place if it is in the file, or a system that runs no processes.
pub async fn server_for_worker(
    options: &WorkerOptions,
    file: &File,
) -> anyhow::Result<(ServerBuilder, Worker)> {
    let worker = worker(file, &options.clustering, &options.working)?;
    let database = script_database(&options.scanning);
    let executor = executor(options.concurrency, options.confinement.cgroup.as_deref())?;
    let limits = limits_with_archive(limits(&options.limits));
    let probes = probe_executor()?;
    let running = execution_settings(file, &options.confinement, limits, Some(&probes)).await?;
    let settings = mcpd_server::Settings::default()
        .policy(
            secret_files(file)
                .into_iter()
                .fold(running.policy, mcpd_server::Policy::hide),
        )
        .interpreters(running.interpreters);
    let settings = only_locked(settings, file, &options.scanning, options.roots.all())?;
    let (roots, enabling) = (options.roots.all(), Enabling::default());
    let mut server = server_with_scripts(roots, database, &enabling, settings)
        .watch(!options.no_watch)
        .probes(probes)
        .executor(executor);
    if let Some(audit) = audit::audit(file)? {
        server = server.audit(audit);
    }
    let node = cluster_settings(&options.clustering, file)?.node;
    Ok((server.node(node.to_string()), worker))
}

/// Runs scripts of a server for the other fronts of its cluster, if it is to be a worker as well,
/// until `stop`, and then until none runs any more.
///
/// # Errors
///
/// A faulty value, with its place if it is in the file, or no cluster.
///
/// # Cancel safety
///
/// Dropping the future cancels what runs for other fronts.
pub async fn work(
    args: &Serve,
    file: &File,
    server: &Server,
    stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let stopped = async |mut stop: watch::Receiver<bool>| {
        // A sender that is gone stops it as well.
        stop.wait_for(|is_stopped| *is_stopped).await.ok();
    };
    if args.worker {
        let worker = worker(file, &args.clustering, &args.working)?;
        worker.serve(server.clone(), stopped(stop.clone())).await?;
        tracing::info!("this server runs nothing more for other fronts");
    }
    // One that the operator has drained goes on as a front.
    stopped(stop).await;
    Ok(())
}

/// Returns the worker of a server.
fn worker(file: &File, clustering: &Clustering, working: &Working) -> anyhow::Result<Worker> {
    let settings = cluster_settings(clustering, file)?;
    let mut worker = Worker::new(settings).labels(labels(file, working)?);
    let table = &file.tables.cluster;
    if let Some(patterns) = &table.tools {
        let patterns = patterns.iter().map(|one| pattern(file, "tools", one));
        let patterns = patterns.collect::<anyhow::Result<Vec<_>>>()?;
        worker = worker.scripts(move |path| matches_any(&patterns, path));
    }
    if let Some(fronts) = &table.accept {
        let fronts = fronts.iter().map(|one| front_name(file, one));
        worker = worker.accept(fronts.collect::<anyhow::Result<Vec<_>>>()?);
    }
    Ok(match working.drain_timeout {
        Some(timeout) => worker.drain_timeout(timeout.0),
        None => worker,
    })
}

/// Returns the name of a front in `accept`.
fn front_name(file: &File, written: &Spanned<String>) -> anyhow::Result<Name> {
    let text = written.get_ref();
    // A receiver of NATS never learns the key of a sender.
    if text.len() == PUBLIC_KEY_LENGTH && text.starts_with('U') {
        let what = "`accept`: expected the name of a front, not a key; the rights that `mcpd cluster grants` prints bind a name to its key";
        return Err(file.error(written.span(), what));
    }
    name(file, "accept", written)
}

/// Settings of a node that must have a cluster.
///
/// # Errors
///
/// A faulty value, with its place if it is in the file, or no cluster.
pub fn cluster_settings(options: &Clustering, file: &File) -> anyhow::Result<Settings> {
    if options.cluster.is_empty() {
        bail!(
            "connect to the cluster: name a NATS server as `--cluster URL`, or in `url` of `[cluster]`"
        );
    }
    settings(file, options)
}

/// Settings for an examination of the cluster at `urls`; without them, at those of the variable
/// `MCPD_CLUSTER` or the file.
///
/// # Errors
///
/// A faulty value, with its place if it is in the file, or no cluster.
pub fn examined_cluster(
    urls: &[String],
    node: Option<&str>,
    file: &File,
) -> anyhow::Result<Settings> {
    let table = &file.tables.cluster;
    let mut options = Clustering {
        cluster: urls.to_vec(),
        node: node.map(str::to_owned),
    };
    if options.cluster.is_empty()
        && let Some(urls) = variable("MCPD_CLUSTER")?
    {
        options.cluster = urls.split(',').map(str::to_owned).collect();
    }
    if options.cluster.is_empty() {
        options.cluster = table.url.iter().map(|url| url.get_ref().clone()).collect();
    }
    if options.node.is_none() {
        options.node = table.node.as_ref().map(|node| node.get_ref().clone());
    }
    cluster_settings(&options, file)
}

/// Returns the name of the cluster in the file.
///
/// # Errors
///
/// The name is faulty.
pub fn cluster_name(file: &File) -> anyhow::Result<Name> {
    settings(file, &Clustering::default()).map(|settings| settings.cluster)
}

/// Checks the table, also where no cluster is used.
///
/// # Errors
///
/// A faulty value, with its place.
pub(crate) fn check(file: &File) -> anyhow::Result<()> {
    let table = &file.tables.cluster;
    let options = Clustering {
        cluster: table.url.iter().map(|url| url.get_ref().clone()).collect(),
        ..Clustering::default()
    };
    settings(file, &options)?;
    placement_rules(file)?;
    replicas(file)?;
    for one in table.labels.iter() {
        label(file, one)?;
    }
    for one in table.tools.iter().flatten() {
        pattern(file, "tools", one)?;
    }
    for one in table.accept.iter().flatten() {
        front_name(file, one)?;
    }
    Ok(())
}

/// Files with the credentials of this node, which confined scripts cannot read.
pub(crate) fn secret_files(file: &File) -> Vec<PathBuf> {
    let table = &file.tables.cluster;
    let files = [&table.key_file, &table.credentials_file, &table.key];
    let files = files.into_iter().flatten();
    files.map(|path| file.absolute(path.get_ref())).collect()
}

/// Returns the settings of a front. Without a name it has that of its machine, and unless it is a
/// worker as well not the name that a worker on this machine has.
fn front_settings(file: &File, options: &Clustering, is_worker: bool) -> anyhow::Result<Settings> {
    let mut settings = settings(file, options)?;
    if options.node.is_none() && !is_worker {
        settings.node = Name::of_host(&format!("{}-front", settings.node));
    }
    Ok(settings)
}

/// Returns the settings of this node.
fn settings(file: &File, options: &Clustering) -> anyhow::Result<Settings> {
    let table = &file.tables.cluster;
    for (place, url) in options.cluster.iter().enumerate() {
        let written = table
            .url
            .get(place)
            .filter(|written| written.get_ref() == url);
        check_url(url).map_err(|what| match written {
            Some(written) => file.error(written.span(), &format!("`url`: {what}")),
            None => anyhow::anyhow!("use `--cluster`: {what}"),
        })?;
    }
    let node = match (&options.node, &table.node) {
        (Some(node), Some(written)) if node == written.get_ref() => name(file, "node", written)?,
        (Some(node), _) => node.parse().context("use `--node`")?,
        (None, _) => Name::of_host(&host_name()),
    };
    let mut settings = Settings::new(options.cluster.clone(), node);
    if let Some(written) = &table.name {
        settings.cluster = name(file, "name", written)?;
    }
    settings.credentials = credentials(file, table)?;
    settings.ca = existing(file, "ca", table.ca.as_ref())?;
    if let Some(lease) = table.lease {
        settings.lease = lease.0;
    }
    Ok(settings)
}

/// Checks the address of a NATS server.
fn check_url(url: &str) -> Result<(), String> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
    if !SCHEMES.contains(&scheme) {
        return Err(format!(
            "`{url}`: expected an address such as `nats://HOST:4222` or `tls://HOST:4222`"
        ));
    }
    // Credentials would be in the process list and in logs.
    if rest.contains('@') {
        return Err(
            "expected an address without a user; name the credentials in `[cluster]`".to_owned(),
        );
    }
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    match host.is_empty() || host.starts_with(':') || host.contains(char::is_whitespace) {
        true => Err(format!("`{url}`: expected the name of a host")),
        false => Ok(()),
    }
}

fn name(file: &File, key: &str, written: &Spanned<String>) -> anyhow::Result<Name> {
    let wrong = |error| file.error(written.span(), &format!("`{key}`: {error}"));
    written.get_ref().parse().map_err(wrong)
}

fn credentials(file: &File, table: &ClusterTable) -> anyhow::Result<Vec<Credentials>> {
    let key_file = existing(file, "key_file", table.key_file.as_ref())?;
    let credentials = existing(file, "credentials_file", table.credentials_file.as_ref())?;
    let certificate = existing(file, "certificate", table.certificate.as_ref())?;
    let key = existing(file, "key", table.key.as_ref())?;
    if let (Some(_), Some(second)) = (&table.key_file, &table.credentials_file) {
        let what = "`credentials_file`: it has a key already; leave out `key_file`";
        return Err(file.error(second.span(), what));
    }
    let mut all: Vec<_> = key_file.into_iter().map(Credentials::KeyFile).collect();
    all.extend(credentials.map(Credentials::CredentialsFile));
    match (certificate, key) {
        (Some(certificate), Some(key)) => all.push(Credentials::certificate(certificate, key)),
        (None, None) => {}
        _ => {
            let alone = table.certificate.as_ref().or(table.key.as_ref());
            let span = alone.map(|path| path.span()).unwrap_or_default();
            return Err(file.error(span, "`certificate` and `key` need each other"));
        }
    }
    Ok(all)
}

/// Returns the path of a file that must be there.
fn existing(
    file: &File,
    key: &str,
    path: Option<&Spanned<PathBuf>>,
) -> anyhow::Result<Option<PathBuf>> {
    let Some(path) = path else {
        return Ok(None);
    };
    let absolute = file.absolute(path.get_ref());
    let wrong = |error| file.failure(key, path.span(), &error);
    std::fs::metadata(&absolute)
        .with_context(|| format!("read `{}`", absolute.display()))
        .map_err(wrong)?;
    Ok(Some(absolute))
}

/// Returns the labels of a worker. They are words of messages, as names are.
fn labels(file: &File, options: &Working) -> anyhow::Result<Vec<String>> {
    let written = &file.tables.cluster.labels;
    for text in &options.labels {
        match written.iter().find(|written| written.get_ref() == text) {
            Some(written) => label(file, written)?,
            None => {
                text.parse::<Name>().context("use `--label`")?;
            }
        }
    }
    Ok(options.labels.clone())
}

fn label(file: &File, written: &Spanned<String>) -> anyhow::Result<()> {
    name(file, "labels", written).map(drop)
}

fn pattern(file: &File, key: &str, written: &Spanned<String>) -> anyhow::Result<CallPattern> {
    let wrong = |error| file.failure(key, written.span(), &error);
    CallPattern::default()
        .tool(written.get_ref())
        .map_err(anyhow::Error::from)
        .map_err(wrong)
}

fn matches_any(patterns: &[CallPattern], path: &str) -> bool {
    let path: Option<ScriptPath> = path.parse().ok();
    path.is_some_and(|path| patterns.iter().any(|one| one.matches_tool(&path)))
}

/// Returns the name of this machine.
#[cfg(unix)]
fn host_name() -> String {
    let names = rustix::system::uname();
    names.nodename().to_string_lossy().into_owned()
}

/// Returns the name of this machine.
#[cfg(not(unix))]
fn host_name() -> String {
    let name = crate::variables::variable("COMPUTERNAME");
    name.ok().flatten().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, File) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mcpd.toml");
        std::fs::write(&path, text).unwrap();
        let file = File::read(&path).unwrap();
        (directory, file)
    }

    #[track_caller]
    fn check_fault(text: &str, expected: &str) {
        let (_directory, file) = file(text);
        let fault = check(&file).unwrap_err().to_string();
        let (place, what) = expected.split_once(' ').unwrap();
        assert!(fault.contains(place) && fault.ends_with(what), "{fault}");
    }

    #[test]
    fn faults_of_the_table_have_their_places() {
        check_fault(
            "[cluster]\nurl = [\"nats://a:4222\", \"http://b\"]\n",
            "2:25: `url`: `http://b`: expected an address such as `nats://HOST:4222` or `tls://HOST:4222`",
        );
        check_fault(
            "[cluster]\nurl = [\"nats://ada:secret@b\"]\n",
            "2:8: `url`: expected an address without a user; name the credentials in `[cluster]`",
        );
        check_fault(
            "[cluster]\nurl = [\"nats://:4222\"]\n",
            "2:8: `url`: `nats://:4222`: expected the name of a host",
        );
        check_fault(
            "[cluster]\nname = \"a.b\"\n",
            "2:8: `name`: `a.b` is not a name: use 1 to 32 of `a` to `z`, `0` to `9` and `-`",
        );
        check_fault(
            "[cluster]\ncertificate = \"mcpd.toml\"\n",
            "2:15: `certificate` and `key` need each other",
        );
        check_fault(
            "[cluster]\nkey_file = \"mcpd.toml\"\ncredentials_file = \"mcpd.toml\"\n",
            "3:20: `credentials_file`: it has a key already; leave out `key_file`",
        );
        check_fault(
            "[[tool]]\nmatch = \"a/**\"\non = [\"GPU\"]\n",
            "3:7: `on`: `GPU` is not a name: use 1 to 32 of `a` to `z`, `0` to `9` and `-`",
        );
        let (_directory, file) = file("[cluster]\nca = \"absent.pem\"\n");
        let fault = check(&file).unwrap_err().to_string();
        assert!(
            fault.contains("2:6: in [cluster]: `ca`: failed to read `"),
            "{fault}"
        );
    }
}
