//! Arguments of `mcpd describe`.

use clap::Args as ClapArgs;
use mcpd_config::{Combine, Layers};

use super::{BESIDE_SCRIPTS, Enabling, OneTool, ServerCommand};

#[derive(Debug, Clone, ClapArgs)]
#[command(mut_arg("enable", |enable| enable.help(BESIDE_SCRIPTS)))]
pub(crate) struct Describe {
    #[command(flatten)]
    pub(crate) tool: OneTool,
    #[command(flatten)]
    pub(crate) enabling: Enabling,
    /// Print the MCP definition as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) command: ServerCommand,
}

impl Combine for Describe {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.tool.place.combine(layers);
        self.enabling.combine(layers);
    }
}
