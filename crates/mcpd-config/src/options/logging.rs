//! Options of the log.

use clap::{ArgAction, Args as ClapArgs, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::layers::{Combine, Layers};
use crate::tables::LogTable;

pub(crate) const LOG: &str = "Logging options";

/// Options of mcpd's own log.
#[derive(Debug, Clone, ClapArgs)]
#[non_exhaustive]
pub struct Logging {
    /// Log more; repeat for even more.
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = LOG)]
    pub verbose: u8,
    /// Log errors only.
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = LOG
    )]
    pub quiet: bool,
    /// Log format [default: text]
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        env = "MCPD_LOG_FORMAT",
        help_heading = LOG
    )]
    pub log_format: Option<LogFormat>,
    /// Log filter, such as `warn` or `mcpd_server=debug`.
    #[arg(
        long = "log",
        global = true,
        value_name = "FILTER",
        env = "MCPD_LOG",
        help_heading = LOG
    )]
    pub filter: Option<String>,
}

impl Combine for Logging {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        let LogTable { format, filter } = &layers.file.tables.log;
        let filter = filter.as_ref().map(|filter| filter.get_ref().clone());
        layers.value("log.format", "log_format", &mut self.log_format, *format);
        layers.value("log.filter", "filter", &mut self.filter, filter);
    }
}

impl Logging {
    /// Returns whether the log is JSON.
    pub fn is_json(&self) -> bool {
        self.log_format == Some(LogFormat::Json)
    }
}

/// Format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LogFormat {
    /// Readable lines.
    Text,
    /// One JSON object per line.
    Json,
}
