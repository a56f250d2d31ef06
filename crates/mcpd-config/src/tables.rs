//! Tables and keys of `mcpd.toml`. Each comment is the description in the JSON Schema and in
//! `docs/configuration-reference.md`; the meaning of a value is decided beside its user.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) mod approval;
mod audit;
mod callers;
mod cluster;
mod scripts;
mod sources;
pub(crate) mod warm;

pub(crate) use approval::ApprovalTable;
pub(crate) use audit::{AuditArguments, AuditMode, AuditTable};
pub(crate) use callers::{
    CallerTable, ClientTable, ConsoleRole, ExchangeTable, IssuerTable, LimitsTable, OAuthTable,
    ProfileTable, RuleTable, ScopeTable,
};
#[cfg(feature = "cluster")]
pub(crate) use cluster::TaskPlace;
pub(crate) use cluster::{ClusterTable, Rerun};
pub(crate) use scripts::{
    Backend, Level, Missing, Network, NetworkAccess, RunIn, SandboxTable, Task, Terminal, ToolTable,
};
pub(crate) use sources::{EndpointTable, UpstreamTable};

use crate::options::{BuiltIn, Certificates, Host, LogFormat, ToolNames, WebOrigin};
use crate::value::{Amount, Seconds, Size, Source, Spanned};

