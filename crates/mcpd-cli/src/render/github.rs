//! Faults as commands that a GitHub workflow turns into annotations of files.

use std::fmt::Write as _;

use mcpd_scriptspec::Severity;

use super::{Finding, Position, here, printable, shown};

/// All faults, one command a line.
pub(crate) fn github(findings: &[Finding<'_>]) -> String {
    let here = here();
    let mut text = String::new();
    for finding in findings {
        let file = finding.file.map(|file| shown(file, &here));
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
    let mut message = printable(finding.message);
    if let Some(file) = file {
        properties.push(format!("file={}", property(file)));
    }
    if let Some(place) = &finding.place {
        let (start, end) = (place.start(), place.end());
        match place.output {
            None => {
                properties.push(format!("line={},col={}", start.line, start.column));
                properties.push(format!("endLine={}", end.line));
                // GitHub shows a range of columns within one line only.
                if start.line == end.line {
                    properties.push(format!("endColumn={}", end.column));
                }
            }
            // A line of what a script prints is no line of a file.
            Some(stream) => {
                let Position { line, column } = start;
                message += &format!(" ({stream} of `--help`, {line}:{column})");
            }
        }
    }
    properties.push(format!("title={}", property(finding.code)));
    if let Some(help) = finding.help {
        message += &format!("\nhelp: {help}");
    }
    format!("::{level} {}::{}", properties.join(","), data(&message))
}

/// The text after the last `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// The value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::render::Place;

    #[track_caller]
    fn check(message: &str, place: Option<Place<'_>>, expected: &str) {
        let finding = Finding {
            path: Some("a,b"),
            file: Some(Path::new("a,b")),
            code: "unknown-field",
            severity: Severity::Warning,
            message,
            place,
            help: Some("did you mean `size`?"),
            last_words: None,
        };
        assert_eq!(command(&finding, Some("tools/a,b:c")), expected);
    }

    #[test]
    fn nothing_in_a_message_ends_its_command() {
        check(
            "100%\n::error::no",
            None,
            "::warning file=tools/a%2Cb%3Ac,title=unknown-field::100%25\u{fffd}::error::no%0Ahelp: did you mean `size`?",
        );
    }

    #[test]
    fn a_place_in_the_file_is_annotated() {
        let place = |span| Place {
            output: None,
            text: b"one\ntwo\nthree",
            span,
        };
        check(
            "x",
            Some(place(4..7)),
            "::warning file=tools/a%2Cb%3Ac,line=2,col=1,endLine=2,endColumn=4,title=unknown-field::x%0Ahelp: did you mean `size`?",
        );
        check(
            "x",
            Some(place(4..9)),
            "::warning file=tools/a%2Cb%3Ac,line=2,col=1,endLine=3,title=unknown-field::x%0Ahelp: did you mean `size`?",
        );
    }
}
