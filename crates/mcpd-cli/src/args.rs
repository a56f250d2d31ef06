//! The command line, as types. The only place that knows clap; what the values mean together is
//! decided in [`config`](crate::config).

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args as ClapArgs, CommandFactory as _, Parser, Subcommand, ValueEnum};
use mcpd_server::audit;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use self::command_line::{Chosen, CommandLine, variables};
pub(crate) use self::web::{Host, WebOrigin};

mod command_line;
mod web;

const HTTP: &str = "HTTP";
const CONFIGURATION: &str = "Configuration";
const CONFINEMENT: &str = "Confinement";
const LOG: &str = "Log, on stderr";

/// Serve a directory of executable scripts to MCP clients.
#[derive(Debug, Parser)]
#[command(
    name = "mcpd",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  mcpd stdio ~/tools                    what an MCP client starts
  mcpd serve ~/tools                    HTTP on 127.0.0.1:43210, with a token
  mcpd call ~/tools greet name=World    call a tool from the shell
  mcpd check ~/tools                    what is wrong with the scripts

`mcpd --root-directory DIR` is short for `mcpd serve DIR`.

Exit codes:
  0    all went well
  1    wrong usage, a command that could not be carried out, or `check` or `audit` found faults
  5    the tool failed, or there is no such tool
  130  a call was interrupted"
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
    /// Serve over stdin and stdout, as MCP clients start it.
    Stdio(Stdio),
    /// List the tools, the prompts or the resources.
    List(List),
    /// Show what a tool or a prompt takes.
    Describe(Describe),
    /// Call a tool.
    Call(Call),
    /// Show what a prompt comes to.
    Prompt(Prompt),
    /// Read a resource.
    Read(Read),
    /// Show the state of a stateful tool.
    State(State),
    /// Answer one request of an action endpoint.
    Endpoint(Endpoint),
    /// Find faults in what scripts say of themselves.
    Check(Check),
    /// Print what files describe as definitions for models and their APIs.
    Compile(Compile),
    /// Show or forget what is remembered of scripts.
    Catalog(Catalog),
    /// Make tokens for clients over HTTP.
    Token(TokenCommand),
    /// Read the audit log.
    Audit(Audit),
    /// Look after the configuration, mcpd.toml.
    Config(Config),
    /// Find out what this machine can enforce.
    Doctor(Doctor),
    /// Run a BASIC program.
    Basic(Basic),
}

/// What is said of mcpd's own doings.
#[derive(Debug, ClapArgs)]
pub(crate) struct Logging {
    /// Log more; twice for even more.
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
    /// The form of the log.
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        env = "MCPD_LOG_FORMAT",
        default_value = "text",
        help_heading = LOG
    )]
    pub(crate) log_format: LogFormat,
    /// Which messages are logged, such as `warn` or `mcpd_server=debug`.
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
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Where the scripts are.
#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = true)]
pub(crate) struct Roots {
    /// Directories with scripts; of two with one name, the first directory's is served.
    #[arg(value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// The same as DIR.
    #[arg(long = "root-directory", value_name = "DIR")]
    root_directories: Vec<PathBuf>,
}

impl Roots {
    /// All of them, however they were given.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.directories.iter().chain(&self.root_directories)
    }
}

/// Tools that mcpd brings along.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct Enabling {
    /// Serve a tool that mcpd brings along; no directory is needed then.
    #[arg(
        long,
        value_name = "TOOL",
        group = "Roots",
        env = "MCPD_ENABLE",
        value_delimiter = ','
    )]
    pub(crate) enable: Vec<BuiltIn>,
    /// Where `run_command` works [default: a directory of this server's own, deleted with it]
    #[arg(long, value_name = "DIR", env = "MCPD_WORKDIR")]
    pub(crate) workdir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BuiltIn {
    /// Any command of a shell, written by a model; confined unless the configuration says otherwise
    #[value(name = "run_command")]
    RunCommand,
    /// Five tools by which calls go on in the background, for clients that know of no tasks: runs_start, runs_list, runs_status, runs_output and runs_stop
    Runs,
}

