//! Arguments of `mcpd update`.

use clap::Args as ClapArgs;

use super::Configuration;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd update            show what changed in the sources of mcpd.toml, and ask
  mcpd update --check    only say whether something changed; for CI
  mcpd update --yes      take everything, shown or not

Nothing of a source runs before it is taken. What was taken is in mcpd.lock, beside mcpd.toml.")]
pub(crate) struct Update {
    /// Sources to update, each an address in `roots` of mcpd.toml, or a part of one [default: all]
    #[arg(value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// Take nothing; the exit code is 1 if there is something to take.
    #[arg(long, conflicts_with = "yes")]
    pub(crate) check: bool,
    /// Take the changes without a question.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) configuration: Configuration,
}
