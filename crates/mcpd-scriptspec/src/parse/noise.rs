//! Noise of interpreters on stderr, around the JSON of a script: locale warnings, deprecation
//! notices, progress of installers. It does not invalidate a tool as long as the script's own
//! output is unambiguous.

use crate::json::{self, Document, Kind, Span};

/// Prefixes of lines in which runtimes and package managers report their own work.
const RUNTIME_LINES: [&str; 16] = [
    "(Use `node",
    "Audited ",
    "Built ",
    "Building ",
    "Creating ",
    "Downloaded ",
    "Downloading ",
    "Installed ",
    "Picked up ",
    "Prepared ",
    "Reading inline script metadata",
    "Resolved ",
    "Uninstalled ",
    "Updated ",
    "Updating ",
    "Using ",
];

/// Finds the one JSON object on lines of its own among lines of noise, and the
/// first stretch of that noise.
///
/// Two lines that begin an object are ambiguous, and so is text after an object on its last line:
/// then the result is `None`.
pub(super) fn object_among_lines(text: &str, start: usize) -> Option<(Document<'_>, Span)> {
    let mut begins = line_starts(text, start).filter(|at| text[*at..].starts_with('{'));
    let first = begins.next()?;
    let document = json::read_first(text, first).ok()?;
    let Span { start: begin, end } = document.root.span();
    let rest_of_line = text[end..].lines().next().unwrap_or_default();
    let is_only_one = begins.all(|at| at < end);
    if !rest_of_line.trim().is_empty() || !is_only_one || document.root.kind() != Kind::Object {
        return None;
    }
    let before = trim_span(text, start..begin);
    let noise = before.or_else(|| trim_span(text, end..text.len()))?;
    Some((document, noise))
}

/// Returns the place of the text, if all of it is noise of a runtime.
pub(super) fn runtime_noise(text: &str, start: usize) -> Option<Span> {
    let mut lines = text[start..].lines().filter(|line| !line.trim().is_empty());
    let is_noise = |line: &str| {
        let is_change = [" + ", " - ", " ~ "]
            .iter()
            .any(|sign| line.starts_with(sign));
        is_change
            || RUNTIME_LINES.iter().any(|begin| line.starts_with(begin))
            || line.to_ascii_lowercase().contains("warning")
    };
    let first = lines.next()?;
    // An indented line continues the line before.
    let continues = |line: &str| line.starts_with([' ', '\t']);
    let is_all_noise = is_noise(first) && lines.all(|line| continues(line) || is_noise(line));
    let is_json = text.contains('{');
    (is_all_noise && !is_json).then(|| trim_span(text, start..text.len()))?
}

/// Returns the positions of lines after their indentation.
fn line_starts(text: &str, start: usize) -> impl Iterator<Item = usize> {
    let mut next = start;
    text[start..].split_inclusive('\n').map(move |line| {
        let indented = line.len() - line.trim_start_matches([' ', '\t']).len();
        let at = next + indented;
        next += line.len();
        at
    })
}

fn trim_span(text: &str, span: Span) -> Option<Span> {
    let part = &text[span.clone()];
    let start = span.start + (part.len() - part.trim_start().len());
    let end = start + part.trim().len();
    (start < end).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, object: Option<&str>) {
        let found = object_among_lines(text, 0);
        assert_eq!(found.map(|(document, _)| document.root.text()), object);
    }

    #[test]
    fn one_object_is_found_before_between_and_after_lines() {
        check("sh: warning: locale\n{\"a\": {}}\n", Some("{\"a\": {}}"));
        check(
            "{\"a\": {}}\n(node:1) DeprecationWarning: x\n",
            Some("{\"a\": {}}"),
        );
        check(
            "one\n  {\n \"a\": {\n}\n}  \r\ntwo",
            Some("{\n \"a\": {\n}\n}"),
        );
    }

    #[test]
    fn ambiguous_text_has_no_object() {
        check("{\"a\": {}}\n{\"b\": {}}", None);
        check("note\n{\"a\": {}} done", None);
        check("note {\"a\": {}}", None);
        check("note\n{\"a\": {}", None);
        check("note\n{\"a\": {}}\n{ more", None);
        check("note\n[1]", None);
    }

    #[test]
    fn runtime_noise_differs_from_output_of_a_script() {
        for noise in [
            "Picked up JAVA_TOOL_OPTIONS: -Xmx256m\n",
            "perl: warning: Setting locale failed.\n\tLC_ALL = \"x\",\n    are supported.\n",
            "Resolved 5 packages in 2ms\n + rich==14.0\nInstalled 5 packages in 12ms\n",
            "(node:7) DeprecationWarning: old\n(Use `node --trace-deprecation ...` to see)\n",
        ] {
            assert_eq!(runtime_noise(noise, 0), Some(0..noise.trim_end().len()));
        }
        for words in [
            "jq: command not found",
            "warning: {\"a\": 1}",
            "",
            "usage: tool\nwarning: old",
        ] {
            assert_eq!(runtime_noise(words, 0), None, "{words}");
        }
    }
}
