//! Arguments of `mcpd console`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
The link works once, within ten minutes. The server must have been started with `--console`.")]
pub(crate) struct Console {
    /// URL of the server [default: the server that runs on this machine]
    pub(crate) url: Option<String>,
    /// File with the token of the server [default: that of the server on this machine]
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) token_file: Option<PathBuf>,
}
