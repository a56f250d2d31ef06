//! Findings: faults of scripts, files, names and sources as data for every output format.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use mcpd_scriptspec::{Code, Diagnostic, Severity, Stream};
use mcpd_server::Catalog;
use mcpd_server::catalog::Conflict;
use mcpd_server::catalog::pins::HeldBack;
use mcpd_server::catalog::scan::{PassOverKind, PassedOver, ScannedScript, UnusableFile};

use crate::fix::{self, Fix};
use crate::{rules, suspicious};

mod cause;

/// A fault, with its place if it has one.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finding<'a> {
    /// The script's path below its root, unless no script can have it.
    pub path: Option<&'a str>,
    /// The file at fault, unless it is in none.
    pub file: Option<&'a Path>,
    /// The violated rule.
    pub code: &'a str,
    /// Severity of the violation.
    pub severity: Severity,
    /// Description of the fault, as a clause.
    pub message: Cow<'a, str>,
    /// Place in the script's output or file, unless the fault is elsewhere.
    pub place: Option<Place<'a>>,
    /// Suggested fix.
    pub help: Option<&'a str>,
    /// Last line of stderr of a script that failed.
    pub last_words: Option<String>,
    /// Fix that needs no decision of the author, if there is one.
    pub fix: Option<Fix>,
}

/// A place in a script's description.
#[derive(Debug)]
#[non_exhaustive]
pub struct Place<'a> {
    /// Origin of the text.
    pub stream: Stream,
    /// The whole output or file.
    pub text: &'a [u8],
    /// Byte range in the text.
    pub span: Range<usize>,
}

/// Line and column of a byte, as editors expect them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// Counted from 1.
    pub(crate) line: usize,
    /// In characters, counted from 1.
    pub(crate) column: usize,
}

impl<'a> Place<'a> {
    /// Returns the place of a span, unless that is empty.
    pub(crate) fn new(stream: Stream, text: &'a [u8], span: &Range<usize>) -> Option<Self> {
        (!span.is_empty()).then(|| Self {
            stream,
            text,
            span: span.start.min(text.len())..span.end.min(text.len()),
        })
    }

    /// Position of the first character.
    pub(crate) fn start(&self) -> Position {
        Position::of(self.text, self.span.start)
    }

    /// Position behind the last character.
    pub(crate) fn end(&self) -> Position {
        Position::of(self.text, self.span.end)
    }

    /// Returns whether the lines are those of a file; output of a script is in none.
    pub(crate) fn is_in_file(&self) -> bool {
        self.stream == Stream::Source
    }

    /// Name of the text: `file`, or an output stream of it.
    pub(crate) fn origin(&self, file: &str) -> String {
        if self.is_in_file() {
            file.to_owned()
        } else {
            format!("{file} --help ({})", self.stream)
        }
    }

    /// Describes the place, for a message about the whole file.
    pub(crate) fn remark(&self) -> String {
        let Position { line, column } = self.start();
        format!(" ({} of `--help`, {line}:{column})", self.stream)
    }
}

impl Position {
    pub(crate) fn of(text: &[u8], byte: usize) -> Self {
        let before = String::from_utf8_lossy(&text[..byte]);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }
}

/// Hint for a directory without scripts. Most often the permission was forgotten, and such a file
/// is indistinguishable from one that is no script.
pub const EXECUTABLE_HINT: &str = "scripts must be executable (`chmod +x`)";

/// Describes how many scripts and sources are not served, or not as declared; none if all are.
#[must_use]
pub fn shortfall(catalog: &Catalog) -> Option<String> {
    let sources = catalog.offers().iter();
    let faulty_sources = sources.filter(|source| source.is_faulty()).count();
    let counts = [
        (catalog.scan().faulty().count(), "faulty script"),
        (catalog.scan().unusable.len(), "unusable file"),
        (catalog.conflicts().len(), "name conflict"),
        (faulty_sources, "faulty source"),
    ];
    let counted: Vec<_> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}{}", if *count == 1 { "" } else { "s" }))
        .collect();
    (!counted.is_empty()).then(|| counted.join(", "))
}

impl<'a> Finding<'a> {
    /// All faults of a scan, in the order of their discovery.
    #[must_use]
    pub fn all(catalog: &'a Catalog) -> Vec<Self> {
        let scan = catalog.scan();
        let scripts = scan.scripts.iter().flat_map(|script| {
            script
                .diagnostics
                .iter()
                .map(|diagnostic| Self::in_script(script, diagnostic))
        });
        let error = |file| Self::of_file(file, rules::UNUSABLE_FILE, Severity::Error);
        let warning = |file| Self::of_file(file, rules::OVERLOOKED_FILE, Severity::Warning);
        let unusable = scan.unusable.iter().map(error);
        let overlooked = scan.overlooked.iter().map(warning);
        let conflicts = catalog
            .conflicts()
            .iter()
            .map(|conflict| Self::between_tools(catalog, conflict));
        let sources = catalog.offers().iter().flat_map(|offer| {
            let faults = offer.faults().iter();
            faults.map(|fault| Self::of_source(offer.source(), fault))
        });
        // Remarks on a script's description point at it.
        let offered = catalog.tools().iter();
        let offered = offered.filter_map(|tool| Some((tool.source()?, tool)));
        let remarks = offered.flat_map(|(source, tool)| {
            let remarks = tool.remarks().iter();
            remarks.map(move |remark| Self::of_offered(source, tool.path().as_str(), remark))
        });
        let passed = scan.passed_over.iter().filter(|file| file.is_remarkable());
        let files = unusable
            .chain(overlooked)
            .chain(passed.map(Self::passed_over));
        let held_back = scan.held_back().map(Self::held_back);
        let found = scripts.chain(held_back).chain(files).chain(conflicts);
        let suspicious = suspicious::findings(catalog);
        let found = found.chain(sources).chain(remarks);
        found.chain(suspicious).collect()
    }

