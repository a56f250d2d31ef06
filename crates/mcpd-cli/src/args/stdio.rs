//! Arguments of `mcpd stdio`.

use clap::Args as ClapArgs;

use super::Serving;
use crate::config::Layers;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Example:
  echo '{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/list\"}' | mcpd stdio ~/tools")]
pub(crate) struct Stdio {
    #[command(flatten)]
    pub(crate) serving: Serving,
}

impl Stdio {
    pub(super) fn combine(&mut self, layers: &mut Layers<'_>) {
        self.serving.combine(layers);
    }
}
