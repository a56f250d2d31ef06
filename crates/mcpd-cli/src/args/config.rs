//! Arguments of `mcpd config`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use mcpd_config::{Combine, Layers};

use super::{Configuration, Serve};

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) action: ConfigAction,
}

impl Combine for Config {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        if let ConfigAction::Show(show) = &mut self.action {
            show.serve.combine(layers);
        }
    }
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ConfigAction {
    /// Check configuration files; the exit code is 1 on a fault. Commands that print secrets are
    /// not run.
    Check {
        /// Files to check [default: the file that mcpd would read]
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        configuration: Configuration,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the effective settings of `mcpd serve`, without secrets.
    Show(Box<ConfigShow>),
    /// Print the JSON Schema of mcpd.toml.
    Schema,
}

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct ConfigShow {
    /// Arguments of `mcpd serve`.
    #[command(flatten)]
    pub(crate) serve: Serve,
    /// Show the origin of each setting.
    #[arg(long)]
    pub(crate) origin: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Denied {
    Warnings,
}
