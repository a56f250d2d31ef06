//! Arguments of `mcpd discover`.

use clap::Args as ClapArgs;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Each line begins with the name that other commands take in place of a directory:
  mcpd list cursor:github")]
pub(crate) struct Discover {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
