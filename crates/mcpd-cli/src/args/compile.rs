//! Arguments of `mcpd compile`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use mcpd_config::{Combine, Layers};

use super::Confinement;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
One tool is printed as an object, any other number as an array.
Faults go to stderr, as from `mcpd check`. The exit code is 1 if there is an error or no tool.")]
pub(crate) struct Compile {
    /// Files that describe tools, or directories with such files.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "definition")]
    pub(crate) format: CompileFormat,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
}

impl Combine for Compile {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.confinement.combine(layers);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompileFormat {
    /// With `input_schema`, and one `example` for each parameter.
    Definition,
    /// The MCP definition.
    Mcp,
    /// A function for OpenAI's API.
    Openai,
}
