//! Arguments of `mcpd stdio`.

use clap::Args as ClapArgs;
use mcpd_config::{Combine, Layers};

use super::Serving;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Example:
  echo '{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/list\"}' | mcpd stdio ~/tools")]
pub(crate) struct Stdio {
    #[command(flatten)]
    pub(crate) serving: Serving,
}

impl Combine for Stdio {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.serving.combine(layers);
    }
}
