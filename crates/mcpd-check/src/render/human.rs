//! Faults for people, in the format of the Rust compiler. Output of scripts is escaped so that it
//! can't move the cursor or hide anything.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use mcpd_scriptspec::{Severity, is_hidden};

use super::{base_directory, display_path, printable};
use crate::finding::{Finding, Place};

/// Maximum number of characters shown of a script's last line of stderr.
const MAX_CAUSE_CHARS: usize = 200;

/// Renders all faults in that many columns, coloured by escape sequences, and their number in
/// `scripts` scripts.
#[must_use]
pub fn human(findings: &[Finding<'_>], scripts: usize, columns: usize) -> String {
    let here = base_directory();
    let renderer = Renderer::styled().term_width(columns);
    let mut text = String::new();
    for finding in findings {
        let rendered = renderer.render(&[group(finding, &here)]);
        // The renderer replaces escape characters of the text, and its own give it colours.
        let is_obeyed = |char: char| char != '\u{1b}' && is_hidden(char);
        let rendered = rendered.replace(is_obeyed, "\u{fffd}");
        writeln!(text, "{rendered}\n").expect("a string takes everything");
    }
    text + &summary(findings, scripts)
}

fn group<'a>(finding: &Finding<'a>, here: &Path) -> Group<'a> {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let file = finding.file.map(|file| display_path(file, here));
    let mut group = Group::with_title(
        level
            .primary_title(finding.message.clone())
            .id(finding.code),
    );
    group = match (&finding.place, file) {
        (Some(place), file) => group.element(snippet(place, &file.unwrap_or_default())),
        (None, Some(file)) => group.element(Origin::path(file)),
        (None, None) => group,
    };
    if let Some(line) = &finding.last_words {
        let line: String = printable(line).chars().take(MAX_CAUSE_CHARS).collect();
        group = group.element(Level::NOTE.message(format!("from its stderr: {line}")));
    }
    match finding.help {
        Some(help) => group.element(Level::HELP.message(help)),
        None => group,
    }
}

fn snippet<'a>(place: &Place<'_>, file: &str) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let (text, span) = text_and_span(place);
    Snippet::source(text)
        .path(place.origin(file))
        .annotation(AnnotationKind::Primary.span(span))
}

/// Text and span of the output; invalid bytes become replacement characters,
/// and the span is adjusted.
fn text_and_span(place: &Place<'_>) -> (String, Range<usize>) {
    let Range { start, end } = place.span;
    let mut text = String::from_utf8_lossy(&place.text[..start]).into_owned();
    let start = text.len();
    text.push_str(&String::from_utf8_lossy(&place.text[place.span.start..end]));
    let span = start..text.len();
    text.push_str(&String::from_utf8_lossy(&place.text[end..]));
    (text, span)
}

fn summary(findings: &[Finding<'_>], scripts: usize) -> String {
    let count = |severity| {
        findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    let faults: Vec<String> = [
        (Severity::Error, "error"),
        (Severity::Warning, "warning"),
        (Severity::Info, "remark"),
    ]
    .into_iter()
    .map(|(severity, word)| with_count(count(severity), word))
    .filter(|text| !text.starts_with("0 "))
    .collect();
    let faults = if faults.is_empty() {
        "no faults".to_owned()
    } else {
        faults.join(", ")
    };
    format!("{faults} in {}\n", with_count(scripts, "script"))
}

fn with_count(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    }
}

#[cfg(test)]
mod tests {
    use mcpd_scriptspec::Stream;

    use super::*;

    #[test]
    fn span_survives_invalid_utf8() {
        let place = Place {
            stream: Stream::Stdout,
            text: b"\xff\xfe ok \xff",
            span: 3..5,
        };
        let (text, span) = text_and_span(&place);
        assert_eq!(&text[span], "ok");
    }

    #[test]
    fn place_in_the_file_is_shown_with_its_path() {
        let finding = Finding {
            path: Some("greet.bas"),
            file: Some(Path::new("/tools/greet.bas")),
            code: "unknown-value-type",
            severity: Severity::Error,
            message: "unknown value type `text`".into(),
            place: Some(Place {
                stream: Stream::Source,
                text: b"REM greets\nPARAM name AS text",
                span: 25..29,
            }),
            help: None,
            last_words: None,
            fix: None,
        };
        let text = Renderer::plain().render(&[group(&finding, Path::new("/tools"))]);
        assert_eq!(
            text.lines().nth(1).map(str::trim),
            Some("--> greet.bas:2:15"),
            "{text}"
        );
    }

    #[test]
    fn summary_counts_faults_and_scripts() {
        assert_eq!(summary(&[], 1), "no faults in 1 script\n");
    }
}
