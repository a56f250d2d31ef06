//! Arguments of `mcpd endpoint`.

use clap::Args as ClapArgs;
use mcpd_config::{Combine, Layers};

use super::{Confinement, Roots, RunLimits, Scanning};

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  echo '{\"action\": \"list_tools\"}' | mcpd endpoint ~/tools
  echo '{\"action\": \"call_tool\", \"tool\": \"greet\", \"arguments\": {\"name\": \"World\"}}' \\
    | mcpd endpoint ~/tools

The exit code is 1 if the response is an error. A tool that ran and failed is a result,
which holds the exit code of the tool.")]
pub(crate) struct Endpoint {
    #[command(flatten)]
    pub(crate) roots: Roots,
    #[command(flatten)]
    pub(crate) scanning: Scanning,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
}

impl Combine for Endpoint {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.roots.combine(layers);
        self.scanning.combine(layers);
        self.confinement.combine(layers);
        self.limits.combine(layers);
    }
}
