//! Faults as data for every output format. The libraries decide what is a fault.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

use mcpd_scriptspec::{Code, Diagnostic, Severity, Stream};
use mcpd_server::Catalog;
use mcpd_server::catalog::Conflict;
use mcpd_server::catalog::scan::{PassOverKind, PassedOver, ScannedScript, UnusableFile};

use crate::rules;

mod cause;
mod forwarded;
mod github;
mod human;
mod json;
mod sarif;
mod short;

pub(crate) use forwarded::render_forwarded;
pub(crate) use github::github;
pub(crate) use human::human;
pub(crate) use sarif::sarif;
pub(crate) use short::short;

/// A fault, with its place if it has one.
#[derive(Debug)]
pub(crate) struct Finding<'a> {
    /// The script's path below its root, unless no script can have it.
    pub(crate) path: Option<&'a str>,
    /// The file at fault, unless it is in none.
    pub(crate) file: Option<&'a Path>,
    /// The violated rule.
    pub(crate) code: &'a str,
    pub(crate) severity: Severity,
    pub(crate) message: Cow<'a, str>,
    /// Place in the script's output or file, unless the fault is elsewhere.
    pub(crate) place: Option<Place<'a>>,
    /// Suggested fix.
    pub(crate) help: Option<&'a str>,
    /// Last line of stderr of a script that failed.
    pub(crate) last_words: Option<String>,
}

/// A place in a script's description.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) stream: Stream,
    /// The whole output or file.
    pub(crate) text: &'a [u8],
    /// Byte range in the text.
    pub(crate) span: Range<usize>,
}

/// Line and column of a byte, as editors expect them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    /// Counted from 1.
    line: usize,
    /// In characters, counted from 1.
    column: usize,
}

impl Place<'_> {
    fn start(&self) -> Position {
        Position::of(self.text, self.span.start)
    }

    /// Position behind the last character.
    fn end(&self) -> Position {
        Position::of(self.text, self.span.end)
    }

    /// Returns whether the lines are those of a file; output of a script is in none.
    fn is_in_file(&self) -> bool {
        self.stream == Stream::Source
    }

    /// Name of the text: `file`, or an output stream of it.
    fn origin(&self, file: &str) -> String {
        if self.is_in_file() {
            file.to_owned()
        } else {
            format!("{file} --help ({})", self.stream)
        }
    }

    /// Describes the place, for a message about the whole file.
    fn remark(&self) -> String {
        let Position { line, column } = self.start();
        format!(" ({} of `--help`, {line}:{column})", self.stream)
    }
}

impl Position {
    fn of(text: &[u8], byte: usize) -> Self {
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
pub(crate) const EXECUTABLE_HINT: &str = "scripts must be executable (`chmod +x`)";

/// Describes how many scripts and sources are not served, or not as declared; none if all are.
pub(crate) fn shortfall(catalog: &Catalog) -> Option<String> {
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
    pub(crate) fn all(catalog: &'a Catalog) -> Vec<Self> {
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
        let found = scripts.chain(files).chain(conflicts);
        found.chain(sources).chain(remarks).collect()
    }

    fn in_script(script: &'a ScannedScript, diagnostic: &'a Diagnostic) -> Self {
        let text = match diagnostic.location.stream {
            Stream::Stdout => &script.help.stdout,
            Stream::Stderr => &script.help.stderr,
            Stream::Source => &script.help.source,
        };
        let span = &diagnostic.location.span;
        let place = (!span.is_empty()).then(|| Place {
            stream: diagnostic.location.stream,
            text,
            span: span.start.min(text.len())..span.end.min(text.len()),
        });
        let has_failed = matches!(
            diagnostic.code,
            Code::HelpFailed | Code::HelpKilled | Code::HelpTimedOut
        );
        Self {
            path: Some(script.path.as_str()),
            file: Some(&script.described_in),
            code: diagnostic.code.as_str(),
            severity: diagnostic.severity,
            message: Cow::Borrowed(&diagnostic.message),
            place,
            help: diagnostic.help.as_deref(),
            last_words: has_failed
                .then(|| last_words(&script.help.stderr))
                .flatten(),
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
        }
    }
}

/// Directory that displayed paths are relative to.
pub(crate) fn base_directory() -> PathBuf {
    std::env::current_dir()
        .and_then(|here| here.canonicalize())
        .unwrap_or_default()
}

/// Displayed path of a file, relative to the working directory.
pub(crate) fn display_path(file: &Path, here: &Path) -> String {
    printable(&file.strip_prefix(here).unwrap_or(file).to_string_lossy())
}

/// Replaces characters that a terminal would act on.
fn printable(text: &str) -> String {
    let is_obeyed = |char: char| {
        char.is_control() || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.replace(is_obeyed, "\u{fffd}")
}

/// Returns the line of stderr that explains the failure of a script.
fn last_words(stderr: &[u8]) -> Option<String> {
    let shown = mcpd_exec::terminal_text(stderr);
    cause::cause(&String::from_utf8_lossy(&shown)).map(str::to_owned)
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
