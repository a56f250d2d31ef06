//! Faults as data that every form of output is made of. What a fault is, others decide.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

use mcpd_scriptspec::{Code, Diagnostic, Severity, Stream};
use mcpd_server::Catalog;
use mcpd_server::catalog::Conflict;
use mcpd_server::catalog::scan::{Because, PassedOver, ScannedScript, UnusableFile};

use crate::rules;

mod cause;
mod forwarded;
mod github;
mod human;
mod json;
mod sarif;
mod short;

pub(crate) use forwarded::forwarded;
pub(crate) use github::github;
pub(crate) use human::human;
pub(crate) use sarif::sarif;
pub(crate) use short::short;

/// One fault, wherever it was found.
#[derive(Debug)]
pub(crate) struct Finding<'a> {
    /// The script's path below its root, unless no script can have it.
    pub(crate) path: Option<&'a str>,
    /// The file at fault, unless it is in none.
    pub(crate) file: Option<&'a Path>,
    /// The rule that was broken.
    pub(crate) code: &'a str,
    pub(crate) severity: Severity,
    pub(crate) message: Cow<'a, str>,
    /// Where the script said it, unless the fault is in nothing it said.
    pub(crate) place: Option<Place<'a>>,
    /// How to mend it.
    pub(crate) help: Option<&'a str>,
    /// The last words of a script that failed.
    pub(crate) last_words: Option<String>,
}

/// A place in something a script says of itself.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) stream: Stream,
    /// All of that output or file.
    pub(crate) text: &'a [u8],
    /// Bytes of it.
    pub(crate) span: Range<usize>,
}

/// Where a byte is, as editors want it.
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

    /// Behind the last character.
    fn end(&self) -> Position {
        Position::of(self.text, self.span.end)
    }

    /// Whether its lines are those of a file: what a script prints is in none.
    fn is_in_file(&self) -> bool {
        self.stream == Stream::Source
    }

    /// What it is in: `file`, or what that prints.
    fn origin(&self, file: &str) -> String {
        if self.is_in_file() {
            file.to_owned()
        } else {
            format!("{file} --help ({})", self.stream)
        }
    }

    /// Where it is, for a message about the whole file.
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

/// What is said where there is none. Most often somebody forgot it, and a file that is no script can't be told from it.
pub(crate) const WHAT_A_SCRIPT_IS: &str = "a script must be executable (`chmod +x`)";

/// How much of what was found is not served, or not as it asked for; nothing if all is well.
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
    /// Everything that is wrong with what was scanned, in the order in which it was found.
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
        // Remarks on a script's own words stand where the script says them.
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
        let code = match file.because {
            Because::NoTool => rules::NO_TOOL,
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
            message: format!("{source} has the tool `{path}`: {remark}").into(),
            place: None,
            help: None,
            last_words: None,
        }
    }

    fn between_tools(catalog: &'a Catalog, conflict: &'a Conflict) -> Self {
        // Of several scripts with one path the last gave way that is not faulty.
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

/// The directory that paths are shown relative to.
pub(crate) fn here() -> PathBuf {
    std::env::current_dir()
        .and_then(|here| here.canonicalize())
        .unwrap_or_default()
}

/// The path as people and CI know it: relative to where they are.
pub(crate) fn shown(file: &Path, here: &Path) -> String {
    printable(&file.strip_prefix(here).unwrap_or(file).to_string_lossy())
}

/// The text without anything that a terminal would obey.
fn printable(text: &str) -> String {
    let is_obeyed = |char: char| {
        char.is_control() || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.replace(is_obeyed, "\u{fffd}")
}

/// Returns the line of stderr that says why a script failed.
fn last_words(stderr: &[u8]) -> Option<String> {
    let shown = mcpd_exec::shown(stderr);
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
    fn lines_and_characters_count_from_one() {
        check("{}", 0, 1, 1);
        check("{\n\"größe\": x}", 12, 2, 9);
        check("{\n", 2, 2, 1);
    }
}
