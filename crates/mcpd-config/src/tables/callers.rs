//! Tables of callers: clients, limits, and the access by OAuth.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};

use schemars::JsonSchema;
use serde::Deserialize;

use super::Variables;
use crate::value::{Source, Spanned};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "tables `[[token]]` or `[[certificate]]`"
)]
pub(crate) struct ClientTable {
    /// Name of the client in rules and in the audit log.
    pub(crate) name: Spanned<String>,
    /// SHA-256 hash, 64 hexadecimal digits: of the client's token, as `mcpd token new` prints it,
    /// or the fingerprint of its certificate, as `openssl x509 -in client.pem -noout -fingerprint
    /// -sha256` prints it.
    pub(crate) sha256: Spanned<String>,
    /// Patterns of the tools, prompts and resources that the client may use; all without it.
    pub(crate) tools: Option<Vec<Spanned<String>>>,
    /// Name of the `[profile.NAME]` that selects what the client may use.
    pub(crate) profile: Option<Spanned<String>>,
    /// Role of the client in the web console.
    #[serde(default)]
    pub(crate) console: ConsoleRole,
    /// Calls of the client that run at the same time; further calls wait.
    pub(crate) concurrency: Option<NonZeroUsize>,
    /// Rate limit of the client (token bucket): calls per second in the long run, such as `0.5`;
    /// `inf` for no limit.
    pub(crate) rate: Option<Spanned<f64>>,
    /// Calls that may begin at once, beyond the rate; the calls of two seconds without it.
    pub(crate) burst: Option<NonZeroU32>,
    /// Variables for the runs of scripts that the client causes, and no others: its own
    /// credentials. Their values are secrets.
    #[serde(default)]
    pub(crate) env: Variables,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[client]]`")]
pub(crate) struct CallerTable {
    /// Name of the client: `agent`, `local`, `anonymous`, or `ISSUER#SUBJECT` for the bearer of a
    /// token of an OAuth issuer.
    pub(crate) name: Spanned<String>,
    /// Name of the `[profile.NAME]` that selects what the client may use.
    pub(crate) profile: Option<Spanned<String>>,
    /// Role of the client in the web console; `agent` and `anonymous` are operators in any case.
    #[serde(default)]
    pub(crate) console: ConsoleRole,
    /// Variables for the runs of scripts that the client causes, and no others: its own
    /// credentials. Their values are secrets.
    #[serde(default)]
    pub(crate) env: Variables,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ConsoleRole {
    /// The client sees its own tools and runs.
    #[default]
    Caller,
    /// The client sees the server and all runs, and may cancel these.
    Operator,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with a name, `[profile.NAME]`"
)]
pub(crate) struct ProfileTable {
    /// Patterns of the tools, prompts and resources that are selected; all without it.
    pub(crate) tools: Option<Vec<Spanned<String>>>,
    /// Patterns of those that are left out.
    #[serde(default)]
    pub(crate) exclude: Vec<Spanned<String>>,
    /// Tags: tools with none of them are left out.
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    /// Leave out tools that don't say they change nothing (`read_only` in `annotations`).
    #[serde(default)]
    pub(crate) read_only: bool,
    /// Number of tools at most: those of the first pattern of `tools`, then those of the next,
    /// each in the order of their paths.
    pub(crate) max_tools: Option<NonZeroUsize>,
    /// Names of MCP clients that see this profile, as they introduce themselves; `*` stands for
    /// any text. A client can call itself anything, so this protects nothing.
    #[serde(default)]
    pub(crate) clients: Vec<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[limits]`", default)]
pub(crate) struct LimitsTable {
    /// Calls of a client that run at the same time; further calls wait.
    #[schemars(extend("default" = 32))]
    pub(crate) concurrency: Option<NonZeroUsize>,
    /// Rate limit of a client (token bucket): calls per second in the long run, such as `0.5`;
    /// `inf` for no limit. Without it 20 for clients with a `[[token]]`, a `[[certificate]]` or a
    /// token of an OAuth issuer, and no limit for `agent`, `local` and `anonymous`.
    pub(crate) rate: Option<Spanned<f64>>,
    /// Calls that may begin at once, beyond the rate; the calls of two seconds without it.
    pub(crate) burst: Option<NonZeroU32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[oauth]`")]
pub(crate) struct OAuthTable {
    /// URL of `/mcp` for clients, which tokens must name as their audience; the address that mcpd
    /// listens on without it.
    pub(crate) resource: Option<Spanned<String>>,
    /// Other audiences that tokens may name, for issuers that use names of their own.
    #[serde(default)]
    pub(crate) audience: Vec<String>,
    /// Claims of a token, such as `email`, that scripts with `"context": true` learn; none without
    /// it.
    #[serde(default)]
    pub(crate) claims: Vec<String>,
    /// Exchanges (RFC 8693) of callers' tokens for tokens of other services.
    #[serde(default)]
    pub(crate) exchange: Vec<ExchangeTable>,
    /// Issuers whose tokens are accepted.
    #[serde(default)]
    pub(crate) issuer: Vec<IssuerTable>,
    /// Tools that each scope of a token allows. Without any scope a token allows everything that
    /// rules allow.
    #[serde(default)]
    pub(crate) scope: Vec<ScopeTable>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[oauth.exchange]]`")]
pub(crate) struct ExchangeTable {
    /// Name for variables of `[[tool]]`, as in `{ exchange = "NAME" }`.
    pub(crate) name: Spanned<String>,
    /// URL of the issuer's token endpoint: `https`, or `http` on this machine.
    pub(crate) endpoint: Spanned<String>,
    /// Name of mcpd at the issuer.
    pub(crate) client_id: Option<String>,
    /// Password of mcpd at the issuer.
    pub(crate) client_secret: Option<Spanned<Source>>,
    /// Name of the service that the new token is for.
    pub(crate) audience: Option<String>,
    /// URL of the service that the new token is for.
    pub(crate) resource: Option<String>,
    /// Scopes of the new token, with spaces between them.
    pub(crate) scope: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[oauth.issuer]]`")]
pub(crate) struct IssuerTable {
    /// Name of the issuer, byte for byte as in the `iss` of its tokens.
    pub(crate) url: Spanned<String>,
    /// Keys of the issuer: a URL, or the path of a file; without it the issuer's own metadata
    /// names the place.
    pub(crate) jwks: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[oauth.scope]]`")]
pub(crate) struct ScopeTable {
    /// Name of the scope in tokens.
    pub(crate) name: Spanned<String>,
    /// Patterns of the tools, prompts and resources that the scope allows.
    pub(crate) tools: Spanned<Vec<Spanned<String>>>,
    /// Name the scope to clients only when a call needs it.
    #[serde(default)]
    pub(crate) step_up: bool,
}

/// A rule has either `allow` or `deny`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[rule]]`")]
pub(crate) struct RuleTable {
    /// Names of the clients that the rule is about; all clients without it.
    pub(crate) clients: Option<Vec<Spanned<String>>>,
    /// Patterns of tools. A client that any such rule is about may call only what one of them
    /// allows.
    pub(crate) allow: Option<Spanned<Vec<Spanned<String>>>>,
    /// Patterns of tools that may never be called, whatever else is allowed.
    pub(crate) deny: Option<Spanned<Vec<Spanned<String>>>>,
    /// Arguments: the rule holds only for calls in which each of these matches one of its
    /// patterns; `*` stands for any text.
    #[serde(default)]
    pub(crate) arguments: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
}
