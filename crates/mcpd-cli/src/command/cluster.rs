//! `mcpd cluster`: the nodes of a cluster, and their rights.

use anyhow::Context as _;
use mcpd_cluster::{Name, Role, describe, drain, grants, status};
use mcpd_config::{File, cluster_name, cluster_settings};

use crate::args::{Cluster, ClusterAction, NodeRole};
use crate::exit_code::ExitCode;
use crate::output;

/// Shows the nodes, drains one, or prints the rights of one.
pub(crate) async fn run(args: &Cluster, file: &File) -> anyhow::Result<ExitCode> {
    match &args.action {
        ClusterAction::Status {
            json, clustering, ..
        } => {
            let settings = cluster_settings(clustering, file)?;
            let nodes = status(&settings).await?;
            if *json {
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
            let text = grants(role_of(*role), &cluster_name(file)?, &node, key)?;
            output::write(text.as_bytes())?;
        }
    }
    Ok(ExitCode::Success)
}

fn role_of(role: NodeRole) -> Role {
    match role {
        NodeRole::Worker => Role::Worker,
        NodeRole::Front => Role::Front,
        NodeRole::Both => Role::Both,
        NodeRole::Operator => Role::Operator,
    }
}
