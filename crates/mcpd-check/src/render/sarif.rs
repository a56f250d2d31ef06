//! Faults in SARIF 2.1.0, the exchange format of code scanners.

use std::path::Path;

use mcpd_scriptspec::Severity;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde_json::{Value, json};

use super::base_directory;
use crate::finding::{Finding, Place};
use crate::rules;

/// Everything but slashes and the unreserved characters of RFC 3986.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Renders the log of one run.
#[must_use]
pub fn sarif(findings: &[Finding<'_>]) -> Value {
    let here = base_directory();
    let rules: Vec<_> = rules::all().map(|rule| descriptor(&rule)).collect();
    let results: Vec<_> = findings
        .iter()
        .map(|finding| result(finding, &here))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "mcpd",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn descriptor(rule: &rules::Rule) -> Value {
    json!({
        "id": rule.code,
        "shortDescription": {"text": rule.code.replace('-', " ")},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.text(), "markdown": rule.markdown()},
        "helpUri": rule.url(),
        "defaultConfiguration": {"level": level(rule.severity)},
    })
}

fn result(finding: &Finding<'_>, here: &Path) -> Value {
    let mut message = finding.message.clone().into_owned();
    let place = finding.place.as_ref();
    if let Some(place) = place.filter(|place| !place.is_in_file()) {
        message += &place.remark();
    }
    if let Some(help) = finding.help {
        message += &format!("\nhelp: {help}");
    }
    let mut result = json!({
        "ruleId": finding.code,
        "level": level(finding.severity),
        "message": {"text": message},
    });
    if let Some(file) = finding.file {
        result["locations"] = json!([{"physicalLocation": location(file, here, place)}]);
    }
    result
}

/// The file, and the place in it.
fn location(file: &Path, here: &Path, place: Option<&Place<'_>>) -> Value {
    let mut location = json!({"artifactLocation": {"uri": uri(file, here)}});
    if let Some(place) = place.filter(|place| place.is_in_file()) {
        let (start, end) = (place.start(), place.end());
        location["region"] = json!({
            "startLine": start.line,
            "startColumn": start.column,
            "endLine": end.line,
            "endColumn": end.column,
        });
    }
    location
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// URI of a file, relative to the working directory if it lies below it: in
/// CI that is the repository.
fn uri(file: &Path, here: &Path) -> String {
    let relative = file.strip_prefix(here);
    let (scheme, path) = match relative {
        Ok(path) => ("", path),
        Err(_) => ("file://", file),
    };
    let path = percent_encode(path.as_os_str().as_encoded_bytes(), PATH);
    format!("{scheme}{path}")
}

#[cfg(test)]
mod tests {
    use mcpd_scriptspec::Stream;

    use super::*;

    #[track_caller]
    fn check(file: &str, expected: &str) {
        assert_eq!(uri(Path::new(file), Path::new("/home/you")), expected);
    }

    #[test]
    fn sarif_path_becomes_a_uri() {
        check("/home/you/tools/say it", "tools/say%20it");
        check("/home/you/a:b#c", "a%3Ab%23c");
        check("/srv/größe", "file:///srv/gr%C3%B6%C3%9Fe");
    }

    #[test]
    fn sarif_region_exists_only_for_a_place_in_the_file() {
        let place = |stream| Place {
            stream,
            text: "a\nwörd".as_bytes(),
            span: 2..7,
        };
        let region =
            |stream| location(Path::new("a"), Path::new(""), Some(&place(stream)))["region"].take();
        assert_eq!(
            region(Stream::Source),
            json!({"startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 5})
        );
        assert_eq!(region(Stream::Stdout), Value::Null);
    }
}
