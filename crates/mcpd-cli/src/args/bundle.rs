//! Arguments of `mcpd bundle`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::Configuration;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd bundle ~/tools --author Ada
  mcpd bundle ~/tools --author Ada --pass-env GITHUB_TOKEN --output tools.mcpb
  mcpd bundle ~/tools --author Ada --server-json server.json \\
    --registry-name io.github.ada/tools --url https://host.example/tools.mcpb

The files are shown, and asked for, before the bundle is made. It is then unpacked and started as
a client would, and its tools are listed and called with their cases; if that fails, no file is
written.")]
pub(crate) struct Bundle {
    /// Directories with scripts.
    #[arg(value_name = "DIR", required = true)]
    pub(crate) directories: Vec<PathBuf>,
    /// File to write [default: NAME-VERSION.mcpb]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Author of the bundle.
    #[arg(long, value_name = "NAME")]
    pub(crate) author: String,
    /// Name of the bundle for programs [default: `server.name` of mcpd.toml, or that of DIR]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Name of the bundle for people [default: `server.title` of mcpd.toml]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Version of the bundle [default: `server.version` of mcpd.toml, or 0.1.0]
    #[arg(long)]
    pub(crate) version: Option<String>,
    /// Sentence about the bundle [default: the names of its tools]
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Picture of the bundle, in PNG.
    #[arg(long, value_name = "FILE")]
    pub(crate) icon: Option<PathBuf>,
    /// mcpd for another platform, whose users can install the bundle too; repeat for more.
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Vec<PathBuf>,
    /// File or directory below DIR that mcpd would leave out, such as an ignored one; repeat for
    /// more.
    #[arg(long, value_name = "PATH")]
    pub(crate) include: Vec<PathBuf>,
    /// Variable that the scripts need, and that the user of the bundle is asked for; repeat for
    /// more.
    #[arg(long, value_name = "NAME")]
    pub(crate) pass_env: Vec<String>,
    /// Also write an entry for the registry of MCP servers.
    #[arg(long, value_name = "FILE", requires_all = ["registry_name", "url"])]
    pub(crate) server_json: Option<PathBuf>,
    /// Name in the registry, such as io.github.ada/tools.
    #[arg(long, value_name = "NAME", requires = "server_json")]
    pub(crate) registry_name: Option<String>,
    /// Address that the bundle will be downloaded from.
    #[arg(long, requires = "server_json")]
    pub(crate) url: Option<String>,
    /// Replace an existing file.
    #[arg(long)]
    pub(crate) force: bool,
    /// Make the bundle without asking.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Print a report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) configuration: Configuration,
}
