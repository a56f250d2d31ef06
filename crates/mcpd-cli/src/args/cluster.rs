//! Arguments of `mcpd cluster`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use mcpd_config::options::Clustering;
use mcpd_config::{Combine, Layers};

use super::Configuration;

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    pub(crate) action: ClusterAction,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ClusterAction {
    /// Show the nodes: what they are, what they run, and the versions of their scripts.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        clustering: Clustering,
        #[command(flatten)]
        configuration: Configuration,
    },
    /// Drain a worker: it takes nothing new, and ends when nothing runs any more.
    Drain {
        /// Name of the worker.
        #[arg(value_name = "NODE")]
        worker: String,
        #[command(flatten)]
        clustering: Clustering,
        #[command(flatten)]
        configuration: Configuration,
    },
    /// Print the rights of a node, for `authorization.users` in nats.conf.
    #[command(after_help = "\
Example:
  mcpd cluster grants worker gpu-7 UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4")]
    Grants {
        /// Role of the node.
        role: NodeRole,
        /// Name of the node.
        #[arg(value_name = "NODE")]
        node: String,
        /// Public NKey of the node.
        #[arg(value_name = "KEY")]
        key: String,
        #[command(flatten)]
        configuration: Configuration,
    },
}

/// Role of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NodeRole {
    /// Runs scripts
    Worker,
    /// Serves clients
    Front,
    /// Serves clients and runs scripts, as `mcpd serve --worker` does
    Both,
    /// Asks for the status, and drains workers
    Operator,
}

impl Combine for Cluster {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        match &mut self.action {
            ClusterAction::Status { clustering, .. } | ClusterAction::Drain { clustering, .. } => {
                clustering.combine(layers);
            }
            ClusterAction::Grants { .. } => {}
        }
    }
}
