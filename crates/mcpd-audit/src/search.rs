//! Search for records, by their fields and by text, and their summaries on one line.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use jiff::{Span, Timestamp, Zoned, civil};
use memchr::memchr;
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::blocks::{Block, FileBlock, LogBlocks, RawLine, map_blocks};
use crate::reader::Line;

/// Characters that have a short escape in JSON, and that escape.
const ESCAPES: [(char, &str); 8] = [
    ('"', r#"\""#),
    ('\\', r"\\"),
    ('/', r"\/"),
    ('\u{8}', r"\b"),
    ('\u{c}', r"\f"),
    ('\n', r"\n"),
    ('\r', r"\r"),
    ('\t', r"\t"),
];

/// Beginning of an escape that can stand for any character.
const ANY_ESCAPE: &str = r"\u";

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
    /// Finds the records that match in the log in `file`, the oldest first.
    ///
    /// # Errors
    ///
    /// The log does not exist, or cannot be read.
    pub fn find(&self, file: &Path) -> io::Result<Found<'_>> {
        self.find_in(LogBlocks::open(file)?)
    }

    fn find_in(&self, mut log: LogBlocks) -> io::Result<Found<'_>> {
        Ok(Found {
            matcher: Matcher::new(self),
            blocks: log.next_batch()?,
            log,
            lines: VecDeque::new(),
        })
    }

    fn has_fields(&self) -> bool {
        let fields = [&self.tool, &self.principal, &self.outcome];
        fields.into_iter().any(Option::is_some) || self.has_time()
    }

    fn has_time(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }

    /// Returns whether the fields of a record match, and the name in its parameters. The time is
    /// compared last, as it takes the longest.
    fn matches_fields(&self, fields: &Fields<'_>, name: Option<&str>) -> bool {
        let is = |field: Option<&str>, wanted: &Option<String>| {
            wanted.is_none() || field == wanted.as_deref()
        };
        is(fields.principal, &self.principal)
            && is(fields.outcome, &self.outcome)
            && (is(fields.tool, &self.tool) || is(name, &self.tool))
            && (!self.has_time() || self.matches_time(fields.timestamp))
    }

    fn matches_time(&self, timestamp: Option<&str>) -> bool {
        let Some(Ok(time)) = timestamp.map(str::parse::<Timestamp>) else {
            return false;
        };
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time < until)
    }
}

/// Records that match a [`Search`], the oldest first. Several threads look for them.
#[derive(Debug)]
pub struct Found<'s> {
    matcher: Matcher<'s>,
    log: LogBlocks,
    /// Blocks that were not searched yet.
    blocks: Vec<FileBlock>,
    /// Records found in those before.
    lines: VecDeque<io::Result<Line>>,
}

impl Iterator for Found<'_> {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.lines.is_empty() && !self.blocks.is_empty() {
            let select = |block| self.matcher.select(block);
            let (found, next) = map_blocks(&self.blocks, select, || self.log.next_batch());
            let found = found.into_iter().flatten();
            self.lines.extend(found.map(|line| Ok(Line::new(line))));
            self.blocks = next.unwrap_or_else(|error| {
                self.lines.push_back(Err(error));
                Vec::new()
            });
        }
        self.lines.pop_front()
    }
}

/// Fields of a record that a search compares, without any escape.
#[derive(Debug, Default, Deserialize)]
struct Fields<'a> {
    timestamp: Option<&'a str>,
    principal: Option<&'a str>,
    outcome: Option<&'a str>,
    tool: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

/// Name of the tool in the parameters of a call.
#[derive(Debug, Default, Deserialize)]
struct Named<'a> {
    name: Option<&'a str>,
}

/// Search, prepared for many lines.
#[derive(Debug)]
struct Matcher<'s> {
    search: &'s Search,
    /// Texts without which no line matches.
    wanted: Vec<Wanted<'s>>,
}

/// A text that has to be in a line, perhaps escaped.
#[derive(Debug)]
struct Wanted<'s> {
    text: Finder<'s>,
    /// Escapes that can stand for one of its characters.
    escapes: Vec<Finder<'static>>,
}

