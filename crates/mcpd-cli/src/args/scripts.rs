//! Options of commands that serve or run scripts: directories, sandbox, limits.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{seconds, whole_number};

pub(super) const CONFIGURATION: &str = "Configuration options";

pub(super) const CONFINEMENT: &str = "Sandbox options";

/// Help of `--enable` for commands that always need a directory.
pub(super) const BESIDE_SCRIPTS: &str = "Also serve a built-in tool";

/// Directories that are served.
#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = true)]
pub(crate) struct Roots {
    /// Directories with scripts; if two scripts have the same name, the one in the first
    /// directory is served.
    #[arg(value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Alias of DIR.
    #[arg(long = "root-directory", value_name = "DIR")]
    root_directories: Vec<PathBuf>,
}

impl Roots {
    /// Every directory, whether given by position or by flag.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.directories.iter().chain(&self.root_directories)
    }
}

/// Built-in tools.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct Enabling {
    /// Serve a built-in tool; DIR is optional then.
    #[arg(
        long,
        value_name = "TOOL",
        group = "Roots",
        env = "MCPD_ENABLE",
        value_delimiter = ','
    )]
    pub(crate) enable: Vec<BuiltIn>,
    /// Working directory of `run_command` [default: a temporary directory, deleted when the
    /// server stops]
    #[arg(long, value_name = "DIR", env = "MCPD_WORKDIR")]
    pub(crate) workdir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BuiltIn {
    /// Runs shell commands that a model writes; sandboxed unless the configuration says otherwise
    #[value(name = "run_command")]
    RunCommand,
    /// Background calls for clients without support for tasks: runs_start, runs_list,
    /// runs_status, runs_output and runs_stop
    Runs,
}

/// Options of the scan for scripts.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Scanning {
    /// Run every script with `--help`, even if it has not changed since the last time.
    #[arg(long, env = "MCPD_NO_CACHE")]
    pub(crate) no_cache: bool,
}

/// Path of the configuration file; [`CommandLine`] reads it before everything else.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct Configuration {
    /// Configuration file [default: mcpd.toml of the project, the user or the system]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "MCPD_CONFIG",
        help_heading = CONFIGURATION
    )]
    config: Option<PathBuf>,
}

/// Sandbox options of every command that runs scripts.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct Confinement {
    #[command(flatten)]
    pub(crate) configuration: Configuration,
    /// Minimum sandbox of every script: none, guarded, strict or a sandbox of the configuration
    #[arg(
        long,
        value_name = "LEVEL",
        env = "MCPD_SANDBOX",
        help_heading = CONFINEMENT
    )]
    pub(crate) sandbox: Option<String>,
    /// Let every sandboxed script read this hidden file or directory
    #[arg(
        long,
        value_name = "PATH",
        env = "MCPD_ALLOW_READ",
        value_delimiter = ',',
        help_heading = CONFINEMENT
    )]
    pub(crate) allow_read: Vec<PathBuf>,
    /// Let every sandboxed script write this file or directory.
    #[arg(
        long,
        value_name = "PATH",
        env = "MCPD_ALLOW_WRITE",
        value_delimiter = ',',
        help_heading = CONFINEMENT
    )]
    pub(crate) allow_write: Vec<PathBuf>,
    /// Control group delegated to mcpd, below which it limits the memory of each run [default:
    /// its own control group, if systemd has delegated it]
    #[arg(
        long,
        value_name = "DIR",
        env = "MCPD_CGROUP",
        help_heading = CONFINEMENT
    )]
    pub(crate) cgroup: Option<PathBuf>,
    /// Deny the network to every script.
    #[arg(long, env = "MCPD_NO_NETWORK", help_heading = CONFINEMENT)]
    pub(crate) no_network: bool,
}

impl Confinement {
    /// Returns whether a flag changes the sandbox that `--sandbox` names.
    pub(crate) fn changes_sandbox(&self) -> bool {
        self.no_network || !self.allow_read.is_empty() || !self.allow_write.is_empty()
    }
}

/// Options of a server, whatever its transport.
#[derive(Debug, ClapArgs)]
pub(crate) struct Serving {
    #[command(flatten)]
    pub(crate) roots: Roots,
    #[command(flatten)]
    pub(crate) enabling: Enabling,
    #[command(flatten)]
    pub(crate) scanning: Scanning,
    /// Do not reload when files in the directories change.
    #[arg(long, env = "MCPD_NO_WATCH")]
    pub(crate) no_watch: bool,
    /// Tool names in lists: portable (`math_add`) or path (`math/add`).
    #[arg(long, value_name = "SPELLING", env = "MCPD_TOOL_NAMES")]
    pub(crate) tool_names: Option<ToolNames>,
    /// Entries per page of a list.
    #[arg(long, value_name = "NUMBER", env = "MCPD_PAGE_SIZE", default_value_t = mcpd_server::catalog::DEFAULT_PAGE_SIZE, value_parser = whole_number)]
    pub(crate) page_size: NonZeroUsize,
    /// Maximum size of a message.
    #[arg(long, value_name = "BYTES", env = "MCPD_MAX_MESSAGE", default_value_t = NonZeroUsize::new(mcpd_server::DEFAULT_MAX_MESSAGE).expect("it is not zero"), value_parser = whole_number)]
    pub(crate) max_message: NonZeroUsize,
    /// Maximum number of scripts that run at the same time [default: 4 per core]
    #[arg(
        long,
        value_name = "NUMBER",
        env = "MCPD_CONCURRENCY",
        value_parser = whole_number
    )]
    pub(crate) concurrency: Option<NonZeroUsize>,
    /// File with the secret that seals the state which scripts with questions send through
    /// clients: at least 32 bytes, shared by all servers that a client may reach [default: a
    /// random secret for the lifetime of the server]
    #[arg(long, value_name = "FILE", env = "MCPD_STATE_KEY_FILE")]
    pub(crate) state_key_file: Option<PathBuf>,
    /// Also serve the Script Kit tools kit/show, kit/hide and kit/state, and the Script Kit
    /// resources.
    #[arg(long, env = "MCPD_KIT")]
    pub(crate) kit: bool,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
}

/// Limits of one run of a script.
#[derive(Debug, ClapArgs)]
pub(crate) struct RunLimits {
    /// Time limit of a script [default: 60]
    #[arg(
        long,
        value_name = "SECONDS",
        env = "MCPD_TIMEOUT",
        value_parser = seconds
    )]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolNames {
    /// `math/add`
    Path,
    /// `math_add`
    Portable,
}

impl From<ToolNames> for mcpd_server::ToolNames {
    fn from(names: ToolNames) -> Self {
        match names {
            ToolNames::Path => Self::Path,
            ToolNames::Portable => Self::Portable,
        }
    }
}

/// One directory and the options for its scripts.
#[derive(Debug, ClapArgs)]
pub(crate) struct OneDirectory {
    /// Directory with scripts.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) scanning: Scanning,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
}

/// One tool of one directory.
#[derive(Debug, ClapArgs)]
pub(crate) struct OneTool {
    #[command(flatten)]
    pub(crate) place: OneDirectory,
    /// Tool name; `math/add`, `math_add` and `math.add` are the same tool.
    pub(crate) tool: String,
}
