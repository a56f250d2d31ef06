//! Arguments of `mcpd token`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use mcpd_config::{Combine, Layers};

use super::Configuration;

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct TokenCommand {
    #[command(subcommand)]
    pub(crate) action: TokenAction,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum TokenAction {
    /// Replace the token of the token file with a new one.
    Rotate {
        /// Token file [default: $XDG_STATE_HOME/mcpd/agent-token]
        #[arg(long, value_name = "FILE", env = "MCPD_TOKEN_FILE")]
        token_file: Option<PathBuf>,
        #[command(flatten)]
        configuration: Configuration,
    },
    /// Create a token for one client, and print the `[[token]]` table for mcpd.toml.
    New {
        /// Name of the client.
        name: String,
    },
}

impl Combine for TokenCommand {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        if let TokenAction::Rotate { token_file, .. } = &mut self.action {
            let in_file = layers.file.token_file();
            layers.value("token_file", "token_file", token_file, in_file);
        }
    }
}
