//! Redaction of known secrets in the output of scripts. Finds exact matches only: a script that
//! encodes a secret, or prints it piece by piece, still reveals it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use bytes::Bytes;
use mcpd_exec::Captured;
use serde_json::Value;

use super::Secret;

/// Minimum length of a redacted secret, in bytes: shorter ones occur by chance all over a text.
pub(super) const MIN_LENGTH: usize = 6;

/// Minimum length of a part of a secret that is redacted where an output was cut, in bytes.
const MIN_PART: usize = 4;

/// Position of a secret in a text, and the index of the pattern that matched.
type Match = (Range<usize>, usize);

/// Search for the secrets of one script.
pub(crate) struct Redactor {
    /// Fast test for texts without secrets, which most are.
    detector: AhoCorasick,
    /// Finds all matches, including overlapping ones.
    finder: AhoCorasick,
    /// Patterns and their replacements.
    patterns: Vec<(String, String)>,
}

/// Shows no secret.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// Creates a redactor for these pairs of name and secret; `None` if no secret is long enough.
    pub(crate) fn new<'a>(secrets: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let mut patterns = Vec::new();
        for (name, secret) in secrets {
            for spelling in spellings(secret) {
                patterns.push((spelling, format!("[redacted {name}]")));
            }
        }
        if patterns.is_empty() {
            return None;
        }
        let automaton = |kind| {
            let spellings = patterns.iter().map(|(spelling, _)| spelling);
            // A DFA takes time in the square of a repetitive secret, and callers bring secrets.
            let automaton = AhoCorasick::builder()
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .match_kind(kind)
                .build(spellings);
            automaton.expect("secrets are shorter than an automaton can be large")
        };
        Some(Self {
            // The library uses vector instructions only for non-standard match kinds.
            detector: automaton(MatchKind::LeftmostFirst),
            finder: automaton(MatchKind::Standard),
            patterns,
        })
    }

    /// Creates a redactor of the values of variables.
    pub(super) fn of(variables: &[(String, Secret)]) -> Option<Arc<Self>> {
        let secrets = variables.iter();
        let secrets = secrets.map(|(name, secret)| (name.as_str(), secret.0.as_str()));
        Self::new(secrets).map(Arc::new)
    }

    /// Redacts a text from its beginning, possibly cut at the end.
    pub(crate) fn redact_bytes(&self, text: Vec<u8>, cut_end: bool) -> Vec<u8> {
        match self.redact_piece(&text, false, cut_end) {
            Cow::Owned(redacted) => redacted,
            Cow::Borrowed(_) => text,
        }
    }

    /// Redacts the output of a text script, and the form that a terminal would show.
    pub(crate) fn redact_text(&self, output: &Captured) -> Captured {
        let mut redacted = self.redact_captured(output);
        redacted.terminal = self.redact_shown(output);
        redacted
    }

    fn redact_shown(&self, output: &Captured) -> Option<Box<Captured>> {
        let shown = output.terminal.as_ref();
        shown.map(|shown| Box::new(self.redact_captured(shown)))
    }

    fn redact_captured(&self, output: &Captured) -> Captured {
        match output.whole() {
            Some(whole) => with_contents(output, self.redact_piece(&whole, false, false), &[]),
            None => {
                let head = self.redact_piece(&output.head, false, true);
                with_contents(output, head, &self.redact_piece(&output.tail, true, false))
            }
        }
    }

    /// Redacts JSON output: the result is JSON again, and a secret is found in any escaped
    /// spelling.
    pub(crate) fn redact_json(&self, output: &Captured) -> Captured {
        let Some(whole) = output.whole() else {
            return self.redact_text(output);
        };
        let mut redacted = match self.redact_json_text(&whole) {
            Cow::Borrowed(_) => output.clone(),
            redacted @ Cow::Owned(_) => with_contents(output, redacted, &[]),
        };
        redacted.terminal = self.redact_shown(output);
        redacted
    }

    /// Redacts a JSON text.
    pub(crate) fn redact_json_text<'a>(&self, json: &'a [u8]) -> Cow<'a, [u8]> {
        if memchr::memchr(b'\\', json).is_none() && !self.detector.is_match(json) {
            return Cow::Borrowed(json);
        }
        let mut redacted = Vec::with_capacity(json.len());
        let mut rest = json;
        while let Some(first) = rest.first() {
            let (token, after) = rest.split_at(token_length(*first, rest));
            redacted.extend_from_slice(&self.redact_token(token));
            rest = after;
        }
        // Now only a secret that spans several tokens can be left.
        Cow::Owned(self.redact_piece(&redacted, false, false).into_owned())
    }

    /// Redacts one token of JSON.
    fn redact_token<'a>(&self, token: &'a [u8]) -> Cow<'a, [u8]> {
        let text = match serde_json::from_slice(token) {
            Ok(Value::String(text)) => text.into_bytes(),
            // A number or a literal.
            _ => token.to_vec(),
        };
        match self.redact_piece(&text, false, false) {
            Cow::Borrowed(_) => Cow::Borrowed(token),
            Cow::Owned(text) => {
                let text = Value::String(String::from_utf8_lossy(&text).into_owned());
                Cow::Owned(text.to_string().into_bytes())
            }
        }
    }

    /// Redacts a piece of text. At a cut, a part of a secret counts as one.
    pub(crate) fn redact_piece<'a>(
        &self,
        text: &'a [u8],
        cut_start: bool,
        cut_end: bool,
    ) -> Cow<'a, [u8]> {
        let mut found = Vec::new();
        if cut_start && let Some(end) = self.find_end(text) {
            found.push(end);
        }
        if self.detector.is_match(text) {
            for secret in self.finder.find_overlapping_iter(text) {
                add_match(&mut found, (secret.range(), secret.pattern().as_usize()));
            }
        }
        if cut_end && let Some(start) = self.find_start(text) {
            add_match(&mut found, start);
        }
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut redacted = Vec::with_capacity(text.len());
        let mut rest = 0;
        for (place, pattern) in found {
            // Nothing lies between two overlapping matches.
            redacted.extend_from_slice(text.get(rest..place.start).unwrap_or_default());
            redacted.extend_from_slice(self.patterns[pattern].1.as_bytes());
            rest = place.end;
        }
        redacted.extend_from_slice(&text[rest..]);
        Cow::Owned(redacted)
    }

    /// Returns the longest end of a secret that `text` begins with.
    fn find_end(&self, text: &[u8]) -> Option<Match> {
        let found = self.patterns.iter().enumerate();
        let found = found.filter_map(|(pattern, (secret, _))| {
            let secret = secret.as_bytes();
            let mut lengths = (MIN_PART..secret.len()).rev();
            let length =
                lengths.find(|length| text.starts_with(&secret[secret.len() - length..]))?;
            Some((0..length, pattern))
        });
        found.max_by_key(|(place, _)| place.end)
    }

    /// Returns the longest beginning of a secret that `text` ends with.
    fn find_start(&self, text: &[u8]) -> Option<Match> {
        let found = self.patterns.iter().enumerate();
        let found = found.filter_map(|(pattern, (secret, _))| {
            let secret = secret.as_bytes();
            let mut lengths = (MIN_PART..secret.len()).rev();
            let length = lengths.find(|length| text.ends_with(&secret[..*length]))?;
            Some((text.len() - length..text.len(), pattern))
        });
        found.min_by_key(|(place, _)| place.start)
    }
}

