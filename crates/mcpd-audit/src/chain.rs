//! Tamper-evident hash chain of the records: each contains the hash of the one before, so that a
//! record that is changed, removed or moved later is detected.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// Previous hash of the very first record.
pub(crate) const FIRST_PREV_HASH: &str =
    "0000000000000000000000000000000000000000000000000000000000000000";

/// Texts before and after the hash at the end of a line. Everything before them is hashed.
const END: [&str; 2] = [r#","hash":""#, r#""}"#];

/// Maximum length of a line that is a record, in bytes. All records are far shorter.
pub(crate) const MAX_LINE_LENGTH: u64 = 1024 * 1024;

/// Maximum length that the chain adds to a record, in bytes.
const MAX_POSITION_LENGTH: usize = 192;

/// Maximum sequence number: every reader of JSON represents it exactly, and no log ever reaches
/// it.
const MAX_SEQ: u64 = 1 << 53;

/// End of a chain, which the next record follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// Sequence number of the last record; 0 if there is none.
    pub(crate) seq: u64,
    /// Hash of that record.
    pub(crate) hash: String,
}

impl Default for Link {
    /// Start of a chain.
    fn default() -> Self {
        Self {
            seq: 0,
            hash: FIRST_PREV_HASH.to_owned(),
        }
    }
}

impl Link {
    /// Appends the line for `record`, a JSON object, to `lines`, and moves the link to it.
    pub(crate) fn append(&mut self, record: &str, lines: &mut String) {
        lines.reserve(record.len() + MAX_POSITION_LENGTH);
        let start = lines.len();
        self.seq += 1;
        let record = record.strip_suffix('}').unwrap_or(record);
        // A record must stay on one line.
        match record.contains('\n') {
            true => lines.push_str(&record.replace('\n', " ")),
            false => lines.push_str(record),
        }
        write!(lines, r#","seq":{},"prev":"{}""#, self.seq, self.hash)
            .expect("a string takes everything");
        self.hash = hash(&lines[start..]);
        let [before, after] = END;
        lines.extend([before, &self.hash, after, "\n"]);
    }
}

/// Position in the chain that a line claims.
#[derive(Debug, Deserialize)]
pub(crate) struct ChainPosition<'a> {
    pub(crate) seq: u64,
    #[serde(borrow)]
    pub(crate) prev: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) hash: Cow<'a, str>,
    /// The hash matches the content of the line.
    #[serde(skip)]
    pub(crate) is_intact: bool,
}

impl<'a> ChainPosition<'a> {
    /// Reads a line; `None` if it is not a record.
    pub(crate) fn read(line: &'a str) -> Option<Self> {
        let place: Option<Self> = serde_json::from_str(line).ok();
        let mut place = place.filter(|place| place.seq <= MAX_SEQ)?;
        let [before, after] = END;
        let body = line.strip_suffix(after)?.strip_suffix(&*place.hash)?;
        let body = body.strip_suffix(before)?;
        place.is_intact = digits(body) == *place.hash.as_bytes();
        Some(place)
    }

    /// Returns whether the record was written directly after the one with this number and hash.
    pub(crate) fn follows(&self, seq: u64, hash: &str) -> bool {
        self.seq == seq + 1 && self.prev == hash
    }

    /// Returns the link that the next record follows.
    pub(crate) fn link(self) -> Link {
        Link {
            seq: self.seq,
            hash: self.hash.into_owned(),
        }
    }
}

fn hash(body: &str) -> String {
    String::from_utf8(digits(body).to_vec()).expect("digits are text")
}

/// Returns the digits of the hash of a text.
fn digits(body: &str) -> [u8; FIRST_PREV_HASH.len()] {
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
    let mut digits = [0; FIRST_PREV_HASH.len()];
    let (pairs, _) = digits.as_chunks_mut();
    for (pair, byte) in pairs.iter_mut().zip(Sha256::digest(body)) {
        *pair = [digit(byte >> 4), digit(byte & 15)];
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the line for `record` after `link`.
    fn line(link: &mut Link, record: &str) -> String {
        let mut lines = String::new();
        link.append(record, &mut lines);
        lines
    }

    /// Checks the reading of a line after `damage` is done to it.
    #[track_caller]
    fn check(damage: impl Fn(&str) -> String, is_intact: Option<bool>) {
        let line = line(&mut Link::default(), r#"{"a":1}"#);
        let damaged = damage(line.trim_end());
        let place = ChainPosition::read(&damaged);
        assert_eq!(place.map(|place| place.is_intact), is_intact);
    }

    #[test]
    fn changed_record_is_detected() {
        check(str::to_owned, Some(true));
        check(|line| line.replace(r#""a":1"#, r#""a":2"#), Some(false));
        check(|line| line.replace(r#""seq":1"#, r#""seq":2"#), Some(false));
        check(|line| line.replace("000", "001"), Some(false));
        check(|line| line.replace(r#"{"a""#, r#"{ "a""#), Some(false));
    }

    #[test]
    fn other_lines_are_not_records() {
        check(|_| String::new(), None);
        check(|line| line[..line.len() - 1].to_owned(), None);
        check(|line| line.replace(r#""a":1"#, r#""seq":7"#), None);
        check(|line| line.replace('}', " }"), None);
        check(|_| "\0\0\0".to_owned(), None);
        let endless = format!(r#""seq":{}"#, u64::MAX);
        check(|line| line.replace(r#""seq":1"#, &endless), None);
    }

    #[test]
    fn record_follows_exactly_one_other() {
        let mut link = Link::default();
        let first = line(&mut link, "{\"a\":1}");
        let after_first = link.clone();
        let second = line(&mut link, "{\"a\":2}");
        let read = |line| ChainPosition::read(str::trim_end(line)).unwrap();
        let first_hash = after_first.hash;
        assert!(read(&first).follows(0, FIRST_PREV_HASH));
        assert!(read(&second).follows(1, &first_hash));
        assert!(!read(&second).follows(0, FIRST_PREV_HASH));
        assert!(!read(&first).follows(1, &first_hash));
        assert_eq!(read(&second).link(), link);
    }

    #[test]
    fn record_is_one_line() {
        let forged = "{\"a\":[1,\n{\"seq\":9}\n]}";
        let line = line(&mut Link::default(), forged);
        assert_eq!(line.lines().count(), 1);
        let place = ChainPosition::read(line.trim_end()).unwrap();
        assert!(place.is_intact && place.follows(0, FIRST_PREV_HASH));
    }

    #[test]
    fn hash_is_reproducible_with_sha256sum() {
        // printf '{"a":1,"seq":1,"prev":"000…"' | sha256sum
        let line = line(&mut Link::default(), r#"{"a":1}"#);
        let expected = "26137300d696d0ede40738c59a9e2053849aa8efc2e5322008d42d4148dd48a4";
        assert!(
            line.ends_with(&format!("\"hash\":\"{expected}\"}}\n")),
            "{line}"
        );
    }
}
