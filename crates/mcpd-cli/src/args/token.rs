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
    New(NewToken),
    /// List the clients that have a token: those in mcpd.toml, and the one that mcpd makes.
    List {
        /// Token file [default: $XDG_STATE_HOME/mcpd/agent-token]
        #[arg(long, value_name = "FILE", env = "MCPD_TOKEN_FILE")]
        token_file: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        configuration: Configuration,
    },
    /// Remove a client and its token from mcpd.toml.
    Revoke {
        /// Name of the client.
        name: String,
        #[command(flatten)]
        configuration: Configuration,
    },
}

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct NewToken {
    /// Name of the client.
    pub(crate) name: String,
    /// Write the table to mcpd.toml instead of printing it; a file that is missing is created.
    #[arg(long)]
    pub(crate) write: bool,
    /// Patterns of the tools, prompts and resources that the client may use [default: all]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    /// Profile of the configuration that selects what the client may use.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    #[command(flatten)]
    configuration: Configuration,
}

impl Combine for TokenCommand {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        if let TokenAction::Rotate { token_file, .. } | TokenAction::List { token_file, .. } =
            &mut self.action
        {
            let in_file = layers.file.token_file();
            layers.value("token_file", "token_file", token_file, in_file);
        }
    }
}
