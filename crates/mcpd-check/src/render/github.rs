//! Faults as workflow commands of GitHub, which turns them into annotations of files.

use std::fmt::Write as _;

use mcpd_scriptspec::Severity;

use super::{base_directory, display_path, printable};
use crate::finding::{Finding, Position};

/// Renders all faults, one command a line.
#[must_use]
pub fn github(findings: &[Finding<'_>]) -> String {
    let here = base_directory();
    let mut text = String::new();
    for finding in findings {
        let file = finding.file.map(|file| display_path(file, &here));
        writeln!(text, "{}", command(finding, file.as_deref())).expect("a string takes everything");
    }
    text
}

fn command(finding: &Finding<'_>, file: Option<&str>) -> String {
    let level = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    let mut properties = Vec::new();
    let mut message = printable(&finding.message);
    if let Some(file) = file {
        properties.push(format!("file={}", property(file)));
    }
    if let Some(place) = &finding.place {
        if place.is_in_file() {
            properties.push(range(place.start(), place.end()));
        } else {
            message += &place.remark();
        }
    }
    properties.push(format!("title={}", property(finding.code)));
    if let Some(help) = finding.help {
        message += &format!("\nhelp: {}", printable(help));
    }
    format!("::{level} {}::{}", properties.join(","), data(&message))
}

/// Line range, with columns within one line: GitHub shows no others.
fn range(start: Position, end: Position) -> String {
    let lines = format!("line={},endLine={}", start.line, end.line);
    if start.line == end.line {
        format!("{lines},col={},endColumn={}", start.column, end.column)
    } else {
        lines
    }
}

/// Escapes the text after the last `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use mcpd_scriptspec::Stream;

    use super::*;
    use crate::finding::Place;

    #[track_caller]
    fn check(message: &str, place: Option<Place<'_>>, expected: &str) {
        let finding = Finding {
            path: Some("a,b"),
            file: Some(Path::new("a,b")),
            code: "unknown-field",
            severity: Severity::Warning,
            message: message.into(),
            place,
            help: Some("did you mean `size`?"),
            last_words: None,
            fix: None,
        };
        assert_eq!(command(&finding, Some("tools/a,b:c")), expected);
    }

    #[test]
    fn message_is_escaped_in_a_workflow_command() {
        check(
            "100%\n::error::no",
            None,
            "::warning file=tools/a%2Cb%3Ac,title=unknown-field::100%25\u{fffd}::error::no%0Ahelp: did you mean `size`?",
        );
    }

    #[test]
    fn place_in_the_file_is_annotated() {
        let place = |span| Place {
            stream: Stream::Source,
            text: b"one\ntwo\nthree",
            span,
        };
        check(
            "x",
            Some(place(4..7)),
            "::warning file=tools/a%2Cb%3Ac,line=2,endLine=2,col=1,endColumn=4,title=unknown-field::x%0Ahelp: did you mean `size`?",
        );
        check(
            "x",
            Some(place(4..9)),
            "::warning file=tools/a%2Cb%3Ac,line=2,endLine=3,title=unknown-field::x%0Ahelp: did you mean `size`?",
        );
    }
}
