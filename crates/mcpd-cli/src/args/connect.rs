//! Arguments of `mcpd connect`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args as ClapArgs;

/// Heading of the options for OAuth.
const LOGIN: &str = "OAuth login";

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd connect https://tools.example/mcp                    as an MCP client starts it
  mcpd connect --login https://tools.example/mcp            log in before that, in a terminal
  mcpd connect --header 'X-Api-Key: ${KEY}' https://tools.example/mcp

A token comes from --token-file or --token-env; for a server on this machine also from MCPD_TOKEN.
Without one, a server that asks for a token is logged in to by OAuth.")]
pub(crate) struct Connect {
    /// URL of the MCP server.
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Header of every request, such as `Name: value`; `${NAME}` is the value of a variable.
    #[arg(long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// Variable with the token [default: MCPD_TOKEN, for a server on this machine without other
    /// credentials]
    #[arg(long, value_name = "NAME", conflicts_with = "token_file")]
    pub(crate) token_env: Option<String>,
    /// File with the token.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Allow credentials over `http` to another machine: networks on the way can read them.
    #[arg(long)]
    pub(crate) allow_http: bool,
    /// Connect to a socket in the file system; the host of the URL is only a name then.
    #[cfg(unix)]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Time for which a server that is down is tried again, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) retry_for: u32,
    /// Maximum size of a message, in bytes.
    #[arg(long, value_name = "BYTES", default_value = "268435456")]
    pub(crate) max_message: NonZeroUsize,
    /// Log in now, and exit.
    #[arg(long, conflicts_with = "logout", help_heading = LOGIN)]
    pub(crate) login: bool,
    /// Remove the stored login, and exit.
    #[arg(long, help_heading = LOGIN)]
    pub(crate) logout: bool,
    /// Client id that the authorization server knows. Without it, the client registers itself.
    #[arg(long, value_name = "ID", help_heading = LOGIN)]
    pub(crate) client_id: Option<String>,
    /// Print the address of the login, and open no browser.
    #[arg(long, help_heading = LOGIN)]
    pub(crate) no_browser: bool,
}
