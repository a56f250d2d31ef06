//! Scanner of JSON that is being typed: missing commas, quotes and brackets end no object.

use std::ops::Range;

use crate::outline::{MAX_DEPTH, Outline, Segment, Slot};

/// Scans a document.
pub(crate) fn scan(text: &str, outline: &mut Outline) {
    let start = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut scanner = Scanner {
        text,
        at: start,
        outline,
    };
    scanner.skip_blanks();
    scanner.value(&mut Vec::new(), 0);
}

struct Scanner<'t, 'o> {
    text: &'t str,
    at: usize,
    outline: &'o mut Outline,
}

impl Scanner<'_, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) -> Range<usize> {
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest.iter().take_while(|byte| is_skipped(**byte)).count();
        self.at += length;
        self.at - length..self.at
    }

    fn skip_blanks(&mut self) -> Range<usize> {
        self.skip(|byte| byte.is_ascii_whitespace())
    }

    /// Reads a string, which ends with its line at the latest, and returns its content.
    fn string(&mut self) -> Range<usize> {
        self.at += 1;
        let start = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' | b'\r' => break,
                b'\\' => self.at += 1,
                b'"' => {
                    self.at += 1;
                    return start..self.at - 1;
                }
                _ => {}
            }
            self.at = (self.at + 1).min(self.text.len());
        }
        start..self.at
    }

    fn word(&mut self) -> Range<usize> {
        self.skip(|byte| !byte.is_ascii_whitespace() && !b",:{}[]\"".contains(&byte))
    }

    fn value(&mut self, path: &mut Vec<Segment>, depth: usize) {
        match self.peek() {
            Some(b'{') if depth < MAX_DEPTH => self.object(path, depth),
            Some(b'[') if depth < MAX_DEPTH => self.array(path, depth),
            Some(b'"') => {
                let token = self.string();
                self.outline.note(Slot::Value, path, token, true);
            }
            _ => {
                let token = self.word();
                self.outline.note(Slot::Value, path, token, false);
            }
        }
    }

    fn object(&mut self, path: &mut Vec<Segment>, depth: usize) {
        self.at += 1;
        loop {
            let blank = self.skip(|byte| byte.is_ascii_whitespace() || byte == b',');
            self.outline.note_blank(Slot::Key, path, blank);
            let (token, is_quoted) = match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return;
                }
                None => return,
                Some(b'"') => (self.string(), true),
                Some(_) => (self.word(), false),
            };
            if token.is_empty() && !is_quoted {
                // A bracket or a colon that does not belong here.
                self.at += 1;
                continue;
            }
            let key = self.text[token.clone()].to_owned();
            self.outline.note(Slot::Key, path, token.clone(), is_quoted);
            self.outline.add_key(path, &key, token);
            self.skip_blanks();
            if self.peek() == Some(b':') {
                self.at += 1;
                path.push(Segment::Key(key));
                let blank = self.skip_blanks();
                self.outline.note_blank(Slot::Value, path, blank);
                self.value(path, depth + 1);
                path.pop();
            }
        }
    }

    fn array(&mut self, path: &mut Vec<Segment>, depth: usize) {
        self.at += 1;
        for index in 0.. {
            path.push(Segment::Index(index));
            let blank = self.skip(|byte| byte.is_ascii_whitespace() || byte == b',');
            self.outline.note_blank(Slot::Value, path, blank);
            let before = self.at;
            let is_end = matches!(self.peek(), Some(b']' | b'}') | None);
            if !is_end {
                self.value(path, depth + 1);
            }
            path.pop();
            if is_end {
                self.at += usize::from(self.peek() == Some(b']'));
                return;
            }
            // A colon that does not belong here.
            self.at += usize::from(self.at == before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outline::Format;

    #[track_caller]
    fn check(text: &str, slot: Slot, keys: &[&str], token: &str) {
        let at = text.find('|').expect("a cursor");
        let text = text.replacen('|', "", 1);
        let cursor = Outline::of(Format::Json, &text, at)
            .cursor
            .expect("a token");
        let path = cursor.path.iter().filter_map(|segment| match segment {
            Segment::Key(key) => Some(key.as_str()),
            Segment::Index(_) => None,
        });
        let found = (cursor.slot, path.collect::<Vec<_>>(), &text[cursor.token]);
        assert_eq!(found, (slot, keys.to_vec(), token), "{text}");
    }

    #[test]
    fn token_is_found_while_it_is_typed() {
        check("{|}", Slot::Key, &[], "");
        check("{\"a|\": 1}", Slot::Key, &[], "a");
        check("{\"a\": 1, de|", Slot::Key, &[], "de");
        check("{\"a\": 1\n \"b|\n}", Slot::Key, &[], "b");
        check(
            "{\"a\": {\"b\": [{\"c\": |}]}}",
            Slot::Value,
            &["a", "b", "c"],
            "",
        );
        check("{\"a\": tr|", Slot::Value, &["a"], "tr");
        check("{\"a\": [\"x|\"", Slot::Value, &["a"], "x");
    }

    #[test]
    fn broken_text_ends() {
        for text in [
            "{",
            "{:",
            "{]",
            "[:",
            "[}",
            "{\"a\":}",
            "\"\\",
            "{\"a\" \"b\"",
            &"[".repeat(100_000),
        ] {
            drop(Outline::of(Format::Json, text, text.len()));
        }
    }
}
