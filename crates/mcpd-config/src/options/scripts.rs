//! Options of commands that serve or run scripts: directories, sandbox, limits.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Selecting, seconds, whole_number};
use crate::layers::{Combine, Layers};
use crate::value::{Seconds, Size};

const CONFIGURATION: &str = "Configuration options";

const CONFINEMENT: &str = "Sandbox options";

/// Help of `--enable` for commands that always need a directory.
pub const BESIDE_SCRIPTS: &str = "Also serve a built-in tool";

/// Directories that are served.
#[derive(Debug, Clone, ClapArgs)]
#[group(multiple = true)]
pub struct Roots {
    /// Directories with scripts; if two scripts have the same name, the one in the first
    /// directory is served.
    #[arg(value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Alias of DIR.
    #[arg(long = "root-directory", value_name = "DIR")]
    root_directories: Vec<PathBuf>,
}

impl Combine for Roots {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        // Directories given by flag replace those of the file, too.
        if self.root_directories.is_empty() {
            let roots = layers.file.roots();
            layers.list("roots", "directories", &mut self.directories, roots);
        } else {
            let mut all: Vec<_> = self.all().cloned().collect();
            layers.list("roots", "root_directories", &mut all, None);
        }
    }
}

impl Roots {
    /// Every directory, whether given by position or by flag.
    pub fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.directories.iter().chain(&self.root_directories)
    }

    /// Returns whether there is no directory.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }
}

/// Directories of a command whose arguments are something else.
#[derive(Debug, Clone, Default, ClapArgs)]
#[non_exhaustive]
pub struct RootFlags {
    /// Directory with scripts, repeatable [default: `roots` of mcpd.toml]
    #[arg(long = "root-directory", value_name = "DIR")]
    pub root_directories: Vec<PathBuf>,
}

impl Combine for RootFlags {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        let roots = layers.file.roots();
        layers.list(
            "roots",
            "root_directories",
            &mut self.root_directories,
            roots,
        );
    }
}

/// Built-in tools.
#[derive(Debug, Clone, Default, ClapArgs)]
#[non_exhaustive]
pub struct Enabling {
    /// Serve a built-in tool; DIR is optional then.
    #[arg(
        long,
        value_name = "TOOL",
        group = "Roots",
        env = "MCPD_ENABLE",
        value_delimiter = ','
    )]
    pub enable: Vec<BuiltIn>,
    /// Working directory of `run_command` [default: a temporary directory, deleted when the
    /// server stops]
    #[arg(long, value_name = "DIR", env = "MCPD_WORKDIR")]
    pub workdir: Option<PathBuf>,
}

impl Combine for Enabling {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        let enable = layers.file.tables.enable.clone();
        layers.list("enable", "enable", &mut self.enable, enable);
        let is_enabled = self.enable.contains(&BuiltIn::RunCommand);
        let workdir = is_enabled.then(|| layers.file.workdir()).flatten();
        let key = "run_command.workdir";
        layers.value(key, "workdir", &mut self.workdir, workdir);
    }
}

/// Built-in tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BuiltIn {
    /// Runs shell commands that a model writes; sandboxed unless the configuration says otherwise
    #[value(name = "run_command")]
    RunCommand,
    /// Background calls for clients without support for tasks: runs_start, runs_list,
    /// runs_status, runs_output and runs_stop
    Runs,
}

/// Options of the scan for scripts.
#[derive(Debug, Clone, Default, ClapArgs)]
#[non_exhaustive]
pub struct Scanning {
    /// Run every script with `--help`, even if it has not changed since the last time.
    #[arg(long, env = "MCPD_NO_CACHE")]
    pub no_cache: bool,
    /// Serve only what is approved.
    #[command(flatten)]
    pub locking: Locking,
}

impl Combine for Scanning {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        let cache = layers.file.tables.cache;
        layers.switch_off("cache", "no_cache", &mut self.no_cache, cache);
        self.locking.combine(layers);
    }
}

/// Options of commands that serve only what is approved.
#[derive(Debug, Clone, Default, ClapArgs)]
#[non_exhaustive]
pub struct Locking {
    /// Serve only tools, prompts and resources that are as the lock file notes them; `mcpd lock`
    /// creates it.
    #[arg(long, env = "MCPD_LOCKED")]
    pub locked: bool,
    /// Lock file of tools [default: mcpd.lock beside mcpd.toml, or without that in the first DIR]
    #[arg(long, value_name = "FILE", env = "MCPD_LOCK_FILE")]
    pub lock_file: Option<PathBuf>,
}

impl Combine for Locking {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        let tables = &layers.file.tables;
        layers.switch("locked", "locked", &mut self.locked, tables.locked);
        let file = layers.file.absolute_path(tables.lock_file.as_ref());
        layers.value("lock_file", "lock_file", &mut self.lock_file, file);
    }
}

/// Path of the configuration file, which a program reads before everything else.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct Configuration {
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

impl Configuration {
    /// File that the user names.
    pub fn named(&self) -> Option<&Path> {
        self.config.as_deref()
    }
}

