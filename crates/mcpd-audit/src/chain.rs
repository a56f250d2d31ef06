//! Tamper-evident hash chain of the records: each contains the hash of the one before, so that a
//! record that is changed, removed or moved later is detected.

use std::fmt::Write as _;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// Previous hash of the very first record.
const FIRST_PREV_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

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
        lines.push_str(&end(&self.hash));
        lines.push('\n');
    }
}

/// Position in the chain that a line claims.
#[derive(Debug, Deserialize)]
pub(crate) struct ChainPosition {
    pub(crate) seq: u64,
    pub(crate) prev: String,
    pub(crate) hash: String,
    /// The hash matches the content of the line.
    #[serde(skip)]
    pub(crate) is_intact: bool,
}

impl ChainPosition {
    /// Reads a line; `None` if it is not a record.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let place: Option<Self> = serde_json::from_str(line).ok();
        let mut place = place.filter(|place| place.seq <= MAX_SEQ)?;
        let body = line.strip_suffix(&end(&place.hash))?;
        place.is_intact = hash(body) == place.hash;
        Some(place)
    }

    /// Returns whether the record was written directly after `link`.
    pub(crate) fn follows(&self, link: &Link) -> bool {
        self.seq == link.seq + 1 && self.prev == link.hash
    }

    /// Returns the link that the next record follows.
    pub(crate) fn link(self) -> Link {
        Link {
            seq: self.seq,
            hash: self.hash,
        }
    }
}

/// Returns the end of a line, up to which everything is hashed.
fn end(hash: &str) -> String {
    format!(r#","hash":"{hash}"}}"#)
}

fn hash(body: &str) -> String {
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
    let mut digits = vec![0; FIRST_PREV_HASH.len()];
    for (pair, byte) in digits
        .as_chunks_mut()
        .0
        .iter_mut()
        .zip(Sha256::digest(body))
    {
        *pair = [digit(byte >> 4), digit(byte & 15)];
    }
    String::from_utf8(digits).expect("digits are text")
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
        let place = ChainPosition::read(&damage(line.trim_end()));
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
        let read = |line: &str| ChainPosition::read(line.trim_end()).unwrap();
        assert!(read(&first).follows(&Link::default()));
        assert!(read(&second).follows(&after_first));
        assert!(!read(&second).follows(&Link::default()));
        assert!(!read(&first).follows(&after_first));
        assert_eq!(read(&second).link(), link);
    }

    #[test]
    fn record_is_one_line() {
        let forged = "{\"a\":[1,\n{\"seq\":9}\n]}";
        let line = line(&mut Link::default(), forged);
        assert_eq!(line.lines().count(), 1);
        let place = ChainPosition::read(line.trim_end()).unwrap();
        assert!(place.is_intact && place.follows(&Link::default()));
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
