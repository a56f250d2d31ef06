//! Faults as data that both forms of output are made of. What a fault is, others decide.

use std::ops::Range;
use std::path::Path;

use mcpd_scriptspec::{Code, Diagnostic, Severity, Stream};
use mcpd_server::Catalog;
use mcpd_server::catalog::Conflict;
use mcpd_server::catalog::scan::{ScannedScript, UnusableFile};

mod human;
mod json;

pub(crate) use human::human;

/// One fault, wherever it was found.
#[derive(Debug)]
pub(crate) struct Finding<'a> {
    /// The script's path below its root, unless no script can have it.
    pub(crate) path: Option<&'a str>,
    /// The executable file, unless the fault lies between two of them.
    pub(crate) file: Option<&'a Path>,
    /// The rule that was broken.
    pub(crate) code: &'a str,
    pub(crate) severity: Severity,
    pub(crate) message: &'a str,
    /// Where the script said it, unless the fault is in nothing it said.
    pub(crate) place: Option<Place<'a>>,
    /// How to mend it.
    pub(crate) help: Option<&'a str>,
    /// The last words of a script that failed.
    pub(crate) last_words: Option<&'a [u8]>,
}

/// A place in one of the outputs of `--help`.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) stream: Stream,
    /// The whole output.
    pub(crate) text: &'a [u8],
    /// Bytes of it.
    pub(crate) span: Range<usize>,
}

/// How much of what was found is not served, or not as it asked for; nothing if all is well.
pub(crate) fn shortfall(catalog: &Catalog) -> Option<String> {
    let counts = [
        (catalog.scan().faulty().count(), "faulty script"),
        (catalog.scan().unusable.len(), "unusable file"),
        (catalog.conflicts().len(), "name conflict"),
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
        let unusable = scan.unusable.iter().map(Self::of_file);
        let conflicts = catalog.conflicts().iter().map(Self::between_tools);
        scripts.chain(unusable).chain(conflicts).collect()
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
            file: Some(&script.file),
            code: diagnostic.code.as_str(),
            severity: diagnostic.severity,
            message: &diagnostic.message,
            place,
            help: diagnostic.help.as_deref(),
            last_words: has_failed.then(|| last_line(&script.help.stderr)).flatten(),
        }
    }

    fn of_file(file: &'a UnusableFile) -> Self {
        Self {
            path: None,
            file: Some(&file.file),
            code: "unusable-file",
            severity: Severity::Error,
            message: &file.reason,
            place: None,
            help: None,
            last_words: None,
        }
    }

    fn between_tools(conflict: &'a Conflict) -> Self {
        Self {
            path: Some(conflict.path.as_str()),
            file: None,
            code: "name-conflict",
            severity: Severity::Warning,
            message: &conflict.message,
            place: None,
            help: Some("rename one of the two"),
            last_words: None,
        }
    }
}

fn last_line(text: &[u8]) -> Option<&[u8]> {
    text.trim_ascii_end()
        .rsplit(|byte| *byte == b'\n')
        .next()
        .filter(|line| !line.is_empty())
}
