//! Reports as text: for people, as JUnit XML, and as annotations of GitHub. A [`Report`]
//! serializes as JSON.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::report::{CaseReport, GeneratedFault, Report, SuiteReport};

mod github;
mod human;
mod junit;

pub use github::github;
pub use human::human;
pub use junit::junit;

/// Maximum length of arguments in a report, in characters.
const MAX_ARGUMENTS: usize = 1000;

/// Text of a failed case or a fault: its first line, and all lines.
struct Failure<'a> {
    title: String,
    detail: String,
    file: &'a Path,
    line: usize,
}

impl<'a> Failure<'a> {
    fn of_case(suite: &'a SuiteReport, case: &CaseReport) -> Self {
        Self {
            title: format!("{}: {}", case.tool, case.name),
            detail: case.differences.join("\n"),
            file: suite.file.as_deref().unwrap_or(&suite.script),
            line: case.line,
        }
    }

    fn of_generated(suite: &'a SuiteReport, fault: &GeneratedFault) -> Self {
        Self {
            title: format!("{}: generated call", fault.tool),
            detail: format!("{}\narguments: {}", fault.message, arguments(fault)),
            file: &suite.script,
            line: 1,
        }
    }
}

/// Failed cases and faults of generated calls.
fn failures(suite: &SuiteReport) -> impl Iterator<Item = Failure<'_>> {
    let cases = suite.cases.iter();
    let failed = cases.filter(|case| !case.differences.is_empty() && !case.is_accepted);
    let generated = suite.generated.iter().flat_map(|report| &report.faults);
    let generated = generated.map(move |fault| Failure::of_generated(suite, fault));
    failed
        .map(|case| Failure::of_case(suite, case))
        .chain(generated)
}

/// Arguments of a fault as JSON. Those that are very long are shortened.
fn arguments(fault: &GeneratedFault) -> String {
    let json = Value::Object(fault.arguments.clone()).to_string();
    match json.char_indices().nth(MAX_ARGUMENTS) {
        Some((end, _)) => format!("{}… ({} bytes)", &json[..end], json.len()),
        None => json,
    }
}

/// Sentence with the numbers of a report.
fn summary(report: &Report) -> String {
    let (passed, accepted, failed) = report.counts();
    let mut text = format!("{passed} passed, {failed} failed");
    let generated: Vec<_> = report
        .suites
        .iter()
        .filter_map(|suite| suite.generated.as_ref())
        .collect();
    let files = report
        .suites
        .iter()
        .map(|suite| suite.faults.len())
        .sum::<usize>();
    let faults = files + report.faults.len();
    let parts = [
        (accepted > 0).then(|| format!("{accepted} accepted")),
        (faults > 0).then(|| format!("{} of files", count_noun(faults, "fault"))),
        (!generated.is_empty()).then(|| {
            let calls: usize = generated.iter().map(|report| report.calls).sum();
            let refused: usize = generated.iter().map(|report| report.refused).sum();
            let faults: usize = generated.iter().map(|report| report.faults.len()).sum();
            let calls = count_noun(calls, "generated call");
            format!(
                "{} in {calls} ({refused} refused)",
                count_noun(faults, "fault")
            )
        }),
    ];
    for part in parts.into_iter().flatten() {
        write!(text, ", {part}").expect("a string takes everything");
    }
    text
}

/// Number with a noun.
fn count_noun(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}
