//! Arguments of `mcpd check`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use mcpd_config::options::Locking;
use mcpd_config::{Combine, Layers};

use super::{Confinement, Denied, ToolNames};

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd check ~/tools --deny warnings
  mcpd check ~/tools --fix
  mcpd check ~/tools --as claude
  mcpd check --explain unknown-field

The exit code is 1 on an error or a denied warning, whatever the format;
with --as, also if the client would refuse a tool.")]
pub(crate) struct Check {
    /// Directories with scripts, or single scripts.
    #[arg(value_name = "PATH", required_unless_present = "explain")]
    pub(crate) paths: Vec<PathBuf>,
    /// Explain a rule instead of checking; without CODE, list all rules.
    #[arg(
        long,
        value_name = "CODE",
        num_args = 0..=1,
        default_missing_value = "all",
        conflicts_with_all = [
            "paths", "format", "deny", "client", "is_static", "select", "ignore", "fix", "diff",
            "watch"
        ]
    )]
    pub(crate) explain: Option<String>,
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: CheckFormat,
    /// Count warnings as errors.
    #[arg(long, value_name = "WHAT")]
    pub(crate) deny: Option<Denied>,
    /// Show the tools as this client passes them to its model: names, schemas and refused tools.
    #[arg(long = "as", value_name = "CLIENT")]
    pub(crate) client: Option<Client>,
    /// Rules to check, by their codes or first words of them, such as `help` [default: all]
    #[arg(
        long,
        value_name = "CODE",
        value_delimiter = ',',
        conflicts_with = "client"
    )]
    pub(crate) select: Vec<String>,
    /// Rules to leave out; of a rule in both lists, the longer name counts.
    #[arg(
        long,
        value_name = "CODE",
        value_delimiter = ',',
        conflicts_with = "client"
    )]
    pub(crate) ignore: Vec<String>,
    /// Fix what needs no decision, in the files, and report the rest.
    #[arg(long, conflicts_with_all = ["client", "diff"])]
    pub(crate) fix: bool,
    /// Show what --fix would change, and change nothing; the exit code is 1 if there is anything.
    #[arg(long, conflicts_with_all = ["client", "watch", "format"])]
    pub(crate) diff: bool,
    /// Check again after every change of a file, until Ctrl-C.
    #[arg(long, conflicts_with = "client")]
    pub(crate) watch: bool,
    /// Run no script; check only descriptions that can be read from files.
    #[arg(long = "static")]
    pub(crate) is_static: bool,
    /// Tool names in lists: portable (`math_add`) or path (`math/add`) [default: portable]
    #[arg(long, value_name = "SPELLING", requires = "client")]
    pub(crate) tool_names: Option<ToolNames>,
    #[command(flatten)]
    pub(crate) locking: Locking,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
}

impl Combine for Check {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        let names = layers.file.tool_names();
        layers.value("tool_names", "tool_names", &mut self.tool_names, names);
        let (select, ignore) = layers.file.checked_rules();
        layers.list("check.select", "select", &mut self.select, select);
        layers.list("check.ignore", "ignore", &mut self.ignore, ignore);
        self.locking.combine(layers);
        self.confinement.combine(layers);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// With an excerpt of the script's output.
    Human,
    /// One line per fault, location first.
    Short,
    /// One array of objects.
    Json,
    /// SARIF 2.1.0, for code scanners.
    Sarif,
    /// Annotations for GitHub workflows.
    Github,
}

/// Clients whose rules are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    Claude,
    Openai,
    Gemini,
    Cursor,
    Vscode,
    All,
}

impl Client {
    /// Key of the client, unless all are meant.
    pub(crate) fn key(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("claude"),
            Self::Openai => Some("openai"),
            Self::Gemini => Some("gemini"),
            Self::Cursor => Some("cursor"),
            Self::Vscode => Some("vscode"),
            Self::All => None,
        }
    }
}
