//! Report for people: one line for each case, and the differences of failed ones.

use std::path::Path;

use super::{arguments, count_noun, summary};
use crate::report::{CaseReport, GeneratedReport, Report, SuiteReport};

/// Renders a report for people. Paths are shown relative to `here`.
#[must_use]
pub fn human(report: &Report, here: &Path) -> String {
    let mut text = String::new();
    for suite in &report.suites {
        text += &suite_text(suite, here);
    }
    for fault in &report.faults {
        text += &format!("{}\n", relative_text(&fault.to_string(), here));
    }
    text += &format!("{}\n", summary(report));
    text.replace(is_obeyed, "\u{fffd}")
}

fn suite_text(suite: &SuiteReport, here: &Path) -> String {
    let path = suite.file.as_deref().unwrap_or(&suite.script);
    let mut text = format!("{}\n", relative_text(&path.to_string_lossy(), here));
    for case in &suite.cases {
        text += &case_text(case);
    }
    for fault in &suite.faults {
        text += &format!("  fault     {}\n", relative_text(&fault.to_string(), here));
    }
    if let Some(report) = &suite.generated {
        text += &generated_text(report);
    }
    if !suite.uncovered.is_empty() {
        let options = suite.uncovered.join("`, `");
        text += &format!("  options without a case: `{options}`\n");
    }
    text
}

fn case_text(case: &CaseReport) -> String {
    let verdict = match (case.is_accepted, case.differences.is_empty()) {
        (true, _) => "accepted",
        (false, true) => "ok      ",
        (false, false) => "FAILED  ",
    };
    let time = case.elapsed.as_millis();
    let name = case.name.escape_debug();
    let mut text = format!("  {verdict}  {name} ({time} ms)\n");
    for difference in &case.differences {
        text += &indent(difference);
    }
    text
}

fn generated_text(report: &GeneratedReport) -> String {
    let mut text = String::new();
    for fault in &report.faults {
        text += &format!("  FAILED    generated call of {}\n", fault.tool);
        text += &indent(&fault.message);
        text += &indent(&format!("arguments: {}", arguments(fault)));
    }
    if report.faults.is_empty() {
        text += &format!(
            "  ok        {}\n",
            count_noun(report.calls, "generated call")
        );
    }
    text
}

fn indent(text: &str) -> String {
    let lines = text.lines();
    lines.map(|line| format!("            {line}\n")).collect()
}

/// Text without the path of the working directory.
fn relative_text(text: &str, here: &Path) -> String {
    let here = format!("{}/", here.display());
    text.replace(&here, "")
}

/// Returns whether a terminal would act on a character.
fn is_obeyed(char: char) -> bool {
    char.is_control() && char != '\n'
        || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