/// How scripts are found.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Scanning {
    /// Ask every script for its description, even if nothing has changed since last time.
    #[arg(long, env = "MCPD_NO_CACHE")]
    pub(crate) no_cache: bool,
}

/// Where the configuration is; [`CommandLine`] reads it before everything else.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct Configuration {
    /// The configuration, mcpd.toml [default: that of the project, the user or the system]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "MCPD_CONFIG",
        help_heading = CONFIGURATION
    )]
    config: Option<PathBuf>,
}

/// What scripts may do.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct Confinement {
    #[command(flatten)]
    pub(crate) configuration: Configuration,
    /// Confine every script at least so far: none, guarded, strict or a sandbox of the configuration
    #[arg(
        long,
        value_name = "LEVEL",
        env = "MCPD_SANDBOX",
        help_heading = CONFINEMENT
    )]
    pub(crate) sandbox: Option<String>,
    /// Let every confined script read this file or directory, although it is hidden
    #[arg(
        long,
        value_name = "PATH",
        env = "MCPD_ALLOW_READ",
        value_delimiter = ',',
        help_heading = CONFINEMENT
    )]
    pub(crate) allow_read: Vec<PathBuf>,
    /// Let every confined script write this file or directory.
    #[arg(
        long,
        value_name = "PATH",
        env = "MCPD_ALLOW_WRITE",
        value_delimiter = ',',
        help_heading = CONFINEMENT
    )]
    pub(crate) allow_write: Vec<PathBuf>,
    /// A control group that was delegated to mcpd, below which it limits the memory of whole runs [default: the one it is
    /// in, if systemd has delegated it]
    #[arg(
        long,
        value_name = "DIR",
        env = "MCPD_CGROUP",
        help_heading = CONFINEMENT
    )]
    pub(crate) cgroup: Option<PathBuf>,
    /// Let no script use the network.
    #[arg(long, env = "MCPD_NO_NETWORK", help_heading = CONFINEMENT)]
    pub(crate) no_network: bool,
}

impl Confinement {
    /// Returns whether a flag changes the sandbox that another names.
    pub(crate) fn changes_sandbox(&self) -> bool {
        self.no_network || !self.allow_read.is_empty() || !self.allow_write.is_empty()
    }
}

/// How clients are spoken to, whatever the transport.
#[derive(Debug, ClapArgs)]
pub(crate) struct Serving {
    #[command(flatten)]
    pub(crate) roots: Roots,
    #[command(flatten)]
    pub(crate) enabling: Enabling,
    #[command(flatten)]
    pub(crate) scanning: Scanning,
    /// Don't follow changes of the directories.
    #[arg(long, env = "MCPD_NO_WATCH")]
    pub(crate) no_watch: bool,
    /// How lists spell the tool `math/add`: `math_add`, which every client accepts, or as it is.
    #[arg(long, value_name = "SPELLING", env = "MCPD_TOOL_NAMES")]
    pub(crate) tool_names: Option<ToolNames>,
    /// How many entries a list gives at a time; clients fetch the rest page by page.
    #[arg(long, value_name = "NUMBER", env = "MCPD_PAGE_SIZE", default_value_t = mcpd_server::DEFAULT_PAGE_SIZE, value_parser = whole_number)]
    pub(crate) page_size: NonZeroUsize,
    /// The longest message that is read.
    #[arg(long, value_name = "BYTES", env = "MCPD_MAX_MESSAGE", default_value_t = NonZeroUsize::new(mcpd_server::DEFAULT_MAX_MESSAGE).expect("it is not zero"), value_parser = whole_number)]
    pub(crate) max_message: NonZeroUsize,
    /// How many scripts run at a time [default: 4 for each core]
    #[arg(
        long,
        value_name = "NUMBER",
        env = "MCPD_CONCURRENCY",
        value_parser = whole_number
    )]
    pub(crate) concurrency: Option<NonZeroUsize>,
    /// A file with a secret of at least 32 bytes, the same for all servers that a client may reach: scripts
    /// that ask questions carry state through clients, and it is sealed with this [default: a secret of
    /// this server's own, gone with it]
    #[arg(long, value_name = "FILE", env = "MCPD_STATE_KEY_FILE")]
    pub(crate) state_key_file: Option<PathBuf>,
    /// Also serve the tools kit/show, kit/hide and kit/state of a Script Kit, and its resources.
    #[arg(long, env = "MCPD_KIT")]
    pub(crate) kit: bool,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
}

