//! Arguments of `mcpd state`.

use clap::Args as ClapArgs;

use super::OneTool;

#[derive(Debug, ClapArgs)]
pub(crate) struct State {
    #[command(flatten)]
    pub(crate) tool: OneTool,
    /// Print the MCP result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