/// Adds a match that ends no earlier than those before it, unless it lies within one; keeps as
/// few matches as cover the same text.
fn add_match(found: &mut Vec<Match>, next: Match) {
    let place = &next.0;
    // A match within the last one is dropped; a last one within `next`, or covered by its
    // neighbours, is removed. Otherwise the loop ends.
    while let Some((last, _)) = found.last() {
        if last.start <= place.start && place.end <= last.end {
            return;
        }
        let before = found.iter().nth_back(1);
        let is_next_to = before.is_some_and(|(before, _)| place.start <= before.end);
        if last.start < place.start && !is_next_to {
            break;
        }
        found.pop();
    }
    found.push(next);
}

/// Returns the spellings of a secret: as it is, inside a JSON string, and each of its lines.
fn spellings(secret: &str) -> Vec<String> {
    let mut spellings = vec![secret.to_owned()];
    let quoted = Value::String(secret.to_owned()).to_string();
    let quoted = &quoted[1..quoted.len() - 1];
    let foreign = |char: char| !char.is_ascii();
    let html = |char: char| matches!(char, '<' | '>' | '&');
    let most = |char: char| !char.is_ascii() || matches!(char, '<' | '>' | '&' | '\'' | '+');
    for escaped in [
        quoted.to_owned(),
        // These are the defaults of common libraries: Python's, PHP's, C#'s, Go's.
        escape(quoted, foreign, false),
        escape(quoted, foreign, true),
        escape(quoted, html, false),
        escape(quoted, most, true),
    ] {
        spellings.push(escaped.replace('/', "\\/"));
        spellings.push(escaped);
    }
    spellings.extend(secret.lines().map(|line| line.trim().to_owned()));
    spellings.retain(|spelling| spelling.len() >= MIN_LENGTH);
    spellings.sort();
    spellings.dedup();
    spellings
}

