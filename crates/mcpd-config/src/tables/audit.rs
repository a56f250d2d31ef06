//! Table of the audit log.

use std::num::NonZeroU32;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::value::Amount;

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "the table `[audit]`", default)]
pub(crate) struct AuditTable {
    /// Reaction if a call can't be recorded.
    #[schemars(extend("default" = "best-effort"))]
    pub(crate) mode: AuditMode,
    /// Recorded part of arguments.
    #[schemars(extend("x-reload" = true, "default" = "full"))]
    pub(crate) args: AuditArguments,
    /// File of the log; `logs/mcp-audit.jsonl` in the state directory without it.
    #[schemars(extend("x-reload" = true))]
    pub(crate) path: Option<PathBuf>,
    /// Size at which a new file is begun.
    #[schemars(extend("x-reload" = true, "default" = "16 MiB"))]
    pub(crate) max_size: Option<Amount>,
    /// Number of full files that are kept.
    #[schemars(extend("x-reload" = true, "default" = 8))]
    pub(crate) keep: Option<NonZeroU32>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AuditMode {
    /// The call is refused.
    Require,
    /// The call is made, and the loss is counted.
    #[default]
    BestEffort,
    /// Nothing is recorded.
    Off,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuditArguments {
    /// Nothing.
    None,
    /// Names.
    Names,
    /// Names, and hashes of values.
    Hash,
    /// Names and values, without secrets.
    #[default]
    Full,
}
