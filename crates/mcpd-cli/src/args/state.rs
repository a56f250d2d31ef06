//! Arguments of `mcpd state`.

use clap::Args as ClapArgs;
use mcpd_config::{Combine, Layers};

use super::{OneTool, ServerCommand};

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct State {
    #[command(flatten)]
    pub(crate) tool: OneTool,
    /// Print the MCP result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) command: ServerCommand,
}

impl Combine for State {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.tool.place.combine(layers);
    }
}