impl<'s> Wanted<'s> {
    fn new(text: &'s str) -> Self {
        let is_used = |(char, _): &(char, &str)| text.contains(*char);
        let used = ESCAPES.into_iter().filter(is_used);
        let escapes = used.map(|(_, escape)| escape).chain([ANY_ESCAPE]);
        Self {
            text: Finder::new(text),
            escapes: escapes.map(Finder::new).collect(),
        }
    }

    fn may_be_in(&self, line: &[u8], has_escapes: bool) -> bool {
        self.text.find(line).is_some()
            || has_escapes
                && self
                    .escapes
                    .iter()
                    .any(|escape| escape.find(line).is_some())
    }
}

impl<'s> Matcher<'s> {
    fn new(search: &'s Search) -> Self {
        let fields = [
            &search.text,
            &search.tool,
            &search.principal,
            &search.outcome,
        ];
        let wanted = fields.into_iter().flatten();
        Self {
            search,
            wanted: wanted.map(|text| Wanted::new(text)).collect(),
        }
    }

    fn select<'b>(&self, block: &'b Block) -> Vec<RawLine<'b>> {
        let lines = block.lines();
        lines.filter(|line| self.matches(&line.text())).collect()
    }

    /// Returns whether a line matches. Most lines are not parsed at all, and most others without a
    /// copy of anything.
    fn matches(&self, line: &str) -> bool {
        let has_escapes = memchr(b'\\', line.as_bytes()).is_some();
        let mut wanted = self.wanted.iter();
        if !wanted.all(|wanted| wanted.may_be_in(line.as_bytes(), has_escapes)) {
            return false;
        }
        let text = self.search.text.as_deref();
        if text.is_some_and(|text| !line.contains(text)) {
            return self.matches_parsed(line);
        }
        if !self.search.has_fields() {
            return true;
        }
        let fields = serde_json::from_str::<Fields<'_>>(line).ok();
        let matches = fields.and_then(|fields| self.matches_borrowed(&fields));
        matches.unwrap_or_else(|| self.matches_parsed(line))
    }

    /// Does what [`matches_parsed`](Self::matches_parsed) does for a record in which the text was
    /// found; `None` if that takes more than borrowed fields.
    fn matches_borrowed(&self, fields: &Fields<'_>) -> Option<bool> {
        let is_named = self.search.tool.is_some() && fields.tool != self.search.tool.as_deref();
        let name = match fields.params.filter(|_| is_named) {
            Some(params) => serde_json::from_str::<Named<'_>>(params.get()).ok()?.name,
            None => None,
        };
        Some(self.search.matches_fields(fields, name))
    }

    /// Returns whether a line matches that has escapes where it matters, or is no record.
    fn matches_parsed(&self, line: &str) -> bool {
        let Ok(record) = serde_json::from_str::<Value>(line) else {
            return self.matches_legible(line);
        };
        let fields = Fields {
            timestamp: record["timestamp"].as_str(),
            principal: record["principal"].as_str(),
            outcome: record["outcome"].as_str(),
            tool: record["tool"].as_str(),
            params: None,
        };
        let name = record["params"]["name"].as_str();
        let text = self.search.text.as_deref();
        self.search.matches_fields(&fields, name)
            && text.is_none_or(|text| line.contains(text) || contains_text(&record, text))
    }

    /// Returns whether a line matches by the fields that can be read. Another value in it, such as
    /// half of a surrogate pair, would hide the record otherwise.
    fn matches_legible(&self, line: &str) -> bool {
        let fields: Fields<'_> = serde_json::from_str(line).unwrap_or_default();
        let text = self.search.text.as_deref();
        let matches = self.matches_borrowed(&fields);
        matches.unwrap_or_else(|| self.search.matches_fields(&fields, None))
            && text.is_none_or(|text| line.contains(text))
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
        self.text.contains(hash) && self.record()["hash"] == hash
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
    use proptest::prelude::*;

    use super::*;
    use crate::reader::Records;
    use crate::test_log::{append, log};

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
        let matches = |change: fn(&mut Search)| {
            let mut search = Search::default();
            change(&mut search);
            Matcher::new(&search).matches(CALL)
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
    fn unreadable_value_hides_no_record() {
        let line = CALL.replace("exit code 1", r"\ud800");
        assert!(serde_json::from_str::<Value>(&line).is_err());
        let matches = |change: fn(&mut Search)| {
            let mut search = Search::default();
            change(&mut search);
            let matcher = Matcher::new(&search);
            assert_eq!(matcher.matches(&line), matcher.matches_parsed(&line));
            matcher.matches(&line)
        };
        assert!(matches(|search| search.tool = Some("math_add".to_owned())));
        assert!(matches(
            |search| search.since = "2026-11-22T10:30:00Z".parse().ok()
        ));
        assert!(matches(|search| search.text = Some("f00".to_owned())));
        assert!(!matches(|search| search.principal = Some("b".to_owned())));
        assert!(!matches(|search| search.text = Some("a\"c".to_owned())));
    }

    /// A string in JSON, some of whose characters are escaped.
    fn string() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "a", "b", "é", "/", r"\/", r"\n", r#"\""#, r"\\", r"\u0061", r"\\u0061", r"\u00e9",
            r"\ud800",
        ]);
        let pieces = prop::collection::vec(piece, 0..3);
        pieces.prop_map(|pieces| format!("\"{}\"", pieces.concat()))
    }

    /// A line with fields of any kind, some of them twice.
    fn any_line() -> impl Strategy<Value = String> {
        let names = ["tool", "principal", "outcome", "params", "timestamp", "a"];
        let others = [
            "null",
            "1",
            "{}",
            r#""2026-11-22T10:30:00Z""#,
            "[",
            "\u{fffd}",
        ];
        let value = prop_oneof![
            4 => string(),
            1 => prop::sample::select(others.to_vec()).prop_map(str::to_owned),
            2 => string().prop_map(|name| format!(r#"{{"name":{name}}}"#)),
        ];
        let field = (prop::sample::select(names.to_vec()), value);
        let field = field.prop_map(|(name, value)| format!(r#""{name}":{value}"#));
        let fields = prop::collection::vec(field, 0..7);
        fields.prop_map(|fields| format!("{{{}}}", fields.join(",")))
    }

    fn any_search() -> impl Strategy<Value = Search> {
        let wanted = || {
            let texts = [
                "a", "b", "é", "/", "\n", "\"", "\\", "\\n", "ab", "u0061", "",
            ];
            prop::option::of(prop::sample::select(texts.to_vec()).prop_map(str::to_owned))
        };
        let time = prop::option::of(Just("2026-11-22T10:30:00Z".parse().unwrap()));
        let fields = (wanted(), wanted(), wanted(), wanted(), time);
        fields.prop_map(|(text, tool, principal, outcome, since)| Search {
            text,
            tool,
            principal,
            outcome,
            since,
            until: None,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

        /// A line that is not parsed would not match if it were.
        #[test]
        fn search_finds_what_parsing_every_line_finds(line in any_line(), search in any_search()) {
            let matcher = Matcher::new(&search);
            prop_assert_eq!(matcher.matches(&line), matcher.matches_parsed(&line));
        }
    }

    #[test]
    fn records_are_found_in_the_order_of_the_log() {
        let (_directory, files) = log();
        append(&files, "axaya");
        let search = Search {
            text: Some(r#""method":"a""#.to_owned()),
            ..Search::default()
        };
        let found = search.find_in(LogBlocks::open_with(&files.path, 100, 3).unwrap());
        let found: Vec<_> = found.unwrap().map(Result::unwrap).collect();
        let all = Records::open(&files.path).unwrap().map(Result::unwrap);
        let expected = all.filter(|line| line.text.contains(r#""a""#));
        assert!(found.len() == 4 && found.into_iter().eq(expected));
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