/// Sandbox options of every command that runs scripts.
#[derive(Debug, Clone, Default, ClapArgs)]
#[non_exhaustive]
pub struct Confinement {
    /// Configuration file.
    #[command(flatten)]
    pub configuration: Configuration,
    /// Minimum sandbox of every script: none, guarded, strict or a sandbox of the configuration
    #[arg(
        long,
        value_name = "LEVEL",
        env = "MCPD_SANDBOX",
        help_heading = CONFINEMENT
    )]
    pub sandbox: Option<String>,
    /// Let every sandboxed script read this hidden file or directory
    #[arg(
        long,
        value_name = "PATH",
        env = "MCPD_ALLOW_READ",
        value_delimiter = ',',
        help_heading = CONFINEMENT
    )]
    pub allow_read: Vec<PathBuf>,
    /// Let every sandboxed script write this file or directory.
    #[arg(
        long,
        value_name = "PATH",
        env = "MCPD_ALLOW_WRITE",
        value_delimiter = ',',
        help_heading = CONFINEMENT
    )]
    pub allow_write: Vec<PathBuf>,
    /// Control group delegated to mcpd, below which it limits the memory of each run [default:
    /// its own control group, if systemd has delegated it]
    #[arg(
        long,
        value_name = "DIR",
        env = "MCPD_CGROUP",
        help_heading = CONFINEMENT
    )]
    pub cgroup: Option<PathBuf>,
    /// Deny the network to every script.
    #[arg(long, env = "MCPD_NO_NETWORK", help_heading = CONFINEMENT)]
    pub no_network: bool,
}

impl Combine for Confinement {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        let tables = &layers.file.tables;
        let floor = tables.floor.as_ref().map(|name| name.get_ref().clone());
        let cgroup = layers.file.cgroup();
        layers.value("floor", "sandbox", &mut self.sandbox, floor);
        layers.value("cgroup", "cgroup", &mut self.cgroup, cgroup);
    }
}

impl Confinement {
    /// Returns whether a flag changes the sandbox that `--sandbox` names.
    pub fn changes_sandbox(&self) -> bool {
        self.no_network || !self.allow_read.is_empty() || !self.allow_write.is_empty()
    }
}

/// Options of a server, whatever its transport.
#[derive(Debug, Clone, ClapArgs)]
#[non_exhaustive]
pub struct Serving {
    /// Directories to serve.
    #[command(flatten)]
    pub roots: Roots,
    /// Built-in tools to serve.
    #[command(flatten)]
    pub enabling: Enabling,
    /// Selection of what is served.
    #[command(flatten)]
    pub selecting: Selecting,
    /// Scan for scripts.
    #[command(flatten)]
    pub scanning: Scanning,
    /// Do not reload when files in the directories change.
    #[arg(long, env = "MCPD_NO_WATCH")]
    pub no_watch: bool,
    /// Tool names in lists: portable (`math_add`) or path (`math/add`).
    #[arg(long, value_name = "SPELLING", env = "MCPD_TOOL_NAMES")]
    pub tool_names: Option<ToolNames>,
    /// Entries per page of a list [default: 1000]
    #[arg(
        long,
        value_name = "NUMBER",
        env = "MCPD_PAGE_SIZE",
        value_parser = whole_number
    )]
    pub page_size: Option<NonZeroUsize>,
    /// Maximum size of a message [default: 16777216]
    #[arg(
        long,
        value_name = "BYTES",
        env = "MCPD_MAX_MESSAGE",
        value_parser = whole_number
    )]
    pub max_message: Option<NonZeroUsize>,
    /// Maximum number of scripts that run at the same time [default: 4 per core]
    #[arg(
        long,
        value_name = "NUMBER",
        env = "MCPD_CONCURRENCY",
        value_parser = whole_number
    )]
    pub concurrency: Option<NonZeroUsize>,
    /// File with the secret that seals the state which scripts with questions send through
    /// clients: at least 32 bytes, shared by all servers that a client may reach [default: a
    /// random secret for the lifetime of the server]
    #[arg(long, value_name = "FILE", env = "MCPD_STATE_KEY_FILE")]
    pub state_key_file: Option<PathBuf>,
    /// List only two tools, search_tools and call_tool, with which a model finds and calls all
    /// others.
    #[arg(long, env = "MCPD_SEARCH")]
    pub search: bool,
    /// Also serve the Script Kit tools kit/show, kit/hide and kit/state, and the Script Kit
    /// resources.
    #[arg(long, env = "MCPD_KIT")]
    pub kit: bool,
    /// Limits of one run.
    #[command(flatten)]
    pub limits: RunLimits,
    /// Sandbox of scripts.
    #[command(flatten)]
    pub confinement: Confinement,
}

impl Combine for Serving {
    fn combine(&mut self, layers: &mut Layers<'_>) {
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
        let search = tables.search.enabled;
        layers.switch("search.enabled", "search", &mut self.search, search);
        layers.switch("kit.serve", "kit", &mut self.kit, tables.kit.serve);
    }
}

/// Limits of one run of a script.
#[derive(Debug, Clone, ClapArgs)]
#[non_exhaustive]
pub struct RunLimits {
    /// Time limit of a script [default: 60]
    #[arg(
        long,
        value_name = "SECONDS",
        env = "MCPD_TIMEOUT",
        value_parser = seconds
    )]
    pub timeout: Option<Seconds>,
}

impl Combine for RunLimits {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        let timeout = layers.file.tables.timeout;
        layers.value("timeout", "timeout", &mut self.timeout, timeout);
    }
}

/// Spelling of tool names in lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolNames {
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