    fn held_back(held_back: &'a HeldBack) -> Self {
        Self {
            path: Some(&held_back.path),
            file: Some(&held_back.file),
            code: rules::HELD_BACK,
            severity: Severity::Error,
            message: Cow::Owned(held_back.to_string()),
            place: None,
            help: Some("`mcpd approve` shows the difference, and approves it"),
            last_words: None,
            fix: None,
        }
    }

    /// A fault in the description of one file, which has this text.
    #[must_use]
    pub fn in_file(file: &'a Path, text: &'a [u8], diagnostic: &'a Diagnostic) -> Self {
        let span = &diagnostic.location.span;
        Self {
            path: None,
            file: Some(file),
            code: diagnostic.code.as_str(),
            severity: diagnostic.severity,
            message: Cow::Borrowed(&diagnostic.message),
            place: Place::new(diagnostic.location.stream, text, span),
            help: diagnostic.help.as_deref(),
            last_words: None,
            fix: (!diagnostic.edits.is_empty()).then(|| Fix::Edits(diagnostic.edits.clone())),
        }
    }

    fn in_script(script: &'a ScannedScript, diagnostic: &'a Diagnostic) -> Self {
        let text = match diagnostic.location.stream {
            Stream::Stdout => &script.help.stdout,
            Stream::Stderr => &script.help.stderr,
            Stream::Source => &script.help.source,
        };
        let has_failed = matches!(
            diagnostic.code,
            Code::HelpFailed | Code::HelpKilled | Code::HelpTimedOut
        );
        let finding = Self::in_file(&script.described_in, text, diagnostic);
        let is_unstartable = diagnostic.code == Code::HelpNotStarted;
        Self {
            path: Some(script.path.as_str()),
            fix: match finding.fix {
                None if is_unstartable => fix::line_ends(&script.file),
                fix => fix,
            },
            last_words: has_failed
                .then(|| last_words(&script.help.stderr))
                .flatten(),
            ..finding
        }
    }

    fn of_file(file: &'a UnusableFile, code: &'a str, severity: Severity) -> Self {
        Self {
            path: None,
            file: Some(&file.file),
            code,
            severity,
            message: Cow::Borrowed(&file.reason),
            place: None,
            help: None,
            last_words: None,
            fix: fix::permission(file),
        }
    }

    fn passed_over(file: &'a PassedOver) -> Self {
        let code = match file.kind {
            PassOverKind::NotATool => rules::NO_TOOL,
            _ => rules::PASSED_OVER_FILE,
        };
        Self {
            path: None,
            file: Some(&file.file),
            code,
            severity: Severity::Info,
            message: Cow::Borrowed(&file.reason),
            place: None,
            help: None,
            last_words: None,
            fix: None,
        }
    }

    fn of_source(source: &str, fault: &str) -> Self {
        Self {
            path: None,
            file: None,
            code: rules::FAULTY_SOURCE,
            severity: Severity::Error,
            message: format!("{source} {fault}").into(),
            place: None,
            help: None,
            last_words: None,
            fix: None,
        }
    }

    fn of_offered(source: &str, path: &'a str, (code, remark): &'a (Code, String)) -> Self {
        Self {
            path: Some(path),
            file: None,
            code: code.as_str(),
            severity: code.rule().severity,
            message: format!("{source}: tool `{path}`: {remark}").into(),
            place: None,
            help: None,
            last_words: None,
            fix: None,
        }
    }

    fn between_tools(catalog: &'a Catalog, conflict: &'a Conflict) -> Self {
        // Of several scripts with one path, the last valid one gave way.
        let mut scripts = catalog.scan().scripts.iter().rev();
        let script = scripts.find(|script| script.path == conflict.path && script.spec.is_some());
        Self {
            path: Some(conflict.path.as_str()),
            file: script.map(|script| script.file.as_path()),
            code: rules::NAME_CONFLICT,
            severity: Severity::Warning,
            message: Cow::Borrowed(&conflict.message),
            place: None,
            help: Some(conflict.help),
            last_words: None,
            fix: None,
        }
    }
}

/// Returns the line of stderr that explains the failure of a script.
fn last_words(stderr: &[u8]) -> Option<String> {
    let shown = mcpd_exec::terminal_text(stderr);
    cause::cause(&String::from_utf8_lossy(&shown)).map(str::to_owned)
}

/// Faults of the sources that keep tools from being available, each on an indented line of its own
/// behind a line end.
#[must_use]
pub fn faulty_sources(catalog: &Catalog) -> String {
    let sources = catalog.offers().iter();
    let faults = sources.flat_map(|offer| {
        let faults = offer.faults().iter();
        faults.map(|fault| format!("\n  {} {fault}", offer.source()))
    });
    faults.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, byte: usize, line: usize, column: usize) {
        let expected = Position { line, column };
        assert_eq!(Position::of(text.as_bytes(), byte), expected);
    }

    #[test]
    fn position_counts_from_one() {
        check("{}", 0, 1, 1);
        check("{\n\"größe\": x}", 12, 2, 9);
        check("{\n", 2, 2, 1);
    }
}
