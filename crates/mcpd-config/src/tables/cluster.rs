//! Table of the cluster: the servers of NATS, the names and credentials of this node.

use std::num::NonZeroU32;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::{Seconds, Spanned};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[cluster]`")]
#[cfg_attr(
    not(feature = "cluster"),
    expect(dead_code, reason = "a cluster reads it")
)]
pub(crate) struct ClusterTable {
    /// Addresses of NATS servers, such as `tls://nats.internal:4222`; one of them is enough to
    /// find the others. With it, `mcpd serve` also serves the scripts of the workers.
    #[serde(default)]
    pub(crate) url: Vec<Spanned<String>>,
    /// Name of the cluster: nodes with another name on the same servers have nothing to do with
    /// each other.
    #[schemars(extend("default" = "default"))]
    pub(crate) name: Option<Spanned<String>>,
    /// Name of this node, of `a` to `z`, `0` to `9` and `-`; that of the host without it.
    pub(crate) node: Option<Spanned<String>>,
    /// File with the seed of the NKey of this node.
    pub(crate) key_file: Option<Spanned<PathBuf>>,
    /// File with the JWT of this node and its key, as `nsc` writes it.
    pub(crate) credentials_file: Option<Spanned<PathBuf>>,
    /// File of the certificate of this node, in PEM.
    pub(crate) certificate: Option<Spanned<PathBuf>>,
    /// File of the private key of that certificate, in PEM.
    pub(crate) key: Option<Spanned<PathBuf>>,
    /// File of the authorities that certify the servers, in PEM, beside those of the system.
    pub(crate) ca: Option<Spanned<PathBuf>>,
    /// Labels of a worker, such as `gpu`, for `on` in `[[tool]]` of its fronts.
    #[serde(default)]
    pub(crate) labels: Vec<Spanned<String>>,
    /// Patterns of the scripts that a worker announces and runs; all without it.
    pub(crate) tools: Option<Vec<Spanned<String>>>,
    /// Names of the fronts that a worker runs scripts for; all without it. Each run is confirmed
    /// by its front.
    pub(crate) accept: Option<Vec<Spanned<String>>>,
    /// Number of fronts among which rates, bursts and concurrency of each caller are divided, as
    /// each front counts for itself.
    #[schemars(extend("default" = 1, "x-reload" = true))]
    pub(crate) fronts: Option<NonZeroU32>,
    /// Time without a connection after which a worker ends what it runs, in seconds. All nodes
    /// need the same.
    #[schemars(extend("default" = 10))]
    pub(crate) lease: Option<Seconds>,
    /// Where a front keeps background tasks: `shared`, in a bucket of JetStream that all fronts
    /// read, or `front`, in its own database.
    pub(crate) tasks: Option<TaskPlace>,
    /// Number of NATS servers that keep a copy of the tasks, 1 to 5. It counts when the first front
    /// makes the bucket.
    #[schemars(extend("default" = 1))]
    pub(crate) replicas: Option<Spanned<u8>>,
}

/// Place of background tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TaskPlace {
    /// Bucket that all fronts read.
    #[default]
    Shared,
    /// Database of the front that runs them.
    Front,
}

/// Runs that may be made again on another worker, when it is not known how theirs has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Rerun {
    /// None.
    Never,
    /// Those of scripts that only read.
    ReadOnly,
    /// Those of idempotent scripts as well.
    Idempotent,
}
