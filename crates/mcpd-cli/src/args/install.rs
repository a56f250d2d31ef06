//! Arguments of `mcpd install`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use clap_complete::engine::ArgValueCandidates;
use mcpd_clients::{Client, UrlTransport};
use mcpd_scriptspec::suggest;

use super::Configuration;
use crate::candidates;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd install --list
  mcpd install claude-desktop ~/tools
  mcpd install cursor,codex ~/tools
  mcpd install all ~/tools
  mcpd install vscode ./tools --scope project
  mcpd install cursor --url https://tools.example/mcp --token-env TOOLS_TOKEN
  mcpd install claude-desktop --check
  mcpd install claude-desktop --remove

A change is shown and asked for before it is made. All else in the file stays as it is, and
a copy of the file before the change is beside it.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Install {
    /// Client, such as claude-code, or several with commas between them; `all` for each that is
    /// found. `--list` shows them.
    #[arg(
        value_name = "CLIENT",
        value_parser = parse_clients,
        required_unless_present = "list",
        add = ArgValueCandidates::new(candidates::clients)
    )]
    pub(crate) clients: Option<Clients>,
    /// Directories with scripts, which the client serves by `mcpd stdio`.
    #[arg(value_name = "DIR", conflicts_with = "url")]
    pub(crate) directories: Vec<PathBuf>,
    /// List the clients, their files and what is installed there.
    #[arg(long, conflicts_with_all = ["clients", "print", "link", "remove", "check"])]
    pub(crate) list: bool,
    /// Print the text for the client's file, and change nothing.
    #[arg(long, group = "action")]
    pub(crate) print: bool,
    /// Print a link that adds the server when it is opened, and change nothing.
    #[arg(long, group = "action")]
    pub(crate) link: bool,
    /// Remove the server from the client's file.
    #[arg(long, group = "action", conflicts_with_all = ["directories", "url"])]
    pub(crate) remove: bool,
    /// Start what the client's file says, in the environment of the client, and list the tools.
    #[arg(long, group = "action", conflicts_with_all = ["directories", "url"])]
    pub(crate) check: bool,
    /// Name of the server in the client's file.
    #[arg(long, default_value = "mcpd")]
    pub(crate) name: String,
    /// File of the client.
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    pub(crate) scope: InstallScope,
    /// URL of a server over HTTP, in place of directories.
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Way to the URL [default: http where the client can do that, otherwise stdio].
    #[arg(long, requires = "url")]
    pub(crate) transport: Option<InstallTransport>,
    /// Variable of the client's environment with the token for the URL; never the token itself.
    #[arg(long, value_name = "NAME", requires = "url")]
    pub(crate) token_env: Option<String>,
    /// File with the token for the URL, for the transport stdio.
    #[arg(
        long,
        value_name = "FILE",
        requires = "url",
        conflicts_with = "token_env"
    )]
    pub(crate) token_file: Option<PathBuf>,
    /// Variable for the scripts, as NAME=VALUE; not for secrets. Repeat for more.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,
    /// Variable of the client's environment that the scripts get too; repeat for more.
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    pub(crate) pass_env: Vec<String>,
    /// Change the file without asking.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print JSON, with --list.
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) configuration: Configuration,
}

/// Clients on the command line.
#[derive(Debug, Clone)]
pub(crate) enum Clients {
    /// Each client that is found on this machine.
    Found,
    Named(Vec<&'static Client>),
}

fn parse_clients(text: &str) -> Result<Clients, String> {
    if text == "all" {
        return Ok(Clients::Found);
    }
    let mut named: Vec<&'static Client> = Vec::new();
    for name in text.split(',') {
        let client = Client::find(name).ok_or_else(|| unknown_client(name))?;
        if !named.iter().any(|known| known.name() == name) {
            named.push(client);
        }
    }
    Ok(Clients::Named(named))
}

/// Message about a client that is not known: the one that may be meant, or all of them.
pub(crate) fn unknown_client(name: &str) -> String {
    let known = || Client::all().iter().map(Client::name);
    match suggest(name, known()) {
        Some(similar) => format!("there is no client `{name}`; did you mean `{similar}`?"),
        None => {
            let known: Vec<_> = known().collect();
            format!(
                "there is no client `{name}`; known are {}",
                known.join(", ")
            )
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InstallTransport {
    /// The client connects to the URL itself
    Http,
    /// The client starts `mcpd connect`, which connects to the URL
    Stdio,
}

impl From<InstallTransport> for UrlTransport {
    fn from(transport: InstallTransport) -> Self {
        match transport {
            InstallTransport::Http => Self::Http,
            InstallTransport::Stdio => Self::Stdio,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InstallScope {
    /// All projects of the user
    User,
    /// The project in the working directory, for all its users
    Project,
    /// The project in the working directory, for the user alone
    Local,
}

impl From<InstallScope> for mcpd_clients::Scope {
    fn from(scope: InstallScope) -> Self {
        match scope {
            InstallScope::User => Self::User,
            InstallScope::Project => Self::Project,
            InstallScope::Local => Self::Local,
        }
    }
}
