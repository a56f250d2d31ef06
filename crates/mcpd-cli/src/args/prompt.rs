//! Arguments of `mcpd prompt`.

use clap::Args as ClapArgs;
use clap_complete::engine::ArgValueCompleter;
use mcpd_config::{Combine, Layers};

use super::{OneDirectory, RunLimits, ServerCommand};
use crate::candidates;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Example:
  mcpd prompt ~/tools review language=Rust

The rendered prompt goes to stdout, log messages of the script to stderr.
The exit code is 5 if the prompt does not exist or its script fails.")]
pub(crate) struct Prompt {
    #[command(flatten)]
    pub(crate) place: OneDirectory,
    /// Prompt name, as `mcpd list --prompts` shows it.
    #[arg(add = ArgValueCompleter::new(candidates::prompts))]
    pub(crate) prompt: String,
    /// Arguments.
    #[arg(value_name = "NAME=TEXT")]
    pub(crate) arguments: Vec<String>,
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

impl Combine for Prompt {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.place.combine(layers);
        self.limits.combine(layers);
    }
}
