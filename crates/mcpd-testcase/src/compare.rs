//! Comparison of what a call returned with what its case expects.

use serde_json::Value;

use crate::case::Expected;
use crate::ending::{Ending, Observed};
use crate::snapshot::is_acceptable;

/// Maximum length of a quoted text in a message, in characters.
const MAX_QUOTED: usize = 2000;

/// Differences between a result and its case, each as one or more lines; empty if there is none.
pub(crate) fn differences(expected: &Expected, observed: &Observed) -> Vec<String> {
    let mut differences = Vec::new();
    if let Some(difference) = compare_ending(expected, &observed.ending) {
        let notes = match observed.notes.as_str() {
            "" => String::new(),
            notes => format!("\n{}", quote(notes)),
        };
        differences.push(format!("{difference}{notes}"));
        if !is_acceptable(&observed.ending) {
            // There is no output to compare.
            return differences;
        }
    }
    if let Some(text) = &expected.text
        && without_newline(text) != without_newline(&observed.text)
    {
        differences.push(format!("the text differs:\n{}", diff(text, &observed.text)));
    }
    for part in &expected.contains {
        if !observed.text.contains(part) {
            let text = quote(&observed.text);
            differences.push(format!("the text does not contain {part:?}:\n{text}"));
        }
    }
    if let Some(pattern) = &expected.matches
        && !pattern.is_match(&observed.text)
    {
        let text = quote(&observed.text);
        differences.push(format!("the text does not match `{pattern}`:\n{text}"));
    }
    if let Some(json) = &expected.json {
        match &observed.json {
            Some(found) => compare_json("$", json, found, &mut differences),
            None => {
                let text = quote(&observed.text);
                differences.push(format!("the output is not JSON:\n{text}"));
            }
        }
    }
    if let Some(messages) = &expected.messages {
        match &observed.messages {
            Some(found) => compare_json("messages", messages, found, &mut differences),
            None => differences.push("there are no messages; only prompts have them".to_owned()),
        }
    }
    if let Some(image) = &expected.image
        && !observed.images.contains(image)
    {
        differences.push(match &observed.images[..] {
            [] => format!("there is no image; expected `{image}`"),
            found => format!("the image is `{}`; expected `{image}`", found.join("`, `")),
        });
    }
    differences
}

fn compare_ending(expected: &Expected, ending: &Ending) -> Option<String> {
    match ending {
        Ending::Exited(code) if expected.refused => Some(format!(
            "the script ran (exit code {code}); expected the call to be refused"
        )),
        Ending::Exited(0) if expected.error => {
            Some("the script succeeded; expected its result to be an error".to_owned())
        }
        Ending::Exited(code) if *code == expected.exit_code() => None,
        Ending::Exited(code) => {
            let expected = expected.exit_code();
            Some(format!("exit code {code}; expected {expected}"))
        }
        Ending::Refused(_) if expected.refused => None,
        Ending::ReportedError if expected.error => None,
        ending => Some(ending.to_string()),
    }
}

/// Adds the places where `found` lacks a part of `expected`. Objects may have further members.
fn compare_json(place: &str, expected: &Value, found: &Value, differences: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (name, value) in expected {
                let place = format!("{place}.{name}");
                match found.get(name) {
                    Some(found) => compare_json(&place, value, found, differences),
                    None => differences.push(format!("{place} is absent; expected {value}")),
                }
            }
        }
        (Value::Array(expected), Value::Array(found)) => {
            for (index, (value, found)) in expected.iter().zip(found).enumerate() {
                compare_json(&format!("{place}[{index}]"), value, found, differences);
            }
            if expected.len() != found.len() {
                differences.push(format!(
                    "{place} has {} elements; expected {}",
                    found.len(),
                    expected.len()
                ));
            }
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => {}
        (expected, found) if expected == found => {}
        (expected, found) => {
            let found = quote(&found.to_string());
            differences.push(format!("{place} is {found}; expected {expected}"));
        }
    }
}

/// Lines that differ, with three lines around them.
pub(crate) fn diff(expected: &str, found: &str) -> String {
    let with_newline = |text: &str| format!("{}\n", without_newline(text));
    let (expected, found) = (with_newline(expected), with_newline(found));
    let diff = similar::TextDiff::from_lines(&expected, &found);
    let diff = diff.unified_diff().context_radius(3).to_string();
    quote(diff.trim_end())
}

fn without_newline(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

/// Text of bounded length.
pub(crate) fn quote(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(expected: Value, found: Value, differences: &[&str]) {
        let mut all = Vec::new();
        compare_json("$", &expected, &found, &mut all);
        assert_eq!(all, differences);
    }

    #[test]
    fn json_is_a_subset() {
        check(json!({"a": 1}), json!({"a": 1.0, "b": 2}), &[]);
        check(
            json!({"a": {"b": [1, {"c": "x"}]}}),
            json!({"a": {"b": [1, {"c": "y", "d": 1}]}}),
            &["$.a.b[1].c is \"y\"; expected \"x\""],
        );
        check(
            json!({"a": [1, 2], "b": null}),
            json!({"a": [1]}),
            &[
                "$.a has 1 elements; expected 2",
                "$.b is absent; expected null",
            ],
        );
    }

    #[test]
    fn text_difference_shows_lines() {
        let shown = diff("a\nb\nc\n", "a\nB\nc");
        assert_eq!(shown, "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c");
    }

    #[test]
    fn ending_and_output_are_compared() {
        let expected = Expected {
            contains: vec!["x".to_owned()],
            ..Expected::default()
        };
        let observed = Observed::without_result(Ending::Exited(3));
        let found = differences(&expected, &observed);
        assert_eq!(found[0], "exit code 3; expected 0");
        assert_eq!(found[1], "the text does not contain \"x\":\n");
        let stopped = Observed::without_result(Ending::Stopped("time-limit".to_owned()));
        assert_eq!(differences(&expected, &stopped).len(), 1);
    }
}
