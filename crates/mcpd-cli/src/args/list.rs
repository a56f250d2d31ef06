//! Arguments of `mcpd list`.

use clap::Args as ClapArgs;
use mcpd_config::options::Selecting;
use mcpd_config::{Combine, Layers};

use super::{Confinement, Enabling, Remote, Roots, Scanning, ServerCommand};

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) roots: Roots,
    #[command(flatten)]
    pub(crate) remote: Remote,
    #[command(flatten)]
    pub(crate) enabling: Enabling,
    #[command(flatten)]
    pub(crate) selecting: Selecting,
    #[command(flatten)]
    pub(crate) scanning: Scanning,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
    /// List every file with its status: served, faulty, passed over or ignored, and why.
    #[arg(long, conflicts_with_all = ["prompts", "resources"])]
    pub(crate) all: bool,
    /// List prompts.
    #[arg(long)]
    pub(crate) prompts: bool,
    /// List resources and resource templates.
    #[arg(long, conflicts_with = "prompts")]
    pub(crate) resources: bool,
    /// List what each tool costs a model in tokens, the dearest first: an estimate.
    #[arg(long, conflicts_with_all = ["all", "prompts", "resources"])]
    pub(crate) cost: bool,
    /// Print the MCP result, or with --cost the costs, as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) command: ServerCommand,
}

impl Combine for List {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.roots.combine(layers);
        self.enabling.combine(layers);
        self.scanning.combine(layers);
        self.confinement.combine(layers);
    }
}