/// The configuration of mcpd. Paths are relative to the directory of the file; `~/` is the home
/// directory.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "mcpd.toml")]
pub(crate) struct Tables {
    /// Directories with scripts, or addresses of directories elsewhere
    /// (`git+https://HOST/REPOSITORY?rev=REVISION&path=DIRECTORY`,
    /// `https://HOST/FILE.tar.gz?sha256=DIGEST`), which `mcpd update` must have reviewed. If two
    /// have a script of the same name, the first directory's is served.
    pub(crate) roots: Option<Vec<Spanned<PathBuf>>>,
    /// Directories with scripts, each with settings of its own.
    #[serde(default)]
    pub(crate) root: Vec<RootTable>,
    /// Confinement of scripts while mcpd asks for their descriptions with `--help`.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) probe: ProbeTable,
    /// Built-in tools to serve.
    pub(crate) enable: Option<Vec<BuiltIn>>,
    /// Remember descriptions, so that unchanged scripts are not asked again.
    #[schemars(extend("default" = true))]
    pub(crate) cache: Option<bool>,
    /// Serve only tools, prompts and resources that are as the lock file notes them: see
    /// `mcpd lock` and `mcpd approve`.
    #[schemars(extend("x-reload" = true, "default" = false))]
    pub(crate) locked: Option<bool>,
    /// Lock file of tools; `mcpd.lock` beside this file without it.
    #[schemars(extend("x-reload" = true))]
    pub(crate) lock_file: Option<Spanned<PathBuf>>,
    /// Watch the directories and take changes over without a restart (hot reload).
    #[schemars(extend("default" = true))]
    pub(crate) watch: Option<bool>,
    /// Tool names in lists. Without it `portable` on `/mcp` and stdio, and `path` on `/rpc` and
    /// `/api/mcp`.
    pub(crate) tool_names: Option<ToolNames>,
    /// Entries in one page of a list.
    #[schemars(extend("default" = mcpd_server::catalog::DEFAULT_PAGE_SIZE))]
    pub(crate) page_size: Option<NonZeroUsize>,
    /// Size limit of a message from a client.
    #[schemars(extend("default" = "16 MiB"))]
    pub(crate) max_message: Option<Size>,
    /// Number of scripts that run at the same time; 4 for each core without it.
    pub(crate) concurrency: Option<NonZeroUsize>,
    /// Time limit of a run, in seconds.
    #[schemars(extend("x-reload" = true, "default" = 60))]
    pub(crate) timeout: Option<Seconds>,
    /// Sandbox that confines every script at least this far.
    #[schemars(extend("x-reload" = true, "default" = "none"))]
    pub(crate) floor: Option<Spanned<String>>,
    /// Directories in which clients may have scripts with `run_in = "client"` run, with everything
    /// below. Without it the program that started `mcpd stdio` may name any, and other clients
    /// none.
    #[schemars(extend("x-reload" = true))]
    pub(crate) client_directories: Option<Vec<PathBuf>>,
    /// Control group (cgroup v2) that was delegated to mcpd, to limit the memory and processes of
    /// whole runs; without it the one that mcpd is in, if systemd has delegated it.
    pub(crate) cgroup: Option<Spanned<PathBuf>>,
    /// File with a secret of at least 32 bytes, which seals the state that clients carry for
    /// scripts; all servers that a client may reach need the same one.
    pub(crate) state_key_file: Option<Spanned<PathBuf>>,
    /// Addresses that `mcpd serve` listens on: `HOST:PORT`, or `unix:PATH` for a socket in the
    /// file system.
    #[serde(default)]
    #[schemars(extend("default" = ["127.0.0.1:43210"]))]
    pub(crate) listen: Vec<Spanned<String>>,
    /// Require a token or a certificate from clients over HTTP.
    #[schemars(extend("default" = true))]
    pub(crate) auth: Option<bool>,
    /// Accept the token that mcpd makes, whose client `agent` may use everything unless a rule says
    /// otherwise. Without it only clients with a `[[token]]`, a `[[certificate]]` or a token of an
    /// OAuth issuer are served.
    #[schemars(extend("default" = true))]
    pub(crate) agent_token: Option<bool>,
    /// File of the token that mcpd makes, created if it is missing; `agent-token` in the state
    /// directory without it.
    pub(crate) token_file: Option<Spanned<PathBuf>>,
    /// Host names that clients may use besides `localhost` and the address that mcpd listens on.
    pub(crate) allow_hosts: Option<Vec<Host>>,
    /// Web origins whose pages may call, such as `https://app.example`.
    pub(crate) allow_origins: Option<Vec<WebOrigin>>,
    /// Serve revision 2024-11-05 too, on the paths `/sse` and `/messages`.
    #[schemars(extend("default" = false))]
    pub(crate) http_sse: Option<bool>,
    /// Serve the web console at `/console`.
    #[schemars(extend("default" = false))]
    pub(crate) console: Option<bool>,
    /// Events that each session over HTTP keeps, in bytes, so that a client whose connection
    /// broke resumes its stream by `Last-Event-ID`; 0 keeps none.
    #[schemars(extend("default" = "1 MiB"))]
    pub(crate) resume_buffer: Option<Amount>,
    /// Description of the server for clients and models.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) server: ServerTable,
    /// Encryption of HTTP connections.
    #[serde(default)]
    pub(crate) tls: TlsTable,
    /// Log of mcpd itself, on stderr.
    #[serde(default)]
    pub(crate) log: LogTable,
    /// Rules of `mcpd check` and of editors.
    #[serde(default)]
    pub(crate) check: CheckTable,
    /// Environment of all scripts.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) env: EnvTable,
    /// Arguments of calls.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) arguments: ArgumentsTable,
    /// Sandboxes for `[[tool]]`, `floor` and `--sandbox`, by name.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) sandbox: BTreeMap<Spanned<String>, SandboxTable>,
    /// Interpreter of an extension, such as `py`: a program and its first arguments.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) interpreter: BTreeMap<Spanned<String>, Spanned<Vec<String>>>,
    /// Settings of the tools whose paths match. If several match, the last one wins.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) tool: Vec<ToolTable>,
    /// Approval of calls by a person.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) approval: ApprovalTable,
    /// Clients over HTTP with tokens of their own.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) token: Vec<ClientTable>,
    /// Clients over HTTP that are known by their TLS certificate, in place of a token.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) certificate: Vec<ClientTable>,
    /// Clients that have no table with a credential.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) client: Vec<CallerTable>,
    /// OAuth issuers whose access tokens are accepted over HTTP.
    #[schemars(extend("x-reload" = true))]
    pub(crate) oauth: Option<Spanned<OAuthTable>>,
    /// Selections of tools, by name: for a client, for an address `/mcp/NAME`, or for `--profile`.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) profile: BTreeMap<Spanned<String>, ProfileTable>,
    /// Calls that are allowed or denied to clients.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) rule: Vec<Spanned<RuleTable>>,
    /// Action endpoints: commands whose tools are served beside the scripts.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) endpoint: Vec<EndpointTable>,
    /// MCP servers whose tools, resources and prompts are served beside the scripts.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) upstream: Vec<UpstreamTable>,
    /// Scripts on other machines: `mcpd serve` is a front, and `mcpd worker` runs them.
    #[serde(default)]
    pub(crate) cluster: ClusterTable,
    /// Short list of tools, and a search for the others.
    #[serde(default)]
    pub(crate) search: SearchTable,
    /// Window of a Script Kit.
    #[serde(default)]
    pub(crate) kit: KitTable,
    /// Built-in tool `run_command`, which runs shell commands.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) run_command: RunCommandTable,
    /// Audit log of all calls.
    #[serde(default)]
    pub(crate) audit: AuditTable,
    /// Limits of every client that has no limits of its own.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) limits: LimitsTable,
    /// Metrics for Prometheus, at `/metrics`.
    #[serde(default)]
    pub(crate) metrics: MetricsTable,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[root]]`")]
pub(crate) struct RootTable {
    /// Directory, or address of one. It is served after those of `roots`, unless the command line
    /// names others; these settings hold for it in either case.
    pub(crate) path: Spanned<PathBuf>,
    /// Patterns as in `.gitignore`, relative to the directory. mcpd looks only at files that
    /// match one.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) include: Vec<Spanned<String>>,
    /// Patterns as in `.gitignore`, relative to the directory. mcpd ignores everything that
    /// matches one.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) exclude: Vec<Spanned<String>>,
    /// Confinement of its scripts while mcpd asks for their descriptions; overrides `[probe]`.
    #[serde(default)]
    #[schemars(extend("x-reload" = true))]
    pub(crate) probe: ProbeTable,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[probe]`")]
