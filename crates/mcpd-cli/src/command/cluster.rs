//! `mcpd cluster`: the nodes of a cluster, and their rights.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use mcpd_cluster::{Name, NodeStatus, Role, drain, grants, status};
use mcpd_config::{File, cluster_name, cluster_settings};
use serde_json::{Value, json};

use crate::args::{Cluster, ClusterAction, NodeRole};
use crate::exit_code::ExitCode;
use crate::output;

/// Length of the public NKey of a user.
const KEY_LENGTH: usize = 56;

/// Digits of a digest that people compare.
const SHOWN_DIGITS: usize = 12;

/// Shows the nodes, drains one, or prints the rights of one.
pub(crate) async fn run(args: &Cluster, file: &File) -> anyhow::Result<ExitCode> {
    match &args.action {
        ClusterAction::Status {
            json, clustering, ..
        } => {
            let settings = cluster_settings(clustering, file)?;
            let nodes = status(&settings).await?;
            if *json {
                let nodes: Vec<Value> = nodes.iter().map(as_json).collect();
                output::write_json(&nodes)?;
            } else if nodes.is_empty() {
                output::note(&format!(
                    "the cluster `{}` has no nodes\n",
                    settings.cluster
                ));
            } else {
                output::write_foreign(&describe(&nodes), false)?;
            }
        }
        ClusterAction::Drain {
            worker, clustering, ..
        } => {
            let worker: Name = worker.parse().context("drain a worker")?;
            let settings = cluster_settings(clustering, file)?;
            drain(&settings, &worker).await?;
            output::note(&format!("`{worker}` drains\n"));
        }
        ClusterAction::Grants {
            role, node, key, ..
        } => {
            let node: Name = node.parse().context("name the node")?;
            let is_key = key.len() == KEY_LENGTH
                && key.starts_with('U')
                && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if !is_key {
                bail!(
                    "use the key `{key}`: expected the public NKey of a user, which is U and 55 letters and digits"
                );
            }
            let text = grants(role_of(*role), &cluster_name(file)?, &node, key);
            output::write(text.as_bytes())?;
        }
    }
    Ok(ExitCode::Success)
}

fn role_of(role: NodeRole) -> Role {
    match role {
        NodeRole::Worker => Role::Worker,
        NodeRole::Front => Role::Front,
        NodeRole::Operator => Role::Operator,
    }
}

fn as_json(node: &NodeStatus) -> Value {
    let scripts: BTreeMap<&str, &str> = node
        .scripts
        .iter()
        .map(|(path, digest)| (path.as_str(), digest.as_str()))
        .collect();
    json!({
        "node": node.name,
        "kind": kind(node),
        "version": node.version,
        "slots": node.slots,
        "running": node.running,
        "waiting": node.waiting,
        "labels": node.labels,
        "draining": node.is_draining,
        "catalog": node.catalog,
        "scripts": scripts,
    })
}

fn kind(node: &NodeStatus) -> &'static str {
    match node.is_worker {
        true => "worker",
        false => "front",
    }
}

/// Describes the nodes, and then the scripts that workers have different versions of.
fn describe(nodes: &[NodeStatus]) -> String {
    let mut text = String::new();
    for node in nodes {
        write!(text, "{}  {}  mcpd {}", node.name, kind(node), node.version).ok();
        if node.is_worker {
            let NodeStatus {
                running,
                waiting,
                slots,
                ..
            } = node;
            let scripts = node.scripts.len();
            write!(
                text,
                "  {running} of {slots} running, {waiting} waiting  {scripts} scripts"
            )
            .ok();
        }
        if !node.labels.is_empty() {
            write!(text, "  [{}]", node.labels.join(", ")).ok();
        }
        text.push_str(if node.is_draining {
            "  draining\n"
        } else {
            "\n"
        });
    }
    let mut versions: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for node in nodes {
        for (path, digest) in node.scripts.iter() {
            let digests = versions.entry(path).or_default();
            digests.entry(digest).or_default().push(&node.name);
        }
    }
    for (path, digests) in versions.iter().filter(|(_, digests)| digests.len() > 1) {
        writeln!(text, "{path} has {} versions:", digests.len()).ok();
        for (digest, nodes) in digests {
            let digest = digest.strip_prefix("sha256:").unwrap_or(digest);
            let digits: String = digest.chars().take(SHOWN_DIGITS).collect();
            writeln!(text, "  {digits}  {}", nodes.join(", ")).ok();
        }
    }
    text
}
