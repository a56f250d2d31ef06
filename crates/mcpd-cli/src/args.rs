//! Command line as clap types, and the text of the help. The only module that knows clap; what the
//! values mean together is decided in [`config`](crate::config).

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args as ClapArgs, CommandFactory as _, Parser, Subcommand, ValueEnum};
use mcpd_server::audit;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use self::command_line::{CommandLine, SettingSource, variables};
pub(crate) use self::web::{Host, WebOrigin};

mod command_line;
mod web;

const HTTP: &str = "HTTP options";
const CONFIGURATION: &str = "Configuration options";
const CONFINEMENT: &str = "Sandbox options";
const LOG: &str = "Logging options";

/// Serve a directory of executable scripts to MCP clients.
#[derive(Debug, Parser)]
#[command(
    name = "mcpd",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  mcpd stdio ~/tools                    serve over stdio, as MCP clients start it
  mcpd serve ~/tools                    serve over HTTP on 127.0.0.1:43210, with a token
  mcpd call ~/tools greet name=World    call a tool from the shell
  mcpd check ~/tools                    find faults in the scripts

`mcpd --root-directory DIR` is short for `mcpd serve DIR`.

Exit codes:
  0    success
  1    wrong usage, the command failed, or `check` or `audit` found faults
  5    the tool failed or does not exist
  130  the call was interrupted"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) logging: Logging,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve over HTTP.
    Serve(Box<Serve>),
    /// Serve over stdin and stdout, for clients that start their servers.
    Stdio(Stdio),
    /// List tools, prompts or resources.
    List(List),
    /// Show the description and the arguments of a tool or a prompt.
    Describe(Describe),
    /// Call a tool.
    Call(Call),
    /// Render a prompt.
    Prompt(Prompt),
    /// Read a resource.
    Read(Read),
    /// Show the state of a stateful tool.
    State(State),
    /// Answer one action endpoint request from stdin.
    Endpoint(Endpoint),
    /// Check the descriptions of scripts for faults.
    Check(Check),
    /// Print tool definitions for the APIs of models.
    Compile(Compile),
    /// Show or clear the script cache.
    Catalog(Catalog),
    /// Create tokens for HTTP clients.
    Token(TokenCommand),
    /// Read and verify the audit log.
    Audit(Audit),
    /// Check, show and document the configuration, mcpd.toml.
    Config(Config),
    /// Show which sandbox features this machine supports.
    Doctor(Doctor),
    /// Run a BASIC program.
    Basic(Basic),
}

/// Options of mcpd's own log.
#[derive(Debug, ClapArgs)]
pub(crate) struct Logging {
    /// Log more; repeat for even more.
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = LOG)]
    pub(crate) verbose: u8,
    /// Log errors only.
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = LOG
    )]
    pub(crate) quiet: bool,
    /// Log format.
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        env = "MCPD_LOG_FORMAT",
        default_value = "text",
        help_heading = LOG
    )]
    pub(crate) log_format: LogFormat,
    /// Log filter, such as `warn` or `mcpd_server=debug`.
    #[arg(
        long = "log",
        global = true,
        value_name = "FILTER",
        env = "MCPD_LOG",
        help_heading = LOG
    )]
    pub(crate) filter: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Readable lines.
    Text,
    /// One JSON object per line.
    Json,
}

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
    #[arg(long, value_name = "NUMBER", env = "MCPD_PAGE_SIZE", default_value_t = mcpd_server::DEFAULT_PAGE_SIZE, value_parser = whole_number)]
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

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd serve ~/tools
  mcpd serve ~/tools --port 8080
  mcpd serve ~/tools --listen 0.0.0.0:8080 --allow-host tools.example
  mcpd serve ~/tools --listen 127.0.0.1:8080 --listen unix:/tmp/mcpd.sock

