//! Options of commands that serve or run scripts: directories, sandbox, limits.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{seconds, whole_number};
use crate::config::{Layers, Seconds, Size};

pub(super) const CONFIGURATION: &str = "Configuration options";

pub(super) const CONFINEMENT: &str = "Sandbox options";

/// Help of `--enable` for commands that always need a directory.
pub(super) const BESIDE_SCRIPTS: &str = "Also serve a built-in tool";

/// Directories that are served.
#[derive(Debug, Clone, ClapArgs)]
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

    /// Returns whether there is no directory.
    pub(super) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    pub(super) fn combine(&mut self, layers: &mut Layers<'_>) {
        // Directories given by flag replace those of the file, too.
        if self.root_directories.is_empty() {
            let roots = layers.file.roots();
            layers.list("roots", "directories", &mut self.directories, roots);
        } else {
            let none = None;
            layers.list(
                "roots",
                "root_directories",
                &mut self.root_directories,
                none,
            );
        }
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

impl Enabling {
    pub(crate) fn combine(&mut self, layers: &mut Layers<'_>) {
        let enable = layers.file.tables.enable.clone();
        layers.list("enable", "enable", &mut self.enable, enable);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
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

impl Scanning {
    pub(crate) fn combine(&mut self, layers: &mut Layers<'_>) {
        let cache = layers.file.tables.cache;
        layers.switch_off("cache", "no_cache", &mut self.no_cache, cache);
    }
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
    pub(crate) fn combine(&mut self, layers: &mut Layers<'_>) {
        let tables = &layers.file.tables;
        let floor = tables.floor.as_ref().map(|name| name.get_ref().clone());
        let cgroup = layers.file.absolute_path(tables.cgroup.as_ref());
        layers.value("floor", "sandbox", &mut self.sandbox, floor);
        layers.value("cgroup", "cgroup", &mut self.cgroup, cgroup);
    }

    /// Returns whether a flag changes the sandbox that `--sandbox` names.
    pub(crate) fn changes_sandbox(&self) -> bool {
        self.no_network || !self.allow_read.is_empty() || !self.allow_write.is_empty()
    }
}

/// Options of a server, whatever its transport.
#[derive(Debug, Clone, ClapArgs)]
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
    /// Entries per page of a list [default: 1000]
    #[arg(
        long,
        value_name = "NUMBER",
        env = "MCPD_PAGE_SIZE",
        value_parser = whole_number
    )]
    pub(crate) page_size: Option<NonZeroUsize>,
    /// Maximum size of a message [default: 16777216]
    #[arg(
        long,
        value_name = "BYTES",
        env = "MCPD_MAX_MESSAGE",
        value_parser = whole_number
    )]
    pub(crate) max_message: Option<NonZeroUsize>,
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

impl Serving {
    pub(crate) fn combine(&mut self, layers: &mut Layers<'_>) {
        self.roots.combine(layers);
        self.enabling.combine(layers);
        self.scanning.combine(layers);
        let file = layers.file;
        let tables = &file.tables;
        layers.switch_off("watch", "no_watch", &mut self.no_watch, tables.watch);
        let names = tables.tool_names;
        layers.value("tool_names", "tool_names", &mut self.tool_names, names);
        let page_size = tables.page_size;
        layers.value("page_size", "page_size", &mut self.page_size, page_size);
        let max_message = tables.max_message.map(Size::get);
        layers.value(
            "max_message",
            "max_message",
            &mut self.max_message,
            max_message,
        );
        let concurrency = tables.concurrency;
        layers.value(
            "concurrency",
            "concurrency",
            &mut self.concurrency,
            concurrency,
        );
        self.limits.combine(layers);
        self.confinement.combine(layers);
        let key = file.absolute_path(tables.state_key_file.as_ref());
        layers.value(
            "state_key_file",
            "state_key_file",
            &mut self.state_key_file,
            key,
        );
        layers.switch("kit.serve", "kit", &mut self.kit, tables.kit.serve);
    }
}

/// Limits of one run of a script.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct RunLimits {
    /// Time limit of a script [default: 60]
    #[arg(
        long,
        value_name = "SECONDS",
        env = "MCPD_TIMEOUT",
        value_parser = seconds
    )]
    pub(crate) timeout: Option<Seconds>,
}

impl RunLimits {
    pub(crate) fn combine(&mut self, layers: &mut Layers<'_>) {
        let timeout = layers.file.tables.timeout;
        layers.value("timeout", "timeout", &mut self.timeout, timeout);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct OneDirectory {
    /// Directory with scripts.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) scanning: Scanning,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
}

impl OneDirectory {
    pub(super) fn combine(&mut self, layers: &mut Layers<'_>) {
        self.scanning.combine(layers);
        self.confinement.combine(layers);
    }
}

/// One tool of one directory.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct OneTool {
    #[command(flatten)]
    pub(crate) place: OneDirectory,
    /// Tool name; `math/add`, `math_add` and `math.add` are the same tool.
    pub(crate) tool: String,
}
