//! Search for records, by their fields and by text, and their summaries on one line.

use jiff::{Span, Timestamp, Zoned, civil};
use serde_json::Value;

use crate::reader::Line;

/// Search for records. Each criterion that is set has to match.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Search {
    /// Text in a value, in the name of one, or in the line of the file.
    pub text: Option<String>,
    /// Tool, prompt or resource, by its path or by the name in the call.
    pub tool: Option<String>,
    /// Name of the caller.
    pub principal: Option<String>,
    /// Outcome, such as `success`.
    pub outcome: Option<String>,
    /// Time of the first records that match.
    pub since: Option<Timestamp>,
    /// Time before which all records that match were written.
    pub until: Option<Timestamp>,
}

impl Search {
    /// Returns whether the record on a line matches.
    #[must_use]
    pub fn matches(&self, line: &Line) -> bool {
        let record = line.record();
        let is = |field: &Value, wanted: &Option<String>| {
            wanted.as_deref().is_none_or(|wanted| field == wanted)
        };
        let time = record["timestamp"]
            .as_str()
            .and_then(|time| time.parse().ok());
        (is(&record["tool"], &self.tool) || is(&record["params"]["name"], &self.tool))
            && is(&record["principal"], &self.principal)
            && is(&record["outcome"], &self.outcome)
            && (self.since).is_none_or(|since| time.is_some_and(|time: Timestamp| time >= since))
            && (self.until).is_none_or(|until| time.is_some_and(|time: Timestamp| time < until))
            && (self.text.as_deref())
                .is_none_or(|text| line.text.contains(text) || contains_text(&record, text))
    }
}

/// Returns whether `text` occurs in one of the strings of `value`, compared unescaped.
fn contains_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string.contains(text),
        Value::Array(values) => values.iter().any(|value| contains_text(value, text)),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name.contains(text) || contains_text(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Parses a time: with a time zone, in the time zone of `now`, or as an age such as `2h`; none for
/// any other text.
#[must_use]
pub fn parse_time(text: &str, now: &Zoned) -> Option<Timestamp> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    if let Ok(time) = text.parse::<civil::DateTime>() {
        let zoned = time.to_zoned(now.time_zone().clone());
        return Some(zoned.ok()?.timestamp());
    }
    let ago = text.parse::<Span>().ok()?;
    Some(now.checked_sub(ago).ok()?.timestamp())
}

impl Line {
    /// Fields of the record; null if the line is none.
    pub(crate) fn record(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Returns whether the record on this line has that hash.
    #[must_use]
    pub fn has_hash(&self, hash: &str) -> bool {
        self.record()["hash"] == hash
    }

    /// Summary of the record for people: time, client, request, outcome, duration and error, as far
    /// as they are there; the whole text of a line that is no record. The texts come from clients
    /// and scripts.
    #[must_use]
    pub fn summary(&self) -> Vec<String> {
        let record = self.record();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let Some(timestamp) = text(&record["timestamp"]) else {
            return vec![self.text.clone()];
        };
        let params = &record["params"];
        let named = [&record["tool"], &params["name"], &params["uri"]];
        let what = named.into_iter().find_map(text);
        let (outcome, duration) = match text(&record["event"]).as_deref() {
            Some("end") => (
                text(&record["outcome"]),
                record["duration_ms"].as_u64().map(|ms| format!("{ms} ms")),
            ),
            Some("note") => (Some(params.to_string()), None),
            event => (event.map(str::to_owned), None),
        };
        let error = duration.as_ref().and_then(|_| text(&record["error"]));
        let error = error.filter(|error| Some(error) != outcome.as_ref());
        let parts = [
            Some(timestamp),
            text(&record["principal"]),
            text(&record["method"]),
            what,
            outcome,
            duration,
            error,
        ];
        parts.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        Line {
            offset: 0,
            text: text.to_owned(),
            is_whole: true,
        }
    }

    const CALL: &str = r#"{"timestamp": "2026-11-22T10:30:00Z", "event": "end", "principal": "ada",
        "method": "tools/call", "tool": "math/add", "params": {"name": "math_add", "n": "a\"b"},
        "outcome": "failure", "duration_ms": 12, "error": "exit code 1", "hash": "f00"}"#;

    #[test]
    fn every_criterion_has_to_match() {
        let call = line(CALL);
        let matches = |change: fn(&mut Search)| {
            let mut search = Search::default();
            change(&mut search);
            search.matches(&call)
        };
        assert!(matches(|_| {}));
        assert!(matches(|search| search.tool = Some("math_add".to_owned())));
        assert!(matches(|search| search.text = Some("a\"b".to_owned())));
        assert!(matches(
            |search| search.since = "2026-11-22T10:30:00Z".parse().ok()
        ));
        assert!(!matches(
            |search| search.until = "2026-11-22T10:30:00Z".parse().ok()
        ));
        assert!(!matches(|search| {
            search.tool = Some("math/add".to_owned());
            search.outcome = Some("success".to_owned());
        }));
    }

    #[test]
    fn summary_has_the_fields_that_are_there() {
        let expected = [
            "2026-11-22T10:30:00Z",
            "ada",
            "tools/call",
            "math/add",
            "failure",
            "12 ms",
            "exit code 1",
        ];
        assert_eq!(line(CALL).summary(), expected);
        assert_eq!(line("no record").summary(), ["no record"]);
        assert!(line(CALL).has_hash("f00") && !line("x").has_hash("f00"));
    }

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let now: Zoned = "2026-11-22T12:00:00+01:00[Europe/Berlin]".parse().unwrap();
        let expected = expected.map(|time| time.parse().unwrap());
        assert_eq!(parse_time(text, &now), expected, "{text}");
    }

    #[test]
    fn time_is_parsed_in_common_forms() {
        check("2026-11-22T10:30:00Z", Some("2026-11-22T10:30:00Z"));
        check(
            "2026-11-22T10:30:00.5+02:00",
            Some("2026-11-22T08:30:00.5Z"),
        );
        check("2026-11-22", Some("2026-11-21T23:00:00Z"));
        check("2026-11-22 10:30", Some("2026-11-22T09:30:00Z"));
        check("2h", Some("2026-11-22T09:00:00Z"));
        check("1 day 30m", Some("2026-11-21T10:30:00Z"));
        check("yesterday", None);
        check("", None);
    }
}