The address comes from --listen or --port, otherwise from the first of MCPD_LISTEN, MCPD_PORT,
MCP_PORT and `listen` in mcpd.toml that is set.
The first start creates the token; clients send it as `Authorization: Bearer TOKEN`.")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) serving: Serving,
    /// Address to listen on: HOST:PORT, or unix:PATH for a Unix socket; repeat for more [default:
    /// 127.0.0.1:43210]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "port", help_heading = HTTP)]
    pub(crate) listen: Vec<String>,
    /// Port on 127.0.0.1 to listen on; 0 picks a free one.
    #[arg(long, value_parser = port, help_heading = HTTP)]
    pub(crate) port: Option<u16>,
    /// Token file, created if missing [default: $XDG_STATE_HOME/mcpd/agent-token]
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TOKEN_FILE",
        help_heading = HTTP
    )]
    pub(crate) token_file: Option<PathBuf>,
    /// Certificate of the server, in PEM; enables TLS on every address except Unix sockets.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TLS_CERTIFICATE",
        help_heading = HTTP
    )]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// Private key of the certificate, in PEM.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TLS_KEY",
        help_heading = HTTP
    )]
    pub(crate) tls_key: Option<PathBuf>,
    /// Certificate authorities of clients, in PEM.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TLS_CLIENT_CA",
        help_heading = HTTP
    )]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// Client certificates [default: required with --tls-client-ca]
    #[arg(
        long,
        value_name = "MODE",
        env = "MCPD_TLS_CLIENT_CERTIFICATES",
        help_heading = HTTP
    )]
    pub(crate) tls_client_certificates: Option<Certificates>,
    /// Serve without a token, to every program on this machine; only on loopback addresses and
    /// Unix sockets.
    #[arg(long, env = "MCPD_NO_AUTH", help_heading = HTTP)]
    pub(crate) no_auth: bool,
    /// Host name under which clients may reach the server, besides localhost and its own address.
    #[arg(long, value_name = "HOST", env = "MCPD_ALLOW_HOST", value_delimiter = ',', help_heading = HTTP)]
    pub(crate) allow_host: Vec<Host>,
    /// Web origin whose pages may send requests, such as `https://app.example`.
    #[arg(long, value_name = "ORIGIN", env = "MCPD_ALLOW_ORIGIN", value_delimiter = ',', help_heading = HTTP)]
    pub(crate) allow_origin: Vec<WebOrigin>,
    /// Also serve protocol revision 2024-11-05, at /sse and /messages.
    #[arg(long, env = "MCPD_HTTP_SSE", help_heading = HTTP)]
    pub(crate) http_sse: bool,
    /// Size of the event buffer of each session, from which clients resume a broken stream with
    /// Last-Event-ID; 0 disables it.
    #[arg(long, value_name = "BYTES", env = "MCPD_RESUME_BUFFER", default_value_t = mcpd_server::transport::http::DEFAULT_RESUME_BUFFER, help_heading = HTTP)]
    pub(crate) resume_buffer: usize,
    /// Serve Prometheus metrics at /metrics on this loopback address, such as 127.0.0.1:9464, to
    /// every program on this machine.
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "MCPD_METRICS_LISTEN",
        help_heading = HTTP
    )]
    pub(crate) metrics_listen: Option<String>,
    /// Serve Prometheus metrics at /metrics beside /mcp, to clients with a token.
    #[arg(long, help_heading = HTTP)]
    pub(crate) metrics_to_clients: bool,
}

/// Requirement of client certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Certificates {
    /// Clients may connect without a certificate; one that is presented must be valid
    Optional,
    /// Clients without a certificate cannot connect
    Required,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  echo '{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/list\"}' | mcpd stdio ~/tools")]