pub(crate) struct ProbeTable {
    /// Level of confinement, at least; `none` confines a script as its calls are. `guarded`
    /// without it.
    pub(crate) sandbox: Option<Level>,
    /// Network during the probe; `off` without it, unless `sandbox` is `none`.
    pub(crate) network: Option<Network>,
    /// Time limit of the probe, in seconds; 5 without it.
    pub(crate) timeout: Option<Seconds>,
    /// Ask no script if the system can't enforce this confinement; `false` without it.
    pub(crate) require: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[server]`")]
pub(crate) struct ServerTable {
    /// Name of the server for programs; `mcpd` without it.
    pub(crate) name: Option<String>,
    /// Version of the server; that of mcpd without it.
    pub(crate) version: Option<String>,
    /// Name of the server for people.
    pub(crate) title: Option<String>,
    /// Hints for models on how to use the tools together. The instructions of `run_command`
    /// and those in `INSTRUCTIONS.md` of each root follow them.
    pub(crate) instructions: Option<String>,
    /// Web page about the server for people, `http` or `https`.
    #[schemars(extend("format" = "uri"))]
    pub(crate) website_url: Option<Spanned<String>>,
    /// Pictures of the server, best first.
    #[serde(default)]
    pub(crate) icons: Vec<IconTable>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[server.icons]]`")]
pub(crate) struct IconTable {
    /// Address of the picture: an `https:`, `http:` or `data:` URI.
    pub(crate) src: Spanned<String>,
    /// Type of the picture, such as `image/png`.
    pub(crate) mime_type: Option<String>,
    /// Sizes of the picture, such as `48x48`, or `any`.
    #[serde(default)]
    pub(crate) sizes: Vec<String>,
    /// Background that the picture is drawn for.
    pub(crate) theme: Option<Theme>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Theme {
    /// Light background.
    Light,
    /// Dark background.
    Dark,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[tls]`")]
pub(crate) struct TlsTable {
    /// File of the server's certificate and the chain to its authority, in PEM.
    pub(crate) certificate: Option<Spanned<PathBuf>>,
    /// File of the private key of the certificate, in PEM.
    pub(crate) key: Option<Spanned<PathBuf>>,
    /// File of the authorities that certify clients, in PEM.
    pub(crate) client_ca: Option<Spanned<PathBuf>>,
    /// Certificates of clients; `required` without it if there is a `client_ca`.
    pub(crate) client_certificates: Option<Spanned<Certificates>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[check]`")]
pub(crate) struct CheckTable {
    /// Rules to check, by their codes or first words of them; all without it.
    pub(crate) select: Option<Vec<String>>,
    /// Rules to leave out; of a rule in both lists, the longer name counts.
    pub(crate) ignore: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[log]`")]
pub(crate) struct LogTable {
    /// Format of the log.
    #[schemars(extend("default" = "text"))]
    pub(crate) format: Option<LogFormat>,
    /// Filter of log messages, such as `warn` or `mcpd_server=debug`.
    #[schemars(extend("x-reload" = true))]
    pub(crate) filter: Option<Spanned<String>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[search]`")]
pub(crate) struct SearchTable {
    /// List the tools `search_tools` and `call_tool` in place of all others.
    #[schemars(extend("default" = false))]
    pub(crate) enabled: Option<bool>,
    /// Patterns of the paths of tools that stay in the list, such as `git/*`.
    #[serde(default)]
    pub(crate) always_listed: Vec<Spanned<String>>,
    /// Number of tools that a search returns by default, 20 at most.
    #[schemars(extend("default" = 5, "minimum" = 1, "maximum" = 20))]
    pub(crate) results: Option<Spanned<NonZeroUsize>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[kit]`")]
pub(crate) struct KitTable {
    /// Serve the tools `kit/show`, `kit/hide` and `kit/state` and the resources of a Script Kit.
    #[schemars(extend("default" = false))]
    pub(crate) serve: Option<bool>,
    /// Program that shows the window, with its arguments.
    pub(crate) show: Option<Spanned<Vec<String>>>,
    /// Program that hides the window, with its arguments.
    pub(crate) hide: Option<Spanned<Vec<String>>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[arguments]`")]
pub(crate) struct ArgumentsTable {
    /// Names of arguments that clients add to every call, such as `toolCallId` of n8n. mcpd drops
    /// them if the script declares no such option.
    #[serde(default)]
    pub(crate) ignore: Vec<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[env]`")]
pub(crate) struct EnvTable {
    /// Variables that scripts inherit from mcpd; a name that ends with `*` means all with that
    /// prefix.
    #[serde(default)]
    pub(crate) pass: Vec<Spanned<String>>,
    /// Variables that scripts do not inherit; a name that ends with `*` means all with that
    /// prefix.
    #[serde(default)]
    pub(crate) drop: Vec<Spanned<String>>,
    /// Variables that count as not set while they are empty, or a placeholder such as
    /// `${user_config.region}` that the client of a bundle has left as it is; a name that ends
    /// with `*` means all with that prefix.
    #[serde(default)]
    pub(crate) optional: Vec<Spanned<String>>,
    /// Variables to set, for values that are not secret.
    #[serde(default)]
    pub(crate) set: BTreeMap<Spanned<String>, String>,
}

/// Variables whose values are secrets.
pub(crate) type Variables = BTreeMap<Spanned<String>, Spanned<Source>>;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[metrics]`")]
pub(crate) struct MetricsTable {
    /// Loopback address for metrics, such as `127.0.0.1:9464`. Every program on this machine can
    /// read them there.
    pub(crate) listen: Option<Spanned<String>>,
    /// Serve metrics at `/metrics` beside `/mcp`, to clients with a token.
    #[schemars(extend("default" = false))]
    pub(crate) to_clients: Option<bool>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[run_command]`")]
pub(crate) struct RunCommandTable {
    /// Name of the sandbox that confines commands; `none` confines nothing.
    #[schemars(extend("default" = "guarded"))]
    pub(crate) sandbox: Option<Spanned<String>>,
    /// Work directory of commands, which they may write; a directory of the server's own without
    /// it.
    pub(crate) workdir: Option<Spanned<PathBuf>>,
    /// Time limit of a command if the call names none, in seconds; that of scripts, at most
    /// `max_timeout`, without it.
    pub(crate) timeout: Option<Seconds>,
    /// Longest time limit that a call may ask for, in seconds; a longer `timeout` raises it.
    #[schemars(extend("default" = 600))]
    pub(crate) max_timeout: Option<Seconds>,
    /// Shell and its arguments before the command; `/bin/sh -c` without it.
    pub(crate) shell: Option<Spanned<Vec<String>>>,
    /// Patterns of the only commands that may run; all without it.
    pub(crate) allow: Option<Spanned<Vec<Spanned<String>>>>,
    /// Patterns of commands that may not run, whatever else is allowed.
    pub(crate) deny: Option<Vec<Spanned<String>>>,
}
