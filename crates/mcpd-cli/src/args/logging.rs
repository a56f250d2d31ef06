//! Options of the log.

use clap::{ArgAction, Args as ClapArgs, ValueEnum};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const LOG: &str = "Logging options";

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