pub(crate) struct Stdio {
    #[command(flatten)]
    pub(crate) serving: Serving,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Doctor {
    #[command(flatten)]
    configuration: Configuration,
    /// Control group delegated to mcpd, below which it limits the memory of each run [default:
    /// its own control group, if systemd has delegated it]
    #[arg(long, value_name = "DIR", env = "MCPD_CGROUP")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  echo '{\"customer\": \"Ada\", \"amount\": 3}' | mcpd basic order.bas

Parameters are read from stdin as one JSON object. TALK and PRINT write to stdout, errors to stderr.
The exit code is 1 if the program is faulty or fails, and 2 if the parameters are invalid.")]
pub(crate) struct Basic {
    /// Program file.
    pub(crate) file: PathBuf,
    /// Number of operations after which the program is stopped as endless.
    #[arg(long, value_name = "NUMBER", default_value_t = mcpd_basic::Limits::default().operations)]
    pub(crate) max_operations: u64,
    /// Trust the parameters: they come from a call and have been validated.
    #[arg(long, hide = true)]
    pub(crate) checked: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) roots: Roots,
    #[command(flatten)]
    pub(crate) enabling: Enabling,
    #[command(flatten)]
    pub(crate) scanning: Scanning,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
    /// List every file with its status: served, faulty, passed over or ignored, and why.
    #[arg(long, conflicts_with_all = ["prompts", "resources"])]
    pub(crate) all: bool,
    /// List prompts.
    #[arg(long)]
    pub(crate) prompts: bool,
    /// List resources and resource templates.
    #[arg(long, conflicts_with = "prompts")]
    pub(crate) resources: bool,
    /// Print the MCP result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Help of `--enable` for commands that always need a directory.
const BESIDE_SCRIPTS: &str = "Also serve a built-in tool";

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

#[derive(Debug, ClapArgs)]
#[command(mut_arg("enable", |enable| enable.help(BESIDE_SCRIPTS)))]
pub(crate) struct Describe {
    #[command(flatten)]
    pub(crate) tool: OneTool,
    #[command(flatten)]
    pub(crate) enabling: Enabling,
    /// Print the MCP definition as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd call ~/tools greet name=World
  mcpd call ~/tools math/calc operation=add a=1 b:=2.5
  mcpd call ~/tools text/count --json '{\"text\": \"one two\"}'
  jq -n '{text: input}' essay.json | mcpd call ~/tools text/count --json -

The result goes to stdout, log messages of the script to stderr.
The exit code is 5 if the tool fails.")]
#[command(mut_arg("enable", |enable| enable.help(BESIDE_SCRIPTS)))]
pub(crate) struct Call {
    #[command(flatten)]
    pub(crate) tool: OneTool,
    #[command(flatten)]
    pub(crate) enabling: Enabling,
    /// Arguments: NAME=TEXT or NAME:=JSON; TEXT is read as a number or a boolean where the tool
    /// expects one.
    #[arg(value_name = "NAME=VALUE", conflicts_with = "json")]
    pub(crate) arguments: Vec<String>,
    /// All arguments as one JSON object; `-` reads the object from stdin.
    #[arg(
        long,
        value_name = "OBJECT",
        visible_alias = "json-args",
        allow_hyphen_values = true
    )]
    pub(crate) json: Option<String>,
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: CallOutput,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallOutput {
    /// The content of the result, as the script printed it.
    Text,
    /// The whole MCP result.
    Json,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  mcpd prompt ~/tools review language=Rust

The rendered prompt goes to stdout, log messages of the script to stderr.
The exit code is 5 if the prompt does not exist or its script fails.")]
pub(crate) struct Prompt {
    #[command(flatten)]
    pub(crate) place: OneDirectory,
    /// Prompt name, as `mcpd list --prompts` shows it.
    pub(crate) prompt: String,
    /// Arguments.
    #[arg(value_name = "NAME=TEXT")]
    pub(crate) arguments: Vec<String>,
    /// Print the MCP result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  mcpd read ~/tools disk://usage

The contents go to stdout unchanged, log messages of the script to stderr.
The exit code is 5 if the resource does not exist or its script fails.")]
pub(crate) struct Read {
    #[command(flatten)]
    pub(crate) place: OneDirectory,
    /// URI of the resource, as `mcpd list --resources` shows it; a template needs values for its
    /// variables.
    #[arg(value_name = "URI")]
    pub(crate) uri: String,
    /// Print the MCP result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct State {
    #[command(flatten)]
    pub(crate) tool: OneTool,
    /// Print the MCP result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  echo '{\"action\": \"list_tools\"}' | mcpd endpoint ~/tools
  echo '{\"action\": \"call_tool\", \"tool\": \"greet\", \"arguments\": {\"name\": \"World\"}}' \\
    | mcpd endpoint ~/tools

The exit code is 1 if the response is an error. A tool that ran and failed is a result,
which holds the exit code of the tool.")]
pub(crate) struct Endpoint {
    #[command(flatten)]
    pub(crate) roots: Roots,
    #[command(flatten)]
    pub(crate) scanning: Scanning,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd check ~/tools --deny warnings
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
        conflicts_with_all = ["paths", "format", "deny", "client", "is_static"]
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
    /// Run no script; check only descriptions that can be read from files.
    #[arg(long = "static")]
    pub(crate) is_static: bool,
    /// Tool names in lists: portable (`math_add`) or path (`math/add`).
    #[arg(
        long,
        value_name = "SPELLING",
        requires = "client",
        default_value = "portable"
    )]
    pub(crate) tool_names: ToolNames,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
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

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
One tool is printed as an object, any other number as an array.
Faults go to stderr, as from `mcpd check`. The exit code is 1 if there is an error or no tool.")]
pub(crate) struct Compile {
    /// Files that describe tools, or directories with such files.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Output format.
    #[arg(long, value_name = "FORMAT", default_value = "definition")]
    pub(crate) format: CompileFormat,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompileFormat {
    /// With `input_schema`, and one `example` for each parameter.
    Definition,
    /// The MCP definition.
    Mcp,
    /// A function for OpenAI's API.
    Openai,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Catalog {
    #[command(subcommand)]
    pub(crate) action: CatalogAction,
}

#[derive(Debug, Subcommand)]
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

#[derive(Debug, ClapArgs)]
pub(crate) struct TokenCommand {
    #[command(subcommand)]
    pub(crate) action: TokenAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenAction {
    /// Replace the token of the token file with a new one.
    Rotate {
        /// Token file [default: $XDG_STATE_HOME/mcpd/agent-token]
        #[arg(long, value_name = "FILE", env = "MCPD_TOKEN_FILE")]
        token_file: Option<PathBuf>,
        #[command(flatten)]
        configuration: Configuration,
    },
    /// Create a token for one client, and print the `[[token]]` table for mcpd.toml.
    New {
        /// Name of the client.
        name: String,
    },
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd audit verify
  mcpd audit tail --follow
  mcpd audit grep --tool math/add --outcome time-limit --since 2h")]
pub(crate) struct Audit {
    #[command(subcommand)]
    pub(crate) action: AuditAction,
    /// Audit log [default: the one of the configuration]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    configuration: Configuration,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditAction {
    /// Verify that no record was changed, removed or moved; otherwise the exit code is 1.
    Verify {
        /// Also require the record with this hash, which an earlier `verify` printed; if it is
        /// missing, the log was cut off or rewritten.
        #[arg(long)]
        hash: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the last records.
    Tail(AuditTail),
    /// Find records; the exit code is 1 if none match.
    Grep(AuditGrep),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AuditTail {
    /// Number of records.
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 10)]
    pub(crate) lines: usize,
    /// Keep printing new records.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print the records as in the log, as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AuditGrep {
    /// Only records that contain this text, either in a value or in the line of the file.
    pub(crate) text: Option<String>,
    /// Only records of this tool, prompt or resource, by path or by the name in the call.
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// Only records of this caller.
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,
    /// Only records with this outcome, such as `success`, `time-limit` or `denied`.
    #[arg(long, value_parser = PossibleValuesParser::new(audit::outcomes()), hide_possible_values = true)]
    pub(crate) outcome: Option<String>,
    /// Only records since this time, such as `2026-11-22`, `2026-11-22T10:30` or `2h` (two hours
    /// ago).
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only records before this time.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Print the records as in the log, as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) action: ConfigAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Check configuration files; the exit code is 1 on a fault. Commands that print secrets are
    /// not run.
    Check {
        /// Files to check [default: the file that mcpd would read]
        #[arg(value_name = "FILE", env = "MCPD_CONFIG")]
        files: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the effective settings of `mcpd serve`, without secrets.
    Show(Box<ConfigShow>),
    /// Print the JSON Schema of mcpd.toml.
    Schema,
}

#[derive(Debug, ClapArgs)]
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

/// Inserts the command `serve` before `--root-directory` if there is no command.
fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is_root = |argument: &OsString| {
        let argument = argument.as_encoded_bytes();
        argument == b"--root-directory" || argument.starts_with(b"--root-directory=")
    };
    let definition = Args::command();
    let is_command = |argument: &OsString| definition.find_subcommand(argument).is_some();
    let root = arguments.iter().position(is_root);
    if root.is_some_and(|root| !arguments[1..root].iter().any(is_command)) {
        arguments.insert(1, OsStr::new("serve").to_owned());
    }
    arguments
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    // A text that is not a number is rejected like 0.
    time(text.parse().unwrap_or_default())
}

/// Converts seconds to a duration above zero.
pub(crate) fn time(seconds: f64) -> Result<Duration, &'static str> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        Err(_) if seconds > 0.0 => Err("expected a number of seconds up to 1.8e19"),
        _ => Err("expected a number of seconds above 0"),
    }
}

fn whole_number(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "expected a whole number above 0")
}

/// Parses the port number of a flag or a variable.
pub(crate) fn port(text: &str) -> Result<u16, &'static str> {
    text.parse()
        .map_err(|_| "expected a number from 0 to 65535")
}

/// Returns the command line's spelling of `values`.
pub(crate) fn spellings<T: ValueEnum>(values: &[T]) -> Vec<OsString> {
    let values = values.iter().filter_map(ValueEnum::to_possible_value);
    values.map(|value| value.get_name().into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_two_bounds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "-1", "NaN", "-inf", "abc"] {
            let error = seconds(text).unwrap_err();
            assert_eq!(error, "expected a number of seconds above 0", "{text}");
        }
        for text in ["1e20", "1e300", "inf"] {
            let error = seconds(text).unwrap_err();
            assert_eq!(error, "expected a number of seconds up to 1.8e19", "{text}");
        }
    }

    #[test]
    fn definition_is_consistent() {
        Args::command().debug_assert();
    }

    /// Appends the help of `command` and of its subcommands, as `-h` prints it.
    fn describe(command: &clap::Command, page: &mut String) {
        let name = command.get_bin_name().unwrap_or("mcpd");
        let mut shown = command.clone();
        if name != "mcpd" {
            // Global options are shown once, for `mcpd` itself.
            shown = shown.mut_args(|arg| {
                let is_everywhere =
                    arg.is_global_set() && arg.get_id() != "config" || arg.get_id() == "help";
                let is_hidden = is_everywhere || arg.is_hide_set();
                arg.hide(is_hidden)
            });
        }
        let help = shown.render_help().to_string();
        let help: Vec<_> = help.trim_end().lines().map(str::trim_end).collect();
        *page += &format!("\n## {name}\n\n```text\n{}\n```\n", help.join("\n"));
        let is_own = |below: &&clap::Command| below.get_name() != "help";
        for below in command.get_subcommands().filter(is_own) {
            describe(below, page);
        }
    }

    #[test]
    fn cli_page_equals_the_printed_help() {
        let mut page = "# The command line\n\n\
            The help of each command, as `-h` prints it; `--help` shows more details.\n\
            The options of `mcpd` itself can follow any command.\n\n\
            | exit code | when |\n|---|---|\n\
            | 0 | success |\n\
            | 1 | wrong usage, the command failed, or `check` or `audit` found faults |\n\
            | 2 | the parameters of a BASIC program are invalid (`mcpd basic`) |\n\
            | 5 | the tool failed or does not exist |\n\
            | 130 | the call was interrupted |\n"
            .to_owned();
        let mut command = command_line::first_reading().term_width(100);
        command.build();
        describe(&command, &mut page);
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        let is_same = std::fs::read_to_string(&file).unwrap() == page;
        assert!(
            is_same,
            "docs/cli.md is outdated: run this test with UPDATE_DOCS=1"
        );
    }

    #[test]
    fn root_directory_without_a_command_is_served() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (given, meant) in [
            ("mcpd --root-directory a", "mcpd serve --root-directory a"),
            (
                "mcpd --port 1 --root-directory=a",
                "mcpd serve --port 1 --root-directory=a",
            ),
            (
                "mcpd list --root-directory a",
                "mcpd list --root-directory a",
            ),
            (
                "mcpd -v stdio --root-directory a",
                "mcpd -v stdio --root-directory a",
            ),
            ("mcpd --help", "mcpd --help"),
        ] {
            assert_eq!(with_command(words(given)), words(meant), "{given}");
        }
    }
}
