//! Tables of other servers: MCP servers, and action endpoints.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Variables;
use crate::value::{Seconds, Source, Spanned};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[upstream]]`")]
pub(crate) struct UpstreamTable {
    /// Name of the server for people.
    pub(crate) name: Spanned<String>,
    /// Program and arguments of a server on stdin and stdout. Either this or `url` is required.
    pub(crate) command: Option<Spanned<Vec<String>>>,
    /// Address of a server over Streamable HTTP, `http` or `https`.
    #[schemars(extend("format" = "uri"))]
    pub(crate) url: Option<Spanned<String>>,
    /// Path that its tools and prompts are served below; `name` without it. With `""` they keep
    /// their own names.
    pub(crate) prefix: Option<Spanned<String>>,
    /// Patterns of the tools to serve, by their own names; all without it.
    pub(crate) tools: Option<Spanned<Vec<String>>>,
    /// Time limit of a request, in seconds.
    #[schemars(extend("default" = 60))]
    pub(crate) timeout: Option<Seconds>,
    /// Variables of a `command`. Their values are secrets.
    #[serde(default)]
    pub(crate) env: Variables,
    /// Headers for a `url`. Their values are secrets.
    #[serde(default)]
    pub(crate) headers: Variables,
    /// Token for a `url`, sent as `Authorization: Bearer`.
    pub(crate) token: Option<Spanned<Source>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "tables `[[endpoint]]`")]
pub(crate) struct EndpointTable {
    /// Program and its arguments; a path is relative to the directory of the file.
    pub(crate) command: Spanned<Vec<String>>,
    /// Path that its tools are served below, as `PREFIX/NAME`.
    pub(crate) prefix: Option<Spanned<String>>,
    /// Time limit of a call, in seconds; that of scripts without it.
    pub(crate) timeout: Option<Seconds>,
    /// Interval between requests for its list, in seconds.
    #[schemars(extend("default" = 60))]
    pub(crate) refresh: Option<Seconds>,
    /// Variables for this endpoint alone. Their values are secrets.
    #[serde(default)]
    pub(crate) env: Variables,
}
