//! Arguments of `mcpd lsp`.

use clap::Args as ClapArgs;
use mcpd_config::{Combine, Layers};

use super::Configuration;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
An editor starts it; docs/editors.md shows the settings of some.

The exit code is 0 if the editor asked for the end, and 1 if it is gone.")]
pub(crate) struct Lsp {
    /// Talk on standard input and output, which it does in any case; some editors add this.
    #[arg(long, hide = true)]
    stdio: bool,
    /// Rules whose faults are shown, by their codes or first words of them [default: all]
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub(crate) select: Vec<String>,
    /// Rules to leave out; of a rule in both lists, the longer name counts.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub(crate) ignore: Vec<String>,
    #[command(flatten)]
    configuration: Configuration,
}

impl Combine for Lsp {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        let (select, ignore) = layers.file.checked_rules();
        layers.list("check.select", "select", &mut self.select, select);
        layers.list("check.ignore", "ignore", &mut self.ignore, ignore);
    }
}
