//! Report as `JUnit` XML, which CI systems show.

use std::path::Path;
use std::time::Duration;

use super::{Failure, arguments};
use crate::report::{Report, SuiteReport};

/// Renders a report as `JUnit` XML. Paths are relative to `here`.
#[must_use]
pub fn junit(report: &Report, here: &Path) -> String {
    let suites = report.suites.iter().map(|suite| test_suite(suite, here));
    let mut suites: Vec<_> = suites.collect();
    if !report.faults.is_empty() {
        let faults = report.faults.iter();
        let cases = faults
            .map(|fault| TestCase::with_failure("test cases", "test cases", fault.to_string()));
        suites.push(("test cases".to_owned(), cases.collect()));
    }
    let all = || suites.iter().flat_map(|(_, cases)| cases);
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"mcpd\" {}>\n",
        counts(all())
    );
    for (name, cases) in &suites {
        let counts = counts(cases.iter());
        xml += &format!("  <testsuite name=\"{}\" {counts}>\n", escape(name));
        for case in cases {
            xml += &case.xml();
        }
        xml += "  </testsuite>\n";
    }
    xml + "</testsuites>\n"
}

struct TestCase {
    class: String,
    name: String,
    elapsed: Duration,
    failure: Option<String>,
}

impl TestCase {
    fn with_failure(class: &str, name: &str, failure: String) -> Self {
        Self {
            class: class.to_owned(),
            name: name.to_owned(),
            elapsed: Duration::ZERO,
            failure: Some(failure),
        }
    }

    fn xml(&self) -> String {
        let (class, name) = (escape(&self.class), escape(&self.name));
        let time = self.elapsed.as_secs_f64();
        let start =
            format!("    <testcase classname=\"{class}\" name=\"{name}\" time=\"{time:.3}\"");
        match &self.failure {
            None => format!("{start}/>\n"),
            Some(text) => {
                let first = escape(text.lines().next().unwrap_or_default());
                let text = escape(text);
                format!(
                    "{start}>\n      <failure message=\"{first}\">{text}</failure>\n    </testcase>\n"
                )
            }
        }
    }
}

fn test_suite(suite: &SuiteReport, here: &Path) -> (String, Vec<TestCase>) {
    let path = suite.file.as_deref().unwrap_or(&suite.script);
    let path = path.strip_prefix(here).unwrap_or(path).to_string_lossy();
    let cases = suite.cases.iter().map(|case| {
        let is_failed = !case.differences.is_empty() && !case.is_accepted;
        TestCase {
            class: case.tool.clone(),
            name: case.name.clone(),
            elapsed: case.elapsed,
            failure: is_failed.then(|| Failure::of_case(suite, case).detail),
        }
    });
    let mut cases: Vec<_> = cases.collect();
    for fault in &suite.faults {
        cases.push(TestCase::with_failure(
            "test cases",
            "test cases",
            fault.to_string(),
        ));
    }
    if let Some(report) = &suite.generated {
        for fault in &report.faults {
            let failure = format!("{}\narguments: {}", fault.message, arguments(fault));
            cases.push(TestCase::with_failure(
                &fault.tool,
                "generated calls",
                failure,
            ));
        }
        if report.faults.is_empty() {
            let class = path.clone().into_owned();
            cases.push(TestCase {
                class,
                name: "generated calls".to_owned(),
                elapsed: Duration::ZERO,
                failure: None,
            });
        }
    }
    (path.into_owned(), cases)
}

fn counts<'a>(cases: impl Iterator<Item = &'a TestCase>) -> String {
    let (mut tests, mut failures, mut time) = (0, 0, Duration::ZERO);
    for case in cases {
        tests += 1;
        failures += usize::from(case.failure.is_some());
        time += case.elapsed;
    }
    let time = time.as_secs_f64();
    format!("tests=\"{tests}\" failures=\"{failures}\" time=\"{time:.3}\"")
}

/// Escapes a text for XML 1.0, which lacks most control characters.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' => escaped += "&#10;",
            '\t' => escaped += "&#9;",
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            char if char.is_ascii_control() => escaped.push('\u{fffd}'),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(
            escape("a<b> & \"c\"\n\u{1b}[1m"),
            "a&lt;b&gt; &amp; &quot;c&quot;&#10;\u{fffd}[1m"
        );
    }
}