/// Escapes some characters by their numbers, as JSON does.
fn escape(text: &str, is_meant: impl Fn(char) -> bool, is_upper_case: bool) -> String {
    let mut escaped = String::new();
    for char in text.chars() {
        if !is_meant(char) {
            escaped.push(char);
            continue;
        }
        for unit in char.encode_utf16(&mut [0; 2]) {
            let number = match is_upper_case {
                true => format!("\\u{unit:04X}"),
                false => format!("\\u{unit:04x}"),
            };
            escaped.push_str(&number);
        }
    }
    escaped
}

fn token_length(first: u8, text: &[u8]) -> usize {
    let is_between = |byte: &u8| b"{}[],: \t\r\n\"".contains(byte);
    match first {
        b'"' => {
            let mut is_escaped = false;
            let end = text[1..].iter().position(|byte| match byte {
                _ if is_escaped => {
                    is_escaped = false;
                    false
                }
                b'\\' => {
                    is_escaped = true;
                    false
                }
                byte => *byte == b'"',
            });
            end.map_or(text.len(), |end| end + 2)
        }
        byte if is_between(&byte) => 1,
        _ => text.iter().position(is_between).unwrap_or(text.len()),
    }
}

/// Returns the output with other contents, and its byte counts unchanged.
fn with_contents(output: &Captured, head: Cow<'_, [u8]>, tail: &[u8]) -> Captured {
    let mut replaced = output.clone();
    replaced.head = Bytes::from(head.into_owned());
    replaced.tail = Bytes::copy_from_slice(tail);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "s3cr\"et-key";
    const PIN: &str = "123456";

    fn redactor() -> Redactor {
        let secrets = [("KEY", KEY), ("PIN", PIN), ("PEM", "-- begin\nabcdefgh\n")];
        Redactor::new(secrets.into_iter()).unwrap()
    }

    fn capture(head: &str, tail: &str, omitted: u64) -> Captured {
        let mut captured = Captured::default();
        captured.head = Bytes::copy_from_slice(head.as_bytes());
        captured.tail = Bytes::copy_from_slice(tail.as_bytes());
        captured.total_bytes = (head.len() + tail.len()) as u64 + omitted;
        captured.omitted_bytes = omitted;
        captured
    }

    #[track_caller]
    fn check(head: &str, tail: &str, omitted: u64, expected: &str) {
        let printed = capture(head, tail, omitted);
        let redacted = redactor().redact_text(&printed);
        assert_eq!(redacted.total_bytes, printed.total_bytes);
        assert_eq!(redacted.omitted_bytes, omitted);
        let (head, tail) = (&redacted.head, &redacted.tail);
        let seen = [&head[..], b"|", &tail[..]].concat();
        assert_eq!(String::from_utf8(seen).unwrap(), expected);
    }

    #[test]
    fn secret_is_replaced_by_its_name() {
        check("a s3cr\"et-key b", "", 0, "a [redacted KEY] b|");
        check("123456123456", "", 0, "[redacted PIN][redacted PIN]|");
        check("12345 s3cret", "", 0, "12345 s3cret|");
    }

    #[test]
    fn secret_is_found_in_terminal_output() {
        let mut printed = capture("123\x1b[0m456", "", 0);
        printed.terminal = Some(Box::new(capture("123456", "", 0)));
        for redacted in [
            redactor().redact_text(&printed),
            redactor().redact_json(&printed),
        ] {
            assert_eq!(redacted.terminal_view().head, "[redacted PIN]");
        }
    }

    #[test]
    fn secret_is_found_inside_json_and_line_by_line() {
        check(
            r#"{"k":"s3cr\"et-key"}"#,
            "",
            0,
            r#"{"k":"[redacted KEY]"}|"#,
        );
        check("> abcdefgh", "", 0, "> [redacted PEM]|");
    }

    #[test]
    fn secret_is_found_in_escapes_of_common_libraries() {
        let secrets = [("PATH", "key/ä&𝄞/end")];
        let redactor = Redactor::new(secrets.into_iter()).unwrap();
        for text in [
            r"key\/ä&𝄞\/end",
            r"key/\u00e4&\ud834\udd1e/end",
            r"key\/\u00e4&\ud834\udd1e\/end",
            r"key/\u00E4&\uD834\uDD1E/end",
            r"key/ä\u0026𝄞/end",
            r"key/\u00E4\u0026\uD834\uDD1E/end",
        ] {
            let redacted = redactor.redact_text(&capture(text, "", 0));
            assert_eq!(redacted.head, "[redacted PATH]", "{text}");
        }
    }

    #[test]
    fn secret_is_found_in_part_at_a_cut() {
        check("x 1234", "3456 y", 10, "x [redacted PIN]|[redacted PIN] y");
        check("x 123", "456 y", 10, "x 123|456 y");
        check("x 123", "456 y", 0, "x [redacted PIN] y|");
    }

    #[track_caller]
    fn check_overlapping(text: &str, cut_end: bool, expected: &str) {
        let secrets = [
            ("ABC", "abcdefgh"),
            ("BCD", "efghijkl"),
            ("CDE", "ijklmnop"),
            ("MID", "cdefgh"),
            ("RUN", "xxxxxx"),
        ];
        let redactor = Redactor::new(secrets.into_iter()).unwrap();
        let redacted = redactor.redact_piece(text.as_bytes(), false, cut_end);
        assert_eq!(String::from_utf8_lossy(&redacted), expected);
    }

    #[test]
    fn overlapping_secrets_are_redacted_completely() {
        let check = |text, expected| check_overlapping(text, false, expected);
        check("> abcdefghijkl <", "> [redacted ABC][redacted BCD] <");
        // A match within others is covered by them.
        check("> abcdefgh <", "> [redacted ABC] <");
        check("> abcdefghijklmnop <", "> [redacted ABC][redacted CDE] <");
        check("xxxxxxxxxxxx", "[redacted RUN][redacted RUN]");
        check("xxxxxxxxx-xx", "[redacted RUN][redacted RUN]-xx");
    }

    #[test]
    fn overlapping_secrets_are_redacted_at_a_cut() {
        check_overlapping("> abcdefghij", true, "> [redacted ABC][redacted BCD]");
        check_overlapping("> abcdefghij", false, "> [redacted ABC]ij");
        check_overlapping("> abcdefgh", true, "> [redacted ABC]");
    }

    #[track_caller]
    fn check_json(json: &str, expected: &str) {
        let redacted = redactor().redact_json(&capture(json, "", 0));
        assert_eq!(String::from_utf8_lossy(&redacted.head), expected);
    }

    #[test]
    fn redacted_json_stays_json() {
        check_json(
            r#"{"a": "x s3cr\u0022et\u002dkey", "b":123456,"c" : [1.50, true]}"#,
            r#"{"a": "x [redacted KEY]", "b":"[redacted PIN]","c" : [1.50, true]}"#,
        );
        check_json(r#"{"123456": "\\"}"#, r#"{"[redacted PIN]": "\\"}"#);
        check_json(r#"{"a": "123456"#, r#"{"a": "\"[redacted PIN]""#);
    }

    #[test]
    fn redactor_hides_secrets_in_debug() {
        assert_eq!(format!("{:?}", redactor()), "Redactor { .. }");
    }

    #[test]
    fn short_secrets_are_not_redacted() {
        assert!(Redactor::new([("A", "12345"), ("B", "")].into_iter()).is_none());
    }
}
