//! Options of the nodes of a cluster.

use std::num::NonZeroUsize;

use clap::Args as ClapArgs;

use super::{Confinement, Roots, RunLimits, Scanning, seconds, whole_number};
use crate::layers::{Combine, Layers};
use crate::value::Seconds;

pub(super) const CLUSTER: &str = "Cluster options";

/// Options of every node.
#[derive(Debug, Clone, Default, ClapArgs)]
#[non_exhaustive]
pub struct Clustering {
    /// Address of a NATS server of the cluster, such as nats://HOST:4222 or tls://HOST:4222,
    /// repeatable
    #[arg(
        long,
        value_name = "URL",
        env = "MCPD_CLUSTER",
        value_delimiter = ',',
        help_heading = CLUSTER
    )]
    pub cluster: Vec<String>,
    /// Name of this node in the cluster [default: the host name; of a front with `-front`]
    #[arg(long, value_name = "NAME", env = "MCPD_NODE", help_heading = CLUSTER)]
    pub node: Option<String>,
}

impl Combine for Clustering {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        let table = &layers.file.tables.cluster;
        let urls = table.url.iter().map(|url| url.get_ref().clone()).collect();
        let urls = Some(urls).filter(|urls: &Vec<String>| !urls.is_empty());
        layers.list("cluster.url", "cluster", &mut self.cluster, urls);
        let node = table.node.as_ref().map(|node| node.get_ref().clone());
        layers.value("cluster.node", "node", &mut self.node, node);
    }
}

/// Options of every worker.
#[derive(Debug, Clone, Default, ClapArgs)]
#[non_exhaustive]
pub struct Working {
    /// Label of a worker that fronts can ask for, repeatable.
    #[arg(
        long = "label",
        value_name = "LABEL",
        env = "MCPD_LABELS",
        value_delimiter = ',',
        help_heading = CLUSTER
    )]
    pub labels: Vec<String>,
    /// Time for which runs of a worker may go on after SIGTERM [default: 60]
    #[arg(
        long,
        value_name = "SECONDS",
        env = "MCPD_DRAIN_TIMEOUT",
        value_parser = seconds,
        help_heading = CLUSTER
    )]
    pub drain_timeout: Option<Seconds>,
}

impl Combine for Working {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        let labels = layers.file.tables.cluster.labels.iter();
        let labels = labels.map(|label| label.get_ref().clone()).collect();
        let labels = Some(labels).filter(|labels: &Vec<String>| !labels.is_empty());
        layers.list("cluster.labels", "labels", &mut self.labels, labels);
    }
}

/// Options of a worker.
#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Example:
  mcpd worker ~/tools --cluster nats://nats.internal:4222 --label gpu

SIGTERM drains the worker: it takes nothing new, and ends when nothing runs any more.")]
#[non_exhaustive]
pub struct Worker {
    /// Directories to run scripts of.
    #[command(flatten)]
    pub roots: Roots,
    /// Connection to the cluster.
    #[command(flatten)]
    pub clustering: Clustering,
    /// Labels and draining.
    #[command(flatten)]
    pub working: Working,
    /// Scan for scripts.
    #[command(flatten)]
    pub scanning: Scanning,
    /// Do not reload when files in the directories change.
    #[arg(long, env = "MCPD_NO_WATCH")]
    pub no_watch: bool,
    /// Maximum number of scripts that run at the same time [default: 4 per core]
    #[arg(
        long,
        value_name = "NUMBER",
        env = "MCPD_CONCURRENCY",
        value_parser = whole_number
    )]
    pub concurrency: Option<NonZeroUsize>,
    /// Limits of one run.
    #[command(flatten)]
    pub limits: RunLimits,
    /// Sandbox of scripts.
    #[command(flatten)]
    pub confinement: Confinement,
}

impl Combine for Worker {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.roots.combine(layers);
        self.clustering.combine(layers);
        self.working.combine(layers);
        let tables = &layers.file.tables;
        self.scanning.combine(layers);
        layers.switch_off("watch", "no_watch", &mut self.no_watch, tables.watch);
        let concurrency = tables.concurrency;
        layers.value(
            "concurrency",
            "concurrency",
            &mut self.concurrency,
            concurrency,
        );
        self.limits.combine(layers);
        self.confinement.combine(layers);
    }
}
