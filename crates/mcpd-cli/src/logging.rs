//! mcpd's own log: to standard error through its [queue](crate::stderr), and never anywhere else.

use std::io::{self, Write};

use anyhow::anyhow;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use crate::args::{LogFormat, Logging};
use crate::{output, stderr};

/// What a line of the log is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// An operator, perhaps days later: what happened, and when.
    Operator,
    /// The person waiting for the command: errors, and no more words than needed.
    Caller,
}

/// What callers are told: what goes wrong, also with an endpoint, and what a script may do or leave behind that nobody
/// expects of it. All else is in words of the command.
const CALLER: &str =
    "error,mcpd_server::run=warn,mcpd_server::policy=warn,mcpd_server::endpoint=warn";

/// Which messages are logged, to be changed while mcpd runs.
#[derive(Debug)]
pub(crate) struct Filter {
    handle: reload::Handle<EnvFilter, Registry>,
    audience: Audience,
}

impl Filter {
    /// What `options` come to now.
    ///
    /// # Errors
    ///
    /// The filter can't be read.
    pub(crate) fn read(&self, options: &Logging) -> anyhow::Result<EnvFilter> {
        filter(options, self.audience)
    }

    /// Logs what passes `filter` from now on.
    pub(crate) fn set(&self, filter: EnvFilter) {
        // An error would mean that nobody logs any more, and mcpd itself does.
        self.handle.reload(filter).ok();
    }
}

/// Starts logging. Flags go before `MCPD_LOG`.
pub(crate) fn start(options: &Logging, audience: Audience) -> anyhow::Result<Filter> {
    if audience == Audience::Operator {
        stderr::drop_when_full();
    }
    let (filter, handle) = reload::Layer::new(filter(options, audience)?);
    let log = fmt::layer()
        .with_writer(|| Records)
        .with_ansi(output::has_colours());
    let log = match (options.log_format, audience) {
        (LogFormat::Json, _) => log.json().flatten_event(true).boxed(),
        (LogFormat::Text, Audience::Operator) => log.with_target(false).boxed(),
        (LogFormat::Text, Audience::Caller) => log.with_target(false).without_time().boxed(),
    };
    tracing_subscriber::registry().with(filter).with(log).init();
    Ok(Filter { handle, audience })
}

/// Output of the log. Each record comes in one piece; what looks like the next one within it was written by the author of
/// a file name or by a script, and is set apart.
struct Records;

impl Write for Records {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let (text, end) = match record.strip_suffix(b"\n") {
            Some(text) => (text, "\n"),
            None => (record, ""),
        };
        if text.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
            let text = String::from_utf8_lossy(text);
            let shown = text.replace('\r', "\\r").replace('\n', "\n  ");
            stderr::write(format!("{shown}{end}").as_bytes());
        } else {
            stderr::write(record);
        }
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether this says which messages are logged.
///
/// # Errors
///
/// It can't be read.
pub(crate) fn check(filter: &str) -> anyhow::Result<()> {
    read(filter).map(drop)
}

/// What rmcp tells at the level of operators, and below, are the messages it exchanges, and secrets with them. They are
/// for whoever asks for them by name, and not for who wants everything.
fn read(filter: &str) -> anyhow::Result<EnvFilter> {
    let read = EnvFilter::try_new(filter)
        .map_err(|error| anyhow!("read the log filter `{filter}`: {error}"))?;
    // What it says, mcpd says in words of its own.
    if filter.split(',').any(|one| one.starts_with("rmcp")) {
        return Ok(read);
    }
    Ok(read.add_directive("rmcp=off".parse()?))
}

fn filter(options: &Logging, audience: Audience) -> anyhow::Result<EnvFilter> {
    let is_flagged = options.verbose > 0 || options.quiet;
    match (&options.filter, audience) {
        (Some(filter), _) if !is_flagged => read(filter),
        (None, Audience::Caller) if !is_flagged => read(CALLER),
        _ => read(&level(options, audience).to_string()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(filter: &str, expected: &str) {
        let read = read(filter).unwrap().to_string();
        let mut directives: Vec<_> = read.split(',').collect();
        directives.sort_unstable();
        assert_eq!(directives.join(","), expected);
    }

    #[test]
    fn only_who_names_rmcp_sees_its_messages() {
        check("info", "info,rmcp=off");
        check("5", "rmcp=off,trace");
        check("mcpd=trace,info", "info,mcpd=trace,rmcp=off");
        check("rmcp=debug,info", "info,rmcp=debug");
        check("info,rmcp::service=trace", "info,rmcp::service=trace");
    }
}
