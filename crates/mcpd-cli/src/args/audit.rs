//! Arguments of `mcpd audit`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Subcommand};
use mcpd_server::audit;

use super::Configuration;

#[derive(Debug, Clone, ClapArgs)]
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

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum AuditAction {
    /// Verify that no record was changed, removed or moved; otherwise the exit code is 1. Of
    /// several logs, also compare which runs a front and a worker of a cluster have recorded.
    Verify {
        /// Audit logs [default: the one of --file]
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
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

#[derive(Debug, Clone, ClapArgs)]
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

#[derive(Debug, Clone, ClapArgs)]
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
