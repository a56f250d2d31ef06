//! Arguments of `mcpd doctor`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use mcpd_config::{Combine, Layers};

use super::Configuration;

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Doctor {
    #[command(flatten)]
    configuration: Configuration,
    /// Control group delegated to mcpd, below which it limits the memory of each run [default:
    /// its own control group, if systemd has delegated it]
    #[arg(long, value_name = "DIR", env = "MCPD_CGROUP")]
    pub(crate) cgroup: Option<PathBuf>,
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
