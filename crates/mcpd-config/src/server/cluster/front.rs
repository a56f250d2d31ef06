//! Front of a cluster, which `[cluster]` makes of a server over HTTP.

use std::convert::Infallible;
use std::future::pending;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;

use anyhow::Context as _;
use mcpd_cluster::{Cluster, SharedTasks};
use mcpd_server::{Server, ServerBuilder};

use super::front_settings;
use super::placement::{place, placement_rules};
use crate::file::File;
use crate::options::{Clustering, Serve};
use crate::server::state_key;
use crate::tables::TaskPlace;
use crate::{directories, private_file};

/// Name of the state key that a front creates.
const OWN_KEY: &str = "cluster-state-key";

/// Front of a cluster for as long as its process runs; none without a cluster.
#[derive(Debug, Clone, Default)]
pub struct FrontNode(Option<Cluster>);

/// Returns the source of the scripts of all workers, if there is a cluster.
///
/// # Errors
///
/// A faulty value, with its place if it is in the file.
fn front(file: &File, options: &Clustering, is_worker: bool) -> anyhow::Result<Option<Cluster>> {
    if options.cluster.is_empty() {
        return Ok(None);
    }
    let rules = placement_rules(file)?;
    let mut hasher = DefaultHasher::new();
    format!("{rules:?}").hash(&mut hasher);
    let place = move |path: &str| place(&rules, path);
    let mut cluster = Cluster::new(front_settings(file, options, is_worker)?);
    if is_worker {
        cluster = cluster.beside_worker();
    }
    Ok(Some(cluster.placed(place, Some(hasher.finish()))))
}

impl FrontNode {
    /// Adds the cluster to a server over HTTP, if there is one: its scripts, the tasks that all
    /// fronts share, and the key with which these seal what another one opens.
    ///
    /// # Errors
    ///
    /// A faulty value, with its place if it is in the file.
    pub(crate) fn join(
        server: ServerBuilder,
        file: &File,
        args: &Serve,
    ) -> anyhow::Result<(ServerBuilder, Self)> {
        let Some(mut cluster) = front(file, &args.clustering, args.worker)? else {
            return Ok((server, Self::default()));
        };
        let mut server = server;
        let key = match &args.serving.state_key_file {
            Some(file) => state_key(file)?,
            None => {
                let key = own_state_key()?;
                server = server.state_secret(key.clone());
                key
            }
        };
        cluster = cluster.with_key(&key);
        if file.tables.cluster.tasks.unwrap_or_default() == TaskPlace::Shared {
            let settings = front_settings(file, &args.clustering, args.worker)?;
            let tasks = SharedTasks::new(settings, replicas(file)?);
            cluster = cluster.with_tasks(tasks.clone());
            server = server.task_store(tasks);
        }
        Ok((server.source(cluster.clone()), Self(Some(cluster))))
    }

    /// Returns the source after a reload of the configuration.
    ///
    /// # Errors
    ///
    /// A faulty value, with its place if it is in the file.
    pub(crate) fn reload(&self, file: &File, args: &Serve) -> anyhow::Result<Option<Cluster>> {
        let cluster = front(file, &args.clustering, args.worker)?;
        Ok(match (cluster, &self.0) {
            (Some(cluster), Some(earlier)) => Some(cluster.in_place_of(earlier)),
            (cluster, _) => cluster,
        })
    }

    /// Exchanges events with the other fronts, if there is a cluster.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the exchange.
    pub async fn share_events(&self, server: &Server) -> Infallible {
        match &self.0 {
            Some(cluster) => cluster.share_events(server).await,
            None => pending().await,
        }
    }

    /// Says that the process stops, so that the other fronts continue with its tasks at once.
    pub fn begin_departure(&self) {
        if let Some(cluster) = &self.0 {
            cluster.begin_departure();
        }
    }

    /// Waits until the other nodes are told, for a moment at most.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn departed(&self) {
        if let Some(cluster) = &self.0 {
            cluster.departed().await;
        }
    }
}

/// Reads the state key of the fronts of this machine, which the first one creates.
fn own_state_key() -> anyhow::Result<Vec<u8>> {
    let file = directories::state()?.join(OWN_KEY);
    if !file.exists() {
        let mut key = [0; 32];
        getrandom::fill(&mut key).context("create a state key: the system has no randomness")?;
        // Another front may be faster, and then its key counts.
        let created = private_file::create(&file, &key);
        created.with_context(|| {
            format!(
                "create the state key `{}`: name one that all fronts share as `state_key_file`",
                file.display()
            )
        })?;
        tracing::info!(
            "created the state key `{}`: fronts on other machines need the same one, as `state_key_file`",
            file.display()
        );
    }
    state_key(&file)
}

/// File of the key that a front without `state_key_file` creates.
pub(crate) fn own_key_file(args: &Serve) -> Option<PathBuf> {
    let is_needed = !args.clustering.cluster.is_empty() && args.serving.state_key_file.is_none();
    let state = directories::state().ok().filter(|_| is_needed)?;
    Some(state.join(OWN_KEY))
}

/// Returns the number of copies of the tasks.
pub(super) fn replicas(file: &File) -> anyhow::Result<usize> {
    let Some(replicas) = &file.tables.cluster.replicas else {
        return Ok(1);
    };
    match replicas.get_ref() {
        count @ 1..=5 => Ok((*count).into()),
        count => Err(file.error(
            replicas.span(),
            &format!("`replicas`: expected 1 to 5 copies, not {count}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use mcpd_cluster::Name;

    use super::*;

    #[test]
    fn front_needs_an_address() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mcpd.toml");
        std::fs::write(&path, "[cluster]\nname = \"prod\"\n").unwrap();
        let file = File::read(&path).unwrap();
        assert!(
            front(&file, &Clustering::default(), false)
                .unwrap()
                .is_none()
        );
        let mut options = Clustering {
            cluster: vec!["localhost".to_owned()],
            node: Some("Front".to_owned()),
        };
        let fault = front(&file, &options, false).unwrap_err();
        assert!(format!("{fault:#}").starts_with("use `--node`: `Front` is not a name"));
        options.node = Some("front".to_owned());
        let cluster = front(&file, &options, false).unwrap().unwrap();
        assert_eq!(cluster.to_string(), "the cluster `prod`");
        options.node = None;
        let [front, both] =
            [false, true].map(|is_worker| front_settings(&file, &options, is_worker).unwrap().node);
        assert_eq!(front, Name::of_host(&format!("{both}-front")));
    }
}
