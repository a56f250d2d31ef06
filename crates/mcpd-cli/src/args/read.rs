//! Arguments of `mcpd read`.

use clap::Args as ClapArgs;
use clap_complete::engine::ArgValueCompleter;
use mcpd_config::{Combine, Layers};

use super::{OneDirectory, RunLimits, ServerCommand};
use crate::candidates;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Example:
  mcpd read ~/tools disk://usage

The contents go to stdout unchanged, log messages of the script to stderr.
The exit code is 5 if the resource does not exist or its script fails.")]
pub(crate) struct Read {
    #[command(flatten)]
    pub(crate) place: OneDirectory,
    /// URI of the resource, as `mcpd list --resources` shows it; a template needs values for its
    /// variables.
    #[arg(value_name = "URI", add = ArgValueCompleter::new(candidates::resources))]
    pub(crate) uri: String,
    /// Print the MCP result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print control characters of the result to a terminal too.
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
    #[command(flatten)]
    pub(crate) command: ServerCommand,
}

impl Combine for Read {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.place.combine(layers);
        self.limits.combine(layers);
    }
}
