//! Arguments of `mcpd state`.

use clap::Args as ClapArgs;

use super::OneTool;
use crate::config::Layers;

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct State {
    #[command(flatten)]
    pub(crate) tool: OneTool,
    /// Print the MCP result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl State {
    pub(super) fn combine(&mut self, layers: &mut Layers<'_>) {
        self.tool.place.combine(layers);
    }
}
