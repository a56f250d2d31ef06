//! Arguments of `mcpd doctor`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use mcpd_clients::Client;
use mcpd_config::{Combine, Layers};

use super::Configuration;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd doctor
  mcpd doctor ~/tools
  mcpd doctor --client claude-desktop
  mcpd doctor --cluster
  mcpd doctor ~/tools --fix")]
pub(crate) struct Doctor {
    /// Directories with scripts, whose interpreters are looked for as each client would.
    #[arg(value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Only the entries and the environment of this client, besides that of the shell. Without
    /// directories, those that the client serves.
    #[arg(
        long,
        value_name = "CLIENT",
        value_parser = PossibleValuesParser::new(Client::all().iter().map(Client::name)),
        hide_possible_values = true
    )]
    pub(crate) client: Option<String>,
    /// Examine the cluster in place of this machine: the reach of its servers, the rights of this
    /// node, versions and clocks of all nodes. The exit code is 1 if something must be corrected.
    /// The address of a server may follow [default: `url` of `[cluster]`]
    #[cfg(feature = "cluster")]
    #[arg(
        long,
        value_name = "URL",
        num_args = 0..=1,
        conflicts_with_all = ["directories", "client", "fix"]
    )]
    pub(crate) cluster: Option<Vec<String>>,
    /// Name under which the cluster is examined [default: the host name]
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "NAME", env = "MCPD_NODE")]
    pub(crate) node: Option<String>,
    #[command(flatten)]
    pub(crate) configuration: Configuration,
    /// Control group delegated to mcpd, below which it limits the memory of each run [default:
    /// its own control group, if systemd has delegated it]
    #[arg(long, value_name = "DIR", env = "MCPD_CGROUP")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Correct what is safe: permissions and line endings of scripts, modes of private files, and
    /// entries of clients that name a program or directory that is gone. Shows it and asks before.
    #[arg(long, conflicts_with = "json")]
    pub(crate) fix: bool,
    /// Correct without asking.
    #[arg(long, short, requires = "fix")]
    pub(crate) yes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Combine for Doctor {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        let cgroup = layers.file.cgroup();
        layers.value("cgroup", "cgroup", &mut self.cgroup, cgroup);
    }
}
