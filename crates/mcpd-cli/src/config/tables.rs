//! What `mcpd.toml` can say: its tables and their keys, each with the words that its schema has for it.
//! What the values mean is decided beside each user of them.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::value::{Amount, Seconds, Size, Source, Spanned};
use crate::args::{BuiltIn, Certificates, Host, LogFormat, ToolNames, WebOrigin};

/// The configuration of mcpd. Paths are relative to the directory of the file; `~/` is the home directory.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "mcpd.toml")]
pub(super) struct Tables {
    /// Directories with scripts; of two with one name, the first directory's is served.
    pub(super) roots: Option<Vec<Spanned<PathBuf>>>,
    /// Directories with scripts, of which there is more to say than where they are.
    #[serde(default)]
    pub(super) root: Vec<RootTable>,
    /// How scripts are confined while they are asked for their descriptions.
    #[serde(default)]
    pub(super) probe: ProbeTable,
    /// Tools that mcpd brings along.
    pub(super) enable: Option<Vec<BuiltIn>>,
    /// Whether scripts that have not changed are not asked again for their descriptions.
    #[schemars(extend("default" = true))]
    pub(super) cache: Option<bool>,
    /// Whether changes of the directories are followed.
    #[schemars(extend("default" = true))]
    pub(super) watch: Option<bool>,
    /// How lists spell the tool `math/add`; without it as the face of mcpd demands.
    pub(super) tool_names: Option<ToolNames>,
    /// How many entries a list gives at a time.
    #[schemars(extend("default" = mcpd_server::DEFAULT_PAGE_SIZE))]
    pub(super) page_size: Option<NonZeroUsize>,
    /// The longest message that is read.
    #[schemars(extend("default" = "16 MiB"))]
    pub(super) max_message: Option<Size>,
    /// How many scripts run at a time; 4 for each core without it.
    pub(super) concurrency: Option<NonZeroUsize>,
    /// How long a script may run, in seconds.
    #[schemars(extend("default" = 60))]
    pub(super) timeout: Option<Seconds>,
    /// The sandbox that confines every script at least so far, as `--sandbox` does.
    #[schemars(extend("default" = "none"))]
    pub(super) floor: Option<Spanned<String>>,
    /// A control group that was delegated to mcpd, below which it limits the memory of whole runs; without it the one it
    /// is in, if systemd has delegated it.
    pub(super) cgroup: Option<Spanned<PathBuf>>,
    /// A file with a secret of at least 32 bytes, which seals the state that clients carry for scripts; the same for
    /// all servers that a client may reach.
    pub(super) state_key_file: Option<Spanned<PathBuf>>,
    /// Where `mcpd serve` listens: `HOST:PORT`, or `unix:PATH` for a socket in the file system.
    #[serde(default)]
    #[schemars(extend("default" = ["127.0.0.1:43210"]))]
    pub(super) listen: Vec<Spanned<String>>,
    /// Whether clients over HTTP must show who they are.
    #[schemars(extend("default" = true))]
    pub(super) auth: Option<bool>,
    /// The file of the token, made if it is missing; `agent-token` in the state directory without it.
    pub(super) token_file: Option<Spanned<PathBuf>>,
    /// Names that clients may reach the server under, besides localhost and the address it listens on.
    pub(super) allow_hosts: Option<Vec<Host>>,
    /// Web origins that may call, such as `https://app.example`.
    pub(super) allow_origins: Option<Vec<WebOrigin>>,
    /// Whether revision 2024-11-05 is also served on paths of its own, /sse and /messages.
    #[schemars(extend("default" = false))]
    pub(super) http_sse: Option<bool>,
    /// Bytes of events that each session over HTTP keeps, so that clients whose connection broke resume a stream by
    /// `Last-Event-ID`; 0 for none.
    #[schemars(extend("default" = "1 MiB"))]
    pub(super) resume_buffer: Option<Amount>,
    /// Identity of the server as clients and models read it.
    #[serde(default)]
    pub(super) server: ServerTable,
    /// Encryption of what is served over HTTP.
    #[serde(default)]
    pub(super) tls: TlsTable,
    /// What mcpd says of its own doings, on stderr.
    #[serde(default)]
    pub(super) log: LogTable,
    /// The environment that all scripts start from.
    #[serde(default)]
    pub(super) env: EnvTable,
    /// The arguments of calls.
    #[serde(default)]
    pub(super) arguments: ArgumentsTable,
    /// Sandboxes, by the names that `[[tool]]` and `--sandbox` know them by.
    #[serde(default)]
    pub(super) sandbox: BTreeMap<Spanned<String>, SandboxTable>,
    /// What runs the files of an extension, such as `py`: a program and its first arguments.
    #[serde(default)]
    pub(super) interpreter: BTreeMap<Spanned<String>, Spanned<Vec<String>>>,
    /// What holds for the tools whose paths match. Of several that match, a later one goes before an earlier one.
    #[serde(default)]
    pub(super) tool: Vec<ToolTable>,
    /// Clients over HTTP with tokens of their own.
    #[serde(default)]
    pub(super) token: Vec<ClientTable>,
    /// Clients over HTTP whose certificates say who they are, in the place of a token.
    #[serde(default)]
    pub(super) certificate: Vec<ClientTable>,
    /// Issuers elsewhere whose access tokens are accepted over HTTP.
    pub(super) oauth: Option<Spanned<OAuthTable>>,
    /// Which calls some clients may make, or may not.
    #[serde(default)]
    pub(super) rule: Vec<Spanned<RuleTable>>,
    /// Commands whose tools are served beside the scripts.
    #[serde(default)]
    pub(super) endpoint: Vec<EndpointTable>,
    /// MCP servers whose tools, resources and prompts are served, too.
    #[serde(default)]
    pub(super) upstream: Vec<UpstreamTable>,
    /// The window of a Script Kit.
    #[serde(default)]
    pub(super) kit: KitTable,
    /// The tool that runs commands, if it is enabled.
    #[serde(default)]
    pub(super) run_command: RunCommandTable,
    /// The log of what was called.
    #[serde(default)]
    pub(super) audit: AuditTable,
    /// How much every client may ask for, if its token says nothing else.
    #[serde(default)]
    pub(super) limits: LimitsTable,
    /// Metrics for Prometheus, at `/metrics`.
    #[serde(default)]
    pub(super) metrics: MetricsTable,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[root]]`")]
pub(super) struct RootTable {
    /// The directory. It is served after those of `roots`, unless the command line names others; what is said of it holds
    /// there, too.
    pub(super) path: Spanned<PathBuf>,
    /// Patterns as in `.gitignore`, relative to the directory; only files that match one are looked at.
    #[serde(default)]
    pub(super) include: Vec<Spanned<String>>,
    /// Patterns as in `.gitignore`; nothing that matches one is looked at.
    #[serde(default)]
    pub(super) exclude: Vec<Spanned<String>>,
    /// How its scripts are confined while they are asked for their descriptions.
    #[serde(default)]
    pub(super) probe: ProbeTable,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[probe]`")]
