//! Arguments of `mcpd catalog`.

use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Catalog {
    #[command(subcommand)]
    pub(crate) action: CatalogAction,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum CatalogAction {
    /// List the cached definitions.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the cached definitions of one tool.
    Show {
        /// Path of the tool below its directory, such as `math/add`.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove the definitions of one tool from the cache, so that its script is asked again.
    Forget {
        /// Path of the tool below its directory, such as `math/add`.
        #[arg(conflicts_with = "all")]
        name: Option<String>,
        /// Remove the definitions of all tools.
        #[arg(long)]
        all: bool,
    },
}
