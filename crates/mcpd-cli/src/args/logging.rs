//! Options of the log.

use clap::{ArgAction, Args as ClapArgs, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{Layers, LogTable};

pub(super) const LOG: &str = "Logging options";

/// Options of mcpd's own log.
#[derive(Debug, Clone, ClapArgs)]
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
    /// Log format [default: text]
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        env = "MCPD_LOG_FORMAT",
        help_heading = LOG
    )]
    pub(crate) log_format: Option<LogFormat>,
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

impl Logging {
    pub(super) fn combine(&mut self, layers: &mut Layers<'_>) {
        let LogTable { format, filter } = &layers.file.tables.log;
        let filter = filter.as_ref().map(|filter| filter.get_ref().clone());
        layers.value("log.format", "log_format", &mut self.log_format, *format);
        layers.value("log.filter", "filter", &mut self.filter, filter);
    }

    /// Returns whether the log is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.log_format == Some(LogFormat::Json)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Readable lines.
    Text,
    /// One JSON object per line.
    Json,
}
