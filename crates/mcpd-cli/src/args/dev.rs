//! Arguments of `mcpd dev`.

use clap::Args as ClapArgs;
use mcpd_config::options::Serve;

/// Options of a server for the author of its scripts.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Dev {
    #[command(flatten)]
    pub(crate) serve: Serve,
}

/// Help after the options, in place of that of `mcpd serve`.
pub(crate) const AFTER_HELP: &str = "\
Examples:
  mcpd dev ~/tools
  mcpd dev ~/tools --port 0

Every change of a tool, its faults, and every call with its output are shown, and the console at
/console has a form for each tool. When a script is
saved, its last call is made again. At a terminal, a letter and Enter is a command: r makes the
last call again, i opens the MCP Inspector, q ends.";
