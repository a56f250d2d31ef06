//! mcpd's own log: to stderr, and never anywhere else.

use std::io;

use anstream::{AutoStream, ColorChoice};
use anyhow::anyhow;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

use crate::args::{LogFormat, Logging};

/// What a line of the log is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// An operator, perhaps days later: what happened, and when.
    Operator,
    /// The person waiting for the command: errors, and no more words than needed.
    Caller,
}

/// Starts logging. Flags go before `MCPD_LOG`.
pub(crate) fn start(options: &Logging, audience: Audience) -> anyhow::Result<()> {
    let filter = match &options.filter {
        Some(filter) if options.verbose == 0 && !options.quiet => EnvFilter::try_new(filter)
            .map_err(|error| anyhow!("read the log filter `{filter}`: {error}"))?,
        _ => default_filter(level(options, audience))?,
    };
    let colours = AutoStream::choice(&io::stderr()) != ColorChoice::Never;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(colours);
    match (options.log_format, audience) {
        (LogFormat::Json, _) => log.json().flatten_event(true).init(),
        (LogFormat::Text, Audience::Operator) => log.with_target(false).init(),
        (LogFormat::Text, Audience::Caller) => log.with_target(false).without_time().init(),
    }
    Ok(())
}

/// What rmcp tells at the level of operators are the messages it exchanges.
fn default_filter(level: LevelFilter) -> anyhow::Result<EnvFilter> {
    let filter = EnvFilter::default().add_directive(level.into());
    Ok(match level {
        LevelFilter::INFO => filter.add_directive("rmcp=warn".parse()?),
        _ => filter,
    })
}

fn level(options: &Logging, audience: Audience) -> LevelFilter {
    const LEVELS: [LevelFilter; 5] = [
        LevelFilter::ERROR,
        LevelFilter::WARN,
        LevelFilter::INFO,
        LevelFilter::DEBUG,
        LevelFilter::TRACE,
    ];
    let default = match audience {
        _ if options.quiet => 0,
        Audience::Operator => 2,
        Audience::Caller => 0,
    };
    LEVELS[(default + usize::from(options.verbose)).min(LEVELS.len() - 1)]
}