/// What one run of a script may take.
#[derive(Debug, ClapArgs)]
pub(crate) struct RunLimits {
    /// How long a script may run [default: 60]
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

The address is that of --listen or --port, or else of the first there is of the variables
MCPD_LISTEN, MCPD_PORT and MCP_PORT, and `listen` in mcpd.toml.
The token is made at the first start; clients send it as `Authorization: Bearer TOKEN`.")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) serving: Serving,
    /// Where to listen: HOST:PORT, or unix:PATH for a socket in the file system; may be given several times
    /// [default: 127.0.0.1:43210]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "port", help_heading = HTTP)]
    pub(crate) listen: Vec<String>,
    /// The same as HOST:PORT with 127.0.0.1 as the host; 0 is any port that is free.
    #[arg(long, value_parser = port, help_heading = HTTP)]
    pub(crate) port: Option<u16>,
    /// The file of the token, made if it is missing [default: $XDG_STATE_HOME/mcpd/agent-token]
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TOKEN_FILE",
        help_heading = HTTP
    )]
    pub(crate) token_file: Option<PathBuf>,
    /// The certificate of the server, in PEM: everything is encrypted then, but on sockets in the file system.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TLS_CERTIFICATE",
        help_heading = HTTP
    )]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The private key of the certificate, in PEM.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TLS_KEY",
        help_heading = HTTP
    )]
    pub(crate) tls_key: Option<PathBuf>,
    /// The authorities whose certificates clients show, in PEM.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCPD_TLS_CLIENT_CA",
        help_heading = HTTP
    )]
    pub(crate) tls_client_ca: Option<PathBuf>,
    /// Whether clients without a certificate can connect [default: required with --tls-client-ca]
    #[arg(
        long,
        value_name = "WHETHER",
        env = "MCPD_TLS_CLIENT_CERTIFICATES",
        help_heading = HTTP
    )]
    pub(crate) tls_client_certificates: Option<Certificates>,
    /// Serve every program on this machine, without a token; only on a loopback address or a socket in the file system.
    #[arg(long, env = "MCPD_NO_AUTH", help_heading = HTTP)]
    pub(crate) no_auth: bool,
    /// A name that clients may reach the server under, besides localhost and the address it listens on.
    #[arg(long, value_name = "HOST", env = "MCPD_ALLOW_HOST", value_delimiter = ',', help_heading = HTTP)]
    pub(crate) allow_host: Vec<Host>,
    /// A web origin that may call, such as `https://app.example`.
    #[arg(long, value_name = "ORIGIN", env = "MCPD_ALLOW_ORIGIN", value_delimiter = ',', help_heading = HTTP)]
    pub(crate) allow_origin: Vec<WebOrigin>,
    /// Also serve revision 2024-11-05 on paths of its own, /sse and /messages.
    #[arg(long, env = "MCPD_HTTP_SSE", help_heading = HTTP)]
    pub(crate) http_sse: bool,
    /// Bytes of events that each session keeps, so that clients whose connection broke resume a stream by
    /// Last-Event-ID; 0 for none.
    #[arg(long, value_name = "BYTES", env = "MCPD_RESUME_BUFFER", default_value_t = mcpd_server::transport::http::DEFAULT_RESUME_BUFFER, help_heading = HTTP)]
    pub(crate) resume_buffer: usize,
    /// Serve metrics for Prometheus at /metrics on a loopback address of their own, such as 127.0.0.1:9464, to every
    /// program on this machine.
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "MCPD_METRICS_LISTEN",
        help_heading = HTTP
    )]
    pub(crate) metrics_listen: Option<String>,
    /// Serve them at /metrics beside /mcp, to clients with a token.
    #[arg(long, help_heading = HTTP)]
    pub(crate) metrics_to_clients: bool,
}

