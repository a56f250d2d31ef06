//! Annotations for GitHub workflows: one command for each failure.

use std::path::Path;

use super::failures;
use crate::report::Report;

/// Renders failures as commands of GitHub workflows. Paths are relative to `here`.
#[must_use]
pub fn github(report: &Report, here: &Path) -> String {
    let mut text = String::new();
    let mut annotate = |file: &Path, line: usize, title: &str, message: &str| {
        let file = file.strip_prefix(here).unwrap_or(file).to_string_lossy();
        text += &format!(
            "::error file={},line={line},title={}::{}\n",
            property(&file),
            property(title),
            data(message)
        );
    };
    let suites = report.suites.iter();
    for fault in suites.flat_map(|suite| &suite.faults).chain(&report.faults) {
        annotate(&fault.file, fault.line, "test cases", &fault.message);
    }
    for failure in report.suites.iter().flat_map(failures) {
        annotate(failure.file, failure.line, &failure.title, &failure.detail);
    }
    text
}

/// Escapes the message of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
