//! Grammar of a line of a script's stderr: a log message with its level, or progress.

/// Severity of a log message, most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the script contract fixes these five"
)]
pub enum LogLevel {
    /// `ERROR`
    Error,
    /// `WARNING` or `WARN`
    Warning,
    /// `INFO`, and every line without a prefix
    Info,
    /// `DEBUG`
    Debug,
    /// `TRACE`
    Trace,
}

/// One log message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogLine<'a> {
    /// The level in the line, or [`LogLevel::Info`].
    pub level: LogLevel,
    /// The line without its prefix.
    pub text: &'a str,
}

/// One report of progress.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ProgressLine<'a> {
    /// Completed part, in units of the script's choice.
    pub progress: f64,
    /// Total, in the same units.
    pub total: Option<f64>,
    /// Description of the current step.
    pub text: Option<&'a str>,
}

const PREFIXES: [(&str, LogLevel); 6] = [
    ("ERROR", LogLevel::Error),
    ("WARNING", LogLevel::Warning),
    ("WARN", LogLevel::Warning),
    ("INFO", LogLevel::Info),
    ("DEBUG", LogLevel::Debug),
    ("TRACE", LogLevel::Trace),
];

/// Parses the level prefix of a line, given without its line end.
///
/// A prefix is a whole word in capitals at the very start, with or without a colon. A line without
/// a prefix has level `info`, and all of it is text.
///
/// ```
/// use mcpd_scriptspec::log_line::{LogLevel, log_line};
///
/// let line = log_line("ERROR: disk full");
/// assert_eq!((line.level, line.text), (LogLevel::Error, "disk full"));
/// assert_eq!(log_line("ERRORS were few").text, "ERRORS were few");
/// ```
#[must_use]
pub fn log_line(line: &str) -> LogLine<'_> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    for (prefix, level) in PREFIXES {
        if let Some(text) = line.strip_prefix(prefix).and_then(after_word) {
            return LogLine { level, text };
        }
    }
    LogLine {
        level: LogLevel::Info,
        text: line,
    }
}

/// The text after a prefix, if the prefix is a whole word.
fn after_word(rest: &str) -> Option<&str> {
    let after_colon = rest.strip_prefix(':').unwrap_or(rest);
    let is_word =
        after_colon.len() < rest.len() || rest.is_empty() || rest.starts_with([' ', '\t']);
    is_word.then(|| after_colon.trim_start())
}

/// Parses a line of the form `PROGRESS 3/10 text`; total and text are optional.
///
/// ```
/// use mcpd_scriptspec::log_line::progress_line;
///
/// let line = progress_line("PROGRESS 2.5/10 unpacking").unwrap();
/// assert_eq!((line.progress, line.total, line.text), (2.5, Some(10.0), Some("unpacking")));
/// assert_eq!(progress_line("PROGRESS is slow"), None);
/// ```
#[must_use]
pub fn progress_line(line: &str) -> Option<ProgressLine<'_>> {
    let rest = line.strip_prefix("PROGRESS ")?.trim();
    let (numbers, text) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
    let text = text.trim_start();
    let (progress, total) = match numbers.split_once('/') {
        Some((progress, total)) => (amount(progress)?, Some(amount(total)?)),
        None => (amount(numbers)?, None),
    };
    Some(ProgressLine {
        progress,
        total,
        text: (!text.is_empty()).then_some(text),
    })
}

/// Parses a decimal number without sign and exponent.
fn amount(text: &str) -> Option<f64> {
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse()
        .ok()
        .filter(|amount: &f64| is_plain && amount.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, level: LogLevel, text: &str) {
        assert_eq!(log_line(line), LogLine { level, text });
    }

    #[test]
    fn level_prefix_sets_the_level() {
        check(
            "ERROR Failed to connect",
            LogLevel::Error,
            "Failed to connect",
        );
        check("WARNING Low memory", LogLevel::Warning, "Low memory");
        check("WARN Low memory", LogLevel::Warning, "Low memory");
        check("INFO Starting process", LogLevel::Info, "Starting process");
        check("DEBUG Variable x=5", LogLevel::Debug, "Variable x=5");
        check(
            "TRACE Entering function",
            LogLevel::Trace,
            "Entering function",
        );
    }

    #[test]
    fn level_prefix_is_a_whole_word_at_the_start() {
        check("ERROR", LogLevel::Error, "");
        check("ERROR:", LogLevel::Error, "");
        check("ERROR: disk full", LogLevel::Error, "disk full");
        check("ERROR:disk full", LogLevel::Error, "disk full");
        check("ERROR\tdisk full\r", LogLevel::Error, "disk full");
        check("ERRORS", LogLevel::Info, "ERRORS");
        check(
            "WARNINGS were ignored",
            LogLevel::Info,
            "WARNINGS were ignored",
        );
        check("INFO_LEVEL=3", LogLevel::Info, "INFO_LEVEL=3");
        check(" ERROR indented", LogLevel::Info, " ERROR indented");
        check("error in lower case", LogLevel::Info, "error in lower case");
        check("[ERROR] in brackets", LogLevel::Info, "[ERROR] in brackets");
        check("", LogLevel::Info, "");
    }

    #[test]
    fn progress_needs_a_number() {
        let line = |progress, total, text| {
            Some(ProgressLine {
                progress,
                total,
                text,
            })
        };
        assert_eq!(
            progress_line("PROGRESS 3/10 copying files"),
            line(3.0, Some(10.0), Some("copying files"))
        );
        assert_eq!(progress_line("PROGRESS 3"), line(3.0, None, None));
        assert_eq!(
            progress_line("PROGRESS 0.5 half\r"),
            line(0.5, None, Some("half"))
        );
        for line in [
            "PROGRESS",
            "PROGRESS ",
            "PROGRESS -1",
            "PROGRESS 1e9",
            "PROGRESS 3/",
            "PROGRESS inf",
            "PROGRESS 3/NaN",
            "PROGRESS 50%",
            "PROGRESSED 3",
            "progress 3",
        ] {
            assert_eq!(progress_line(line), None, "{line:?}");
        }
    }
}