pub(super) struct ProbeTable {
    /// How far, at least; with `none` as far as their calls. `guarded` without it.
    pub(super) sandbox: Option<Level>,
    /// Network of scripts that are asked; `off` without it, unless the level is `none`.
    pub(super) network: Option<Network>,
    /// How long a script may take, in seconds; 5 without it.
    pub(super) timeout: Option<Seconds>,
    /// Asks no script at all where the system can't confine it so.
    pub(super) require: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[server]`")]
pub(super) struct ServerTable {
    /// Name of the server for people.
    pub(super) title: Option<String>,
    /// Hints for models on how to use the tools of the server together.
    pub(super) instructions: Option<String>,
    /// Page for people about the server, `http` or `https`.
    #[schemars(extend("format" = "uri"))]
    pub(super) website_url: Option<Spanned<String>>,
    /// Pictures of the server, best first.
    #[serde(default)]
    pub(super) icons: Vec<IconTable>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[server.icons]]`")]
pub(super) struct IconTable {
    /// Where the picture is: an `https:`, `http:` or `data:` URI.
    pub(super) src: Spanned<String>,
    /// Type of the picture, such as `image/png`.
    pub(super) mime_type: Option<String>,
    /// Sizes it has, such as `48x48`, or `any`.
    #[serde(default)]
    pub(super) sizes: Vec<String>,
    /// Background it is drawn for.
    pub(super) theme: Option<Theme>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Theme {
    /// A light one.
    Light,
    /// A dark one.
    Dark,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[tls]`")]
pub(super) struct TlsTable {
    /// The file of the server's certificate and of those that lead from it to an authority, in PEM.
    pub(super) certificate: Option<Spanned<PathBuf>>,
    /// The file of the certificate's private key, in PEM.
    pub(super) key: Option<Spanned<PathBuf>>,
    /// A file with the authorities whose certificates clients show, in PEM.
    pub(super) client_ca: Option<Spanned<PathBuf>>,
    /// Whether clients without a certificate can connect; with `client_ca` they can't.
    pub(super) client_certificates: Option<Spanned<Certificates>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[log]`")]
pub(super) struct LogTable {
    /// The form of the log.
    #[schemars(extend("default" = "text"))]
    pub(super) format: Option<LogFormat>,
    /// Which messages are logged, such as `warn` or `mcpd_server=debug`.
    pub(super) filter: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[kit]`")]
pub(super) struct KitTable {
    /// Whether the tools kit/show, kit/hide and kit/state are served, and the resources of a Script Kit.
    #[schemars(extend("default" = false))]
    pub(super) serve: Option<bool>,
    /// The program that shows the window, and its arguments.
    pub(super) show: Option<Spanned<Vec<String>>>,
    /// The program that hides it, and its arguments.
    pub(super) hide: Option<Spanned<Vec<String>>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[arguments]`")]
pub(super) struct ArgumentsTable {
    /// Names of arguments that clients add to every call, left out where a script declares no such option.
    #[serde(default)]
    pub(super) ignore: Vec<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[env]`")]
pub(super) struct EnvTable {
    /// Names that are inherited from mcpd; one that ends with `*` means all that begin so.
    #[serde(default)]
    pub(super) pass: Vec<Spanned<String>>,
    /// Names that are not inherited; one that ends with `*` means all that begin so.
    #[serde(default)]
    pub(super) drop: Vec<Spanned<String>>,
    /// Variables that are set, and are no secrets.
    #[serde(default)]
    pub(super) set: BTreeMap<Spanned<String>, String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with a name, `[sandbox.NAME]`"
)]
pub(super) struct SandboxTable {
    /// Where it starts from.
    #[serde(default)]
    #[schemars(extend("default" = "guarded"))]
    pub(super) level: Level,
    /// What may be written, with everything below, if it is there when a script is run.
    pub(super) write: Option<Vec<PathBuf>>,
    /// Paths that may be read although they are hidden, such as `~/.config/tool`, but for what is hidden by
    /// name below.
    pub(super) read: Option<Vec<PathBuf>>,
    /// What may not be read, besides the secrets that are known to mcpd, such as `~/.ssh`.
    pub(super) hide: Option<Vec<PathBuf>>,
    /// Whether there is a network; that of the host unless the level is `strict`.
    pub(super) network: Option<Network>,
    /// Whether a script runs if the system can't do all of this; that depends on the level otherwise.
    pub(super) missing: Option<Missing>,
    /// Whom scripts run as, `user` or `user:group`, by name or number; for mcpd run by root.
    pub(super) run_as: Option<Spanned<String>>,
    /// Processor time of each process, in seconds.
    pub(super) cpu: Option<Seconds>,
    /// Address space of each process.
    pub(super) address_space: Option<Amount>,
    /// The largest file that may be written.
    pub(super) file_size: Option<Amount>,
    /// Memory of the whole run; that takes a control group of mcpd's own.
    pub(super) memory: Option<Amount>,
    /// How many files each process may have open.
    pub(super) open_files: Option<u64>,
    /// How many processes the whole run may have.
    pub(super) processes: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// May do what mcpd may do.
    None,
    /// Writes nothing but what is allowed, reads no secrets, gains no rights, and leaves no process behind.
    #[default]
    Guarded,
    /// Is also in a system of its own, without a network; where the kernel can't do that, it is not run.
    Strict,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Network {
    /// That of the host.
    Host,
    /// No connection, not even to this machine.
    Off,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Missing {
    /// It runs, and what is missing is in the log once.
    Report,
    /// It does not run.
    Refuse,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Task {
    /// They don't.
    Never,
    /// They do if they are not over within half a second.
    Auto,
    /// They always do, and clients that know of no tasks can't make any.
    Required,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Terminal {
    /// As a terminal would show it in the end: without colours, and a progress bar once.
    Shown,
    /// With all escape sequences and carriage returns.
    Raw,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[tool]]`")]
pub(super) struct ToolTable {
    /// Which tools: `*` stands for a part of a name, `**` for any number of names.
    #[serde(rename = "match")]
    pub(super) pattern: Spanned<String>,
    /// The name of the sandbox that confines them.
    pub(super) sandbox: Option<Spanned<String>>,
    /// How long a run may take, in seconds; goes before what the script says.
    pub(super) timeout: Option<Seconds>,
    /// How many runs of each there may be at once; goes before what the script says.
    pub(super) concurrency: Option<NonZeroUsize>,
    /// Whether secrets are taken out of what they print.
    #[schemars(extend("default" = true))]
    pub(super) redact: Option<bool>,
    /// Form in which models read what they print.
    #[schemars(extend("default" = "shown"))]
    pub(super) terminal: Option<Terminal>,
    /// Whether calls go on in the background; goes before what the script says.
    pub(super) task: Option<Task>,
    /// How they are confined while they are asked for their descriptions; goes before `[probe]`.
    #[serde(default)]
    pub(super) probe: ProbeTable,
    /// Variables for them alone, which are secrets.
    #[serde(default)]
    pub(super) env: Variables,
}

/// Variables that are secrets.
pub(super) type Variables = BTreeMap<Spanned<String>, Spanned<Source>>;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[upstream]]`")]
pub(super) struct UpstreamTable {
    /// What people know the server as.
    pub(super) name: Spanned<String>,
    /// A program and its arguments, spoken to over its stdin and stdout. It has this or a `url`.
    pub(super) command: Option<Spanned<Vec<String>>>,
    /// Where it is reached over Streamable HTTP, `http` or `https`.
    #[schemars(extend("format" = "uri"))]
    pub(super) url: Option<Spanned<String>>,
    /// The path that its tools and prompts are served below; the name without it. With `""` they are served as they
    /// are called.
    pub(super) prefix: Option<Spanned<String>>,
    /// Patterns of the tools that are served, by their own names; all without it.
    pub(super) tools: Option<Spanned<Vec<String>>>,
    /// How long a request may take, in seconds.
    #[schemars(extend("default" = 60))]
    pub(super) timeout: Option<Seconds>,
    /// Variables of a `command`, which are secrets.
    #[serde(default)]
    pub(super) env: Variables,
    /// Headers for a `url`, which are secrets.
    #[serde(default)]
    pub(super) headers: Variables,
    /// The token for a `url`, sent as `Authorization: Bearer`.
    pub(super) token: Option<Spanned<Source>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[endpoint]]`")]
pub(super) struct EndpointTable {
    /// The program and its arguments; a path is relative to the directory of the file.
    pub(super) command: Spanned<Vec<String>>,
    /// Its tools are served as `PREFIX/NAME`.
    pub(super) prefix: Option<Spanned<String>>,
    /// How long a call may take, in seconds; as long as that of a script without it.
    pub(super) timeout: Option<Seconds>,
    /// How often it is asked for its list, in seconds.
    #[schemars(extend("default" = 60))]
    pub(super) refresh: Option<Seconds>,
    /// Variables for it alone, which are secrets.
    #[serde(default)]
    pub(super) env: Variables,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "tables `[[token]]` or `[[certificate]]`"
)]
pub(super) struct ClientTable {
    /// What rules and the audit log call the client.
    pub(super) name: Spanned<String>,
    /// The hash of what it shows, 64 hexadecimal digits: of its token, as `mcpd token new` prints it, or of its
    /// certificate, as `openssl x509 -noout -fingerprint -sha256` does.
    pub(super) sha256: Spanned<String>,
    /// Patterns of all it may use; everything without it.
    pub(super) tools: Option<Vec<Spanned<String>>>,
    /// How many of its calls are carried out at a time; others wait.
    pub(super) concurrency: Option<NonZeroUsize>,
    /// How many calls it may begin per second in the long run; `inf` for any number.
    pub(super) rate: Option<Spanned<f64>>,
    /// How many of them at once; two seconds' worth without it.
    pub(super) burst: Option<NonZeroU32>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[metrics]`")]
pub(super) struct MetricsTable {
    /// A loopback address of their own, such as `127.0.0.1:9464`, where every program on this machine is served them.
    pub(super) listen: Option<Spanned<String>>,
    /// Whether they are served beside `/mcp`, to clients with a token.
    #[schemars(extend("default" = false))]
    pub(super) to_clients: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[limits]`", default)]
pub(super) struct LimitsTable {
    /// How many calls of a client are carried out at a time; others wait.
    #[schemars(extend("default" = 32))]
    pub(super) concurrency: Option<NonZeroUsize>,
    /// How many calls a client may begin per second in the long run; `inf` for any number. Without it there is a limit
    /// of 20 for clients with a `[[token]]` or a `[[certificate]]`, and none for others.
    pub(super) rate: Option<Spanned<f64>>,
    /// How many of them at once; two seconds' worth without it.
    pub(super) burst: Option<NonZeroU32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[oauth]`")]
pub(super) struct OAuthTable {
    /// The URL of `/mcp` for clients, which tokens must name as their audience; without it where the server listens.
    pub(super) resource: Option<Spanned<String>>,
    /// Other audiences that tokens may name, for issuers that have names of their own for what tokens are for.
    #[serde(default)]
    pub(super) audience: Vec<String>,
    /// Whose tokens are accepted.
    #[serde(default)]
    pub(super) issuer: Vec<IssuerTable>,
    /// What tokens are good for, by their scopes. Without any scope each is good for everything.
    #[serde(default)]
    pub(super) scope: Vec<ScopeTable>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[oauth.issuer]]`")]
pub(super) struct IssuerTable {
    /// What the issuer calls itself, byte for byte: the `iss` of its tokens.
    pub(super) url: Spanned<String>,
    /// Where its keys are: a URL, or the path of a file. Without it the issuer's own metadata says so.
    pub(super) jwks: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[oauth.scope]]`")]
pub(super) struct ScopeTable {
    /// What tokens call it.
    pub(super) name: Spanned<String>,
    /// Patterns of the tools that may be used with it.
    pub(super) tools: Spanned<Vec<Spanned<String>>>,
    /// Whether clients are told of it only when a call takes it.
    #[serde(default)]
    pub(super) step_up: bool,
}

/// It has `allow` or `deny`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[rule]]`")]
pub(super) struct RuleTable {
    /// The names of the clients it is about; everybody without it.
    pub(super) clients: Option<Vec<Spanned<String>>>,
    /// Patterns of tools. As soon as one such rule is about a client, it may call only what one of them allows.
    pub(super) allow: Option<Spanned<Vec<Spanned<String>>>>,
    /// Patterns of tools that are never called, whatever is allowed.
    pub(super) deny: Option<Spanned<Vec<Spanned<String>>>>,
    /// Only the calls in which each of these arguments matches one of its patterns; `*` stands for any text.
    #[serde(default)]
    pub(super) arguments: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[run_command]`")]
pub(super) struct RunCommandTable {
    /// The name of the sandbox that confines commands.
    #[schemars(extend("default" = "guarded"))]
    pub(super) sandbox: Option<Spanned<String>>,
    /// Where commands work, and may write; a directory of the server's own without it.
    pub(super) workdir: Option<Spanned<PathBuf>>,
    /// How long a command may run if the call does not say, in seconds; otherwise as for scripts.
    pub(super) timeout: Option<Seconds>,
    /// How long a call may ask for at most, in seconds.
    #[schemars(extend("default" = 600))]
    pub(super) max_timeout: Option<Seconds>,
    /// The shell, and what it is given before the command; `/bin/sh -c` without it.
    pub(super) shell: Option<Spanned<Vec<String>>>,
    /// Patterns of the only commands that are run; all without it.
    pub(super) allow: Option<Spanned<Vec<Spanned<String>>>>,
    /// Patterns of commands that are not run, whatever is allowed.
    pub(super) deny: Option<Vec<Spanned<String>>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[audit]`", default)]
pub(super) struct AuditTable {
    /// What if a call can't be recorded.
    #[schemars(extend("default" = "best-effort"))]
    pub(super) mode: AuditMode,
    /// How much is recorded of arguments.
    #[schemars(extend("default" = "full"))]
    pub(super) args: AuditArguments,
    /// Where the log is; `logs/mcp-audit.jsonl` in the state directory without it.
    pub(super) path: Option<PathBuf>,
    /// How large a file gets before another one is begun.
    #[schemars(extend("default" = "16 MiB"))]
    pub(super) max_size: Option<Amount>,
    /// How many full files are kept.
    #[schemars(extend("default" = 8))]
    pub(super) keep: Option<NonZeroU32>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AuditMode {
    /// It is refused.
    Require,
    /// It is made, and counted.
    #[default]
    BestEffort,
    /// Nothing is recorded.
    Off,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum AuditArguments {
    /// Nothing.
    None,
    /// Their names.
    Names,
    /// Their names and hashes of their values.
    Hash,
    /// Their names and values, without secrets.
    #[default]
    Full,
}