/// Whether clients show certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Certificates {
    /// Who shows one must have it from one of the authorities
    Optional,
    /// Who shows none can't connect
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
    /// A control group that was delegated to mcpd, below which it limits the memory of whole runs [default: the one it is
    /// in, if systemd has delegated it]
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

Parameters come as one JSON object on stdin, what TALK and PRINT say goes to stdout, faults go to stderr.
The exit code is 1 when the program is faulty or fails, and 2 when the parameters make no sense.")]
pub(crate) struct Basic {
    /// The program.
    pub(crate) file: PathBuf,
    /// How many operations it may take, before it counts as one that never ends.
    #[arg(long, value_name = "NUMBER", default_value_t = mcpd_basic::Limits::default().operations)]
    pub(crate) max_operations: u64,
    /// The parameters are those of a call, which has been checked.
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
    /// List every file instead, with what became of it: served, faulty, passed over or ignored, and why.
    #[arg(long, conflicts_with_all = ["prompts", "resources"])]
    pub(crate) all: bool,
    /// List the prompts.
    #[arg(long)]
    pub(crate) prompts: bool,
    /// List the resources, and the templates of others.
    #[arg(long, conflicts_with = "prompts")]
    pub(crate) resources: bool,
    /// Print them as MCP clients get them.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `--enable` does for commands that need a directory all the same.
const BESIDE_SCRIPTS: &str = "Serve a tool that mcpd brings along beside those of DIR";

/// One directory, and what holds for its scripts.
#[derive(Debug, ClapArgs)]
pub(crate) struct OneDirectory {
    /// A directory with scripts.
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
    /// The tool: `math/add`, `math_add` and `math.add` are one.
    pub(crate) tool: String,
}

#[derive(Debug, ClapArgs)]
#[command(mut_arg("enable", |enable| enable.help(BESIDE_SCRIPTS)))]
pub(crate) struct Describe {
    #[command(flatten)]
    pub(crate) tool: OneTool,
    #[command(flatten)]
    pub(crate) enabling: Enabling,
    /// Print the tool or the prompt as MCP clients get it.
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

The answer goes to stdout, what the script logs to stderr.
The exit code is 5 when the tool fails.")]
#[command(mut_arg("enable", |enable| enable.help(BESIDE_SCRIPTS)))]
pub(crate) struct Call {
    #[command(flatten)]
    pub(crate) tool: OneTool,
    #[command(flatten)]
    pub(crate) enabling: Enabling,
    /// Arguments: NAME=TEXT, or NAME:=JSON; a text that is a number or a boolean counts as one where
    /// the tool wants one.
    #[arg(value_name = "NAME=VALUE", conflicts_with = "json")]
    pub(crate) arguments: Vec<String>,
    /// All arguments as one JSON object; `-` reads it from stdin.
    #[arg(
        long,
        value_name = "OBJECT",
        visible_alias = "json-args",
        allow_hyphen_values = true
    )]
    pub(crate) json: Option<String>,
    /// What is printed: the content of the answer, or all of it.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: CallOutput,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallOutput {
    /// The text as the script printed it.
    Text,
    /// The result as MCP clients get it.
    Json,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  mcpd prompt ~/tools review language=Rust

What it comes to goes to stdout, what the script logs to stderr.
The exit code is 5 when there is no such prompt, or its script fails.")]
pub(crate) struct Prompt {
    #[command(flatten)]
    pub(crate) place: OneDirectory,
    /// The prompt, as `mcpd list --prompts` shows it.
    pub(crate) prompt: String,
    /// Its arguments.
    #[arg(value_name = "NAME=TEXT")]
    pub(crate) arguments: Vec<String>,
    /// Print the result as MCP clients get it.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Example:
  mcpd read ~/tools disk://usage

The contents go to stdout as they are, what the script logs to stderr.
The exit code is 5 when there is no such resource, or its script fails.")]
pub(crate) struct Read {
    #[command(flatten)]
    pub(crate) place: OneDirectory,
    /// What it is called, as `mcpd list --resources` shows it; in a template, with values for its variables.
    #[arg(value_name = "URI")]
    pub(crate) uri: String,
    /// Print the result as MCP clients get it.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct State {
    #[command(flatten)]
    pub(crate) tool: OneTool,
    /// Print the resource as MCP clients get it.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  echo '{\"action\": \"list_tools\"}' | mcpd endpoint ~/tools
  echo '{\"action\": \"call_tool\", \"tool\": \"greet\", \"arguments\": {\"name\": \"World\"}}' \\
    | mcpd endpoint ~/tools

The exit code is 1 when the answer is an error. A tool that ran and failed is a result:
it has an exit code of its own.")]
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

The exit code is 1 if there is an error, or a warning that is denied, whatever the format;
with --as, if a tool is refused.")]
pub(crate) struct Check {
    /// Directories with scripts, or single scripts.
    #[arg(value_name = "PATH", required_unless_present = "explain")]
    pub(crate) paths: Vec<PathBuf>,
    /// Explain a rule, and check nothing; without CODE, list all rules.
    #[arg(
        long,
        value_name = "CODE",
        num_args = 0..=1,
        default_missing_value = "all",
        conflicts_with_all = ["paths", "format", "deny", "client", "is_static"]
    )]
    pub(crate) explain: Option<String>,
    /// How faults are printed.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: CheckFormat,
    /// Count warnings as errors.
    #[arg(long, value_name = "WHAT")]
    pub(crate) deny: Option<Denied>,
    /// Show what a client would make of the tools: the name and schema that its model gets, and what it refuses.
    #[arg(long = "as", value_name = "CLIENT")]
    pub(crate) client: Option<Client>,
    /// Run nothing: check what can be read, for a machine without what the scripts need.
    #[arg(long = "static")]
    pub(crate) is_static: bool,
    /// How the tools are listed to the client.
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
    /// With the place in the script's output.
    Human,
    /// One line each, the place first.
    Short,
    /// One array of objects.
    Json,
    /// SARIF 2.1.0, for code scanners.
    Sarif,
    /// Annotations of a GitHub workflow.
    Github,
}

/// The clients whose rules are known.
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
    /// The key of the one that is meant, unless all are.
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
One tool is printed as an object, any other number as an array; faults go to stderr,
as `mcpd check` finds them.
The exit code is 1 if there is an error, or no tool.")]
pub(crate) struct Compile {
    /// Files that describe tools, or directories of them.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The form of the definitions.
    #[arg(long, value_name = "FORMAT", default_value = "definition")]
    pub(crate) format: CompileFormat,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompileFormat {
    /// With `input_schema`, and one `example` for each parameter.
    Definition,
    /// As MCP clients get it.
    Mcp,
    /// A function, as OpenAI's API takes it.
    Openai,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Catalog {
    #[command(subcommand)]
    pub(crate) action: CatalogAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogAction {
    /// List the definitions.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the definitions of one tool.
    Show {
        /// Its path below its root, such as `math/add`.
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Forget the definitions of one tool, so that it is asked again.
    Forget {
        /// Its path below its root, such as `math/add`.
        #[arg(conflicts_with = "all")]
        name: Option<String>,
        /// Forget all of them.
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
    /// Put a new token in place of the one that mcpd has made.
    Rotate {
        /// The file of the token [default: $XDG_STATE_HOME/mcpd/agent-token]
        #[arg(long, value_name = "FILE", env = "MCPD_TOKEN_FILE")]
        token_file: Option<PathBuf>,
        #[command(flatten)]
        configuration: Configuration,
    },
    /// Make a token for a client of its own, and what mcpd.toml has to say of it.
    New {
        /// What the client is called.
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
    /// The log [default: that of the configuration]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    configuration: Configuration,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditAction {
    /// Find out whether records were changed, removed or moved; then the exit code is 1.
    Verify {
        /// Also look for the record with this hash, as an earlier `verify` has told it: without it the end of the log
        /// is gone, or all of it was written anew.
        #[arg(long)]
        hash: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show the last records.
    Tail(AuditTail),
    /// Find records; the exit code is 1 if there are none.
    Grep(AuditGrep),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AuditTail {
    /// How many.
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 10)]
    pub(crate) lines: usize,
    /// Go on with those that are written.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print the records as they are in the log.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct AuditGrep {
    /// Only records with this text somewhere, in what they say or as it is in the file.
    pub(crate) text: Option<String>,
    /// Only those of this tool, prompt or resource: its path, or what a call has named.
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// Only those of this caller.
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,
    /// Only those that ended so, such as `success`, `time-limit` or `denied`.
    #[arg(long, value_parser = PossibleValuesParser::new(audit::outcomes()), hide_possible_values = true)]
    pub(crate) outcome: Option<String>,
    /// Only those from this time on, such as `2026-11-22`, `2026-11-22T10:30` or, two hours ago, `2h`.
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only those before this time.
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Print the records as they are in the log.
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
    /// Find faults in configurations; then the exit code is 1. Programs that print secrets are not run.
    Check {
        /// The files [default: the one that is read without another wish]
        #[arg(value_name = "FILE", env = "MCPD_CONFIG")]
        files: Vec<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what `mcpd serve` would go by: flags, variables, the configuration and defaults. No secret is shown.
    Show(Box<ConfigShow>),
    /// Print the JSON Schema of mcpd.toml.
    Schema,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigShow {
    /// What `mcpd serve` would be called with.
    #[command(flatten)]
    pub(crate) serve: Serve,
    /// Say where each setting comes from.
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

/// Without a command, `--root-directory` means `serve`.
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
    // What is no number at all is none above 0, either.
    time(text.parse().unwrap_or_default())
}

/// A time above zero.
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

/// The number of a port, as a flag or a variable says it.
pub(crate) fn port(text: &str) -> Result<u16, &'static str> {
    text.parse()
        .map_err(|_| "expected a number from 0 to 65535")
}

/// How the command line spells values.
pub(crate) fn spellings<T: ValueEnum>(values: &[T]) -> Vec<OsString> {
    let values = values.iter().filter_map(ValueEnum::to_possible_value);
    values.map(|value| value.get_name().into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_two_bounds() {
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
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    /// What a command prints for `-h`, and those below it for theirs.
    fn describe(command: &clap::Command, page: &mut String) {
        let name = command.get_bin_name().unwrap_or("mcpd");
        let mut shown = command.clone();
        if name != "mcpd" {
            // They are the same everywhere.
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
    fn the_page_of_the_command_line_is_what_it_prints() {
        let mut page = "# The command line\n\n\
            What each command prints for `-h`; `--help` says more of its options.\n\
            Those of `mcpd` itself can follow any command.\n\n\
            | exit code | when |\n|---|---|\n\
            | 0 | the command did what it was asked to |\n\
            | 1 | the command line is wrong, mcpd could not do its job, or `check` or `audit` found faults |\n\
            | 2 | the parameters of a BASIC program are none (`mcpd basic`) |\n\
            | 5 | there is no such tool, or it answered that it failed |\n\
            | 130 | a call was interrupted |\n"
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
            "docs/cli.md is old: set UPDATE_DOCS=1 and test again"
        );
    }

    #[test]
    fn without_a_command_a_root_directory_is_served() {
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
