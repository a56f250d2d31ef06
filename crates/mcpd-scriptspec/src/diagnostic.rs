//! Diagnostics: faults of a script's description as data, with place, message and suggested fix.
//! Rendering is left to others.

use std::{fmt, ops::Range, time::Duration};

use crate::edit::{Edit, Repair};
use crate::rules::{Code, RULES};

/// One fault of a script's description.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The violated rule.
    pub code: Code,
    /// Effect of the fault on the script: a property of the rule.
    pub severity: Severity,
    /// The fault: a fragment in lower case without a full stop.
    pub message: String,
    /// The offending token.
    pub location: Location,
    /// Suggested fix, if there is one.
    pub help: Option<String>,
    /// Edits of the file that fix the fault as its author would; none if only the author can
    /// decide, and none for the output of `--help`.
    pub edits: Vec<Edit>,
    /// Fix whose edits are only known with the text of the file. Boxed, because most have none.
    pub(crate) repair: Option<Box<Repair>>,
}

/// A place in a script's description.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Location {
    /// The text with the fault.
    pub stream: Stream,
    /// Byte range in that text; empty if the fault has no place in it.
    pub span: Range<usize>,
}

/// A text with a script's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a process has two outputs, and who describes itself otherwise does so in a file"
)]
pub enum Stream {
    /// Standard output of `--help`, which holds the metadata.
    Stdout,
    /// Standard error of `--help`, which holds the options.
    Stderr,
    /// The text of a file: the script, or its sidecar.
    Source,
}

/// Effect of a fault on the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "renderers and exit codes decide by all three"
)]
pub enum Severity {
    /// The script is served, and could be improved.
    Info,
    /// The script is served, perhaps not as its author intended.
    Warning,
    /// The script is not served.
    Error,
}

impl Diagnostic {
    pub(crate) fn new(code: Code, stream: Stream, span: Range<usize>, message: String) -> Self {
        Self {
            code,
            severity: code.rule().severity,
            message,
            location: Location { stream, span },
            help: None,
            edits: Vec::new(),
            repair: None,
        }
    }

    /// `--help` exited with a code other than 0.
    #[must_use]
    pub fn help_failed(exit_code: i32) -> Self {
        Self::probe(
            Code::HelpFailed,
            format!("`--help` ended with exit code {exit_code}"),
        )
        .with_help("if the first argument is `--help`, print the metadata and exit with 0, or describe the script in `NAME.mcpd.toml` beside it")
    }

    /// `--help` was killed by a signal.
    #[must_use]
    pub fn help_killed(signal: i32) -> Self {
        Self::probe(
            Code::HelpKilled,
            format!("`--help` was killed by signal {signal}"),
        )
        .with_help("run the script with `--help` by hand to see it crash")
    }

    /// `--help` did not end within `limit`.
    #[must_use]
    pub fn help_timed_out(limit: Duration) -> Self {
        let message = format!("`--help` did not end within {} s", limit.as_secs_f64());
        Self::probe(Code::HelpTimedOut, message)
            .with_help("answer `--help` before any other work and without reading stdin, or describe the script in `NAME.mcpd.toml` beside it")
    }

    /// An output of `--help` was longer than `limit` bytes.
    #[must_use]
    pub fn help_too_large(stream: Stream, limit: usize) -> Self {
        let message = format!("{stream} of `--help` is longer than {limit} bytes");
        Self::new(Code::HelpTooLarge, stream, 0..0, message).with_help("print only the JSON object")
    }

    /// The script could not be started; `reason` is a fragment with the cause and the fix.
    #[must_use]
    pub fn help_not_started(reason: &str) -> Self {
        Self::probe(Code::HelpNotStarted, reason.to_owned())
    }

    /// The file describes itself, and is longer than `limit` bytes.
    #[must_use]
    pub fn file_too_large(limit: u64) -> Self {
        let message = format!("a file with its own description may have at most {limit} bytes");
        Self::new(Code::FileTooLarge, Stream::Source, 0..0, message)
            .with_help("move the large parts into another file")
    }

    /// The program in the file has a syntax error at `span`; `message` is a fragment.
    #[must_use]
    pub fn source_syntax(span: Range<usize>, message: String, help: Option<String>) -> Self {
        Self {
            help,
            ..Self::new(Code::SourceSyntax, Stream::Source, span, message)
        }
    }

    /// A default is not listed, because the `format` beside it forbids it;
    /// `message` names its place.
    #[must_use]
    pub fn forbidden_default(message: String) -> Self {
        Self::new(Code::ForbiddenDefault, Stream::Source, 0..0, message)
            .with_help("remove the `format`, or set a default that matches it")
    }

    /// The interpreter of the file is missing; `reason` is the cause, and `help` the fix.
    #[must_use]
    pub fn missing_interpreter(reason: &str, help: &str) -> Self {
        Self::new(
            Code::MissingInterpreter,
            Stream::Source,
            0..0,
            reason.to_owned(),
        )
        .with_help(help)
    }

    /// Restores a fault of the probe as a whole from its parts; none if
    /// there is no rule named `code`.
    #[must_use]
    pub fn restore_probe_fault(code: &str, message: String, help: Option<String>) -> Option<Self> {
        let rule = RULES.iter().find(|rule| rule.code.as_str() == code)?;
        let fault = Self::probe(rule.code, message);
        Some(Self { help, ..fault })
    }

    /// A fault of the probe as a whole, in neither output.
    fn probe(code: Code, message: String) -> Self {
        Self::new(code, Stream::Stdout, 0..0, message)
    }

    fn with_help(mut self, help: &str) -> Self {
        self.help = Some(help.to_owned());
        self
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Source => "source",
        })
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}
