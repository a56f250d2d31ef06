//! mcpd's own log, written to standard error alone, through its [queue](mcpd_service::stderr).

use std::io::{self, Write};

use mcpd_config::log_filter;
use mcpd_service::stderr;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use crate::args::Logging;
use crate::output;

/// Reader of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// An operator, perhaps days later, who needs events with their times.
    Operator,
    /// The user waiting for the command: errors, and no more words than needed.
    Caller,
    /// The author of tools under test, whose report has the endings of runs.
    Tester,
}

/// Log filter for callers: errors, also of an endpoint, and unexpected permissions or leftovers of
/// a script. The command itself prints everything else.
const CALLER_FILTER: &str = "error,mcpd_server::execution::run=warn,\
     mcpd_server::observe::missing_enforcement=warn,mcpd_server::policy=warn,\
     mcpd_server::tools::endpoint=warn";

/// Log filter for testers: errors, and unexpected permissions.
const TESTER_FILTER: &str =
    "error,mcpd_server::observe::missing_enforcement=warn,mcpd_server::policy=warn";

/// Log filter that can change while mcpd runs.
#[derive(Debug)]
pub(crate) struct Filter {
    handle: reload::Handle<EnvFilter, Registry>,
    audience: Audience,
}

impl Filter {
    /// Filter for `options`, without setting it.
    ///
    /// # Errors
    ///
    /// The filter can't be parsed.
    pub(crate) fn read(&self, options: &Logging) -> anyhow::Result<EnvFilter> {
        filter(options, self.audience)
    }

    /// Logs what passes `filter` from now on.
    pub(crate) fn set(&self, filter: EnvFilter) {
        // An error would mean that there is no logger, and mcpd has one.
        self.handle.reload(filter).ok();
    }
}

/// Starts logging. Flags take precedence over `MCPD_LOG`.
pub(crate) fn start(options: &Logging, audience: Audience) -> anyhow::Result<Filter> {
    if audience == Audience::Operator {
        stderr::drop_when_full();
    }
    let (filter, handle) = reload::Layer::new(filter(options, audience)?);
    let log = fmt::layer()
        .with_writer(|| Records)
        .with_ansi(output::has_colours());
    let log = match audience {
        _ if options.is_json() => log.json().flatten_event(true).boxed(),
        Audience::Operator => log.with_target(false).boxed(),
        Audience::Caller | Audience::Tester => log.with_target(false).without_time().boxed(),
    };
    tracing_subscriber::registry().with(filter).with(log).init();
    Ok(Filter { handle, audience })
}

/// Writer of the log. Each record is written in one piece; a line within it that imitates a record
/// comes from a file name or a script, and is indented.
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

fn filter(options: &Logging, audience: Audience) -> anyhow::Result<EnvFilter> {
    let is_flagged = options.verbose > 0 || options.quiet;
    match (&options.filter, audience) {
        (Some(filter), _) if !is_flagged => log_filter::parse(filter),
        (None, Audience::Caller) if !is_flagged => log_filter::parse(CALLER_FILTER),
        (None, Audience::Tester) if !is_flagged => log_filter::parse(TESTER_FILTER),
        _ => log_filter::parse(&level(options, audience).to_string()),
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
        Audience::Caller | Audience::Tester => 0,
    };
    LEVELS[(default + usize::from(options.verbose)).min(LEVELS.len() - 1)]
}
