//! Scanner of TOML that is being typed: what is wrong on one line leaves the others readable.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::outline::{MAX_DEPTH, Outline, Segment, Slot};

/// Scans a document.
pub(crate) fn scan(text: &str, outline: &mut Outline) {
    let mut scanner = Scanner {
        text,
        at: 0,
        table: Vec::new(),
        counts: BTreeMap::new(),
        outline,
    };
    while scanner.at < text.len() {
        scanner.statement();
    }
    let end = text.len();
    if text.is_empty() || text.ends_with('\n') {
        let table = scanner.table.clone();
        scanner.outline.is_statement = true;
        scanner.outline.note_blank(Slot::Key, &table, end..end);
    }
}

struct Scanner<'t, 'o> {
    text: &'t str,
    at: usize,
    /// Path of the table whose keys follow.
    table: Vec<Segment>,
    /// Number of elements so far of each array of tables, by its path.
    counts: BTreeMap<Vec<Segment>, usize>,
    outline: &'o mut Outline,
}

impl<'t> Scanner<'t, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips bytes that `is_skipped`, and returns their range.
    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) -> Range<usize> {
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest.iter().take_while(|byte| is_skipped(**byte)).count();
        self.at += length;
        self.at - length..self.at
    }

    fn skip_blanks(&mut self) -> Range<usize> {
        self.skip(|byte| matches!(byte, b' ' | b'\t'))
    }

    /// Skips the rest of the line and its end.
    fn skip_line(&mut self) {
        let comment = self.skip(|byte| byte != b'\n');
        let start = self.text[comment.clone()]
            .find('#')
            .map(|mark| comment.start + mark);
        if let Some(start) = start {
            self.outline.exclude(start..comment.end);
        }
        self.at = (self.at + 1).min(self.text.len());
    }

    /// Reads a line: a table's name, or a key with its value.
    fn statement(&mut self) {
        self.outline.is_statement = true;
        let blank = self.skip_blanks();
        if self.peek() == Some(b'[') {
            self.header();
        } else {
            let table = self.table.clone();
            self.outline.note_blank(Slot::Key, &table, blank);
            if !matches!(self.peek(), Some(b'#' | b'\n' | b'\r') | None) {
                self.member(&table, 0);
            }
        }
        self.skip_line();
    }

    /// Reads `[name]` or `[[name]]`.
    fn header(&mut self) {
        let brackets = self.skip(|byte| byte == b'[').len();
        let blank = self.skip_blanks();
        self.outline.note_blank(Slot::Table, &[], blank);
        let mut path = Vec::new();
        self.dotted_key(&mut path, Slot::Table);
        self.skip_blanks();
        self.skip(|byte| byte == b']');
        if brackets > 1 {
            let count = self.counts.entry(path.clone()).or_default();
            path.push(Segment::Index(*count));
            *count += 1;
        }
        self.table = path;
    }

    /// Reads the parts of a key between dots, and adds them to the path of the object.
    fn dotted_key(&mut self, path: &mut Vec<Segment>, slot: Slot) {
        loop {
            let Some((token, is_quoted)) = self.key_token() else {
                let blank = self.skip_blanks();
                self.outline.note_blank(slot, path, blank);
                return;
            };
            let key = self.text[token.clone()].to_owned();
            self.outline.note(slot, path, token.clone(), is_quoted);
            self.outline.add_key(path, &key, token);
            path.push(Segment::Key(key));
            // Below an array of tables, a name means its last element.
            if slot == Slot::Table
                && let Some(count) = self.counts.get(path)
                && self.peek() == Some(b'.')
            {
                path.push(Segment::Index(count - 1));
            }
            let after = self.at;
            self.skip_blanks();
            if self.peek() != Some(b'.') {
                self.at = after;
                return;
            }
            self.at += 1;
            self.skip_blanks();
        }
    }

    /// Reads one part of a key, and returns it without quotes.
    fn key_token(&mut self) -> Option<(Range<usize>, bool)> {
        match self.peek()? {
            quote @ (b'"' | b'\'') => Some((self.line_string(quote), true)),
            _ => {
                let token = self.skip(|byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || byte >= 0x80
                });
                (!token.is_empty()).then_some((token, false))
            }
        }
    }

    /// Reads a string that ends on its line, closed or not, and returns its content.
    fn line_string(&mut self, quote: u8) -> Range<usize> {
        self.at += 1;
        let start = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' | b'\r' => break,
                b'\\' if quote == b'"' => self.at += 1,
                _ if byte == quote => {
                    self.at += 1;
                    return start..self.at - 1;
                }
                _ => {}
            }
            self.at = (self.at + 1).min(self.text.len());
        }
        start..self.at
    }

    /// Reads a key and its value, of the object at `path`.
    fn member(&mut self, path: &[Segment], depth: usize) {
        let mut path = path.to_vec();
        let before = self.at;
        self.dotted_key(&mut path, Slot::Key);
        self.skip_blanks();
        if self.peek() == Some(b'=') {
            self.at += 1;
            self.outline.is_statement = false;
            let blank = self.skip_blanks();
            self.outline.note_blank(Slot::Value, &path, blank);
            self.value(&path, depth);
        } else if self.at == before {
            // No key begins with this character.
            self.at += self.text[self.at..]
                .chars()
                .next()
                .map_or(0, char::len_utf8);
        }
    }

    fn value(&mut self, path: &[Segment], depth: usize) {
        let rest = &self.text[self.at..];
        let multi_line = ["\"\"\"", "'''"]
            .into_iter()
            .find(|quotes| rest.starts_with(quotes));
        match self.peek() {
            _ if multi_line.is_some() => {
                let quotes = multi_line.unwrap_or_default();
                let end = rest[3..].find(quotes).map_or(rest.len(), |end| end + 6);
                let is_closed = end > 6 || rest[3..].starts_with(quotes);
                let content = if is_closed { end - 3 } else { end };
                let start = self.at + 3;
                self.outline
                    .note(Slot::Value, path, start..self.at + content.max(3), true);
                self.at += end;
            }
            Some(quote @ (b'"' | b'\'')) => {
                let token = self.line_string(quote);
                self.outline.note(Slot::Value, path, token, true);
            }
            Some(b'[') if depth < MAX_DEPTH => self.array(path, depth),
            Some(b'{') if depth < MAX_DEPTH => self.inline_table(path, depth),
            _ => {
                let token =
                    self.skip(|byte| !matches!(byte, b',' | b']' | b'}' | b'#' | b'\n' | b'\r'));
                let length = self.text[token.clone()].trim_end().len();
                self.outline
                    .note(Slot::Value, path, token.start..token.start + length, false);
            }
        }
    }

    /// Skips blanks, lines and comments within a value.
    fn skip_inside(&mut self, slot: Slot, path: &[Segment]) {
        loop {
            let blank = self.skip(|byte| byte.is_ascii_whitespace());
            self.outline.note_blank(slot, path, blank);
            if self.peek() != Some(b'#') {
                return;
            }
            let comment = self.skip(|byte| byte != b'\n');
            self.outline.exclude(comment);
        }
    }

    fn array(&mut self, path: &[Segment], depth: usize) {
        self.at += 1;
        for index in 0.. {
            let mut element = path.to_vec();
            element.push(Segment::Index(index));
            self.skip_inside(Slot::Value, &element);
            if self.is_closed(b']') {
                return;
            }
            self.value(&element, depth + 1);
            self.skip_inside(Slot::Value, &element);
            if self.peek() == Some(b',') {
                self.at += 1;
            } else {
                self.is_closed(b']');
                return;
            }
        }
    }

    fn inline_table(&mut self, path: &[Segment], depth: usize) {
        self.at += 1;
        loop {
            self.skip_inside(Slot::Key, path);
            if self.is_closed(b'}') {
                return;
            }
            self.member(path, depth + 1);
            self.skip_inside(Slot::Key, path);
            if self.peek() == Some(b',') {
                self.at += 1;
            } else {
                self.is_closed(b'}');
                return;
            }
        }
    }

    /// Returns whether a value ends here: at this bracket, which is skipped, or with the text.
    fn is_closed(&mut self, bracket: u8) -> bool {
        match self.peek() {
            Some(byte) if byte == bracket => {
                self.at += 1;
                true
            }
            next => next.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outline::Format;

    /// Checks what is at `|` in a text: slot, path and token.
    #[track_caller]
    fn check(text: &str, expected: Option<(Slot, &str, &str)>) {
        let at = text.find('|').expect("a cursor");
        let text = text.replacen('|', "", 1);
        let outline = Outline::of(Format::Toml, &text, at);
        let found = outline.cursor.map(|cursor| {
            let parts = cursor.path.iter().map(|segment| match segment {
                Segment::Key(key) => key.clone(),
                Segment::Index(index) => index.to_string(),
            });
            let path = parts.collect::<Vec<_>>().join("/");
            (cursor.slot, path, text[cursor.token].to_owned())
        });
        let expected =
            expected.map(|(slot, path, token)| (slot, path.to_owned(), token.to_owned()));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn keys_are_found_while_they_are_typed() {
        for (text, path, token) in [
            ("|", "", ""),
            ("a = 1\n|", "", ""),
            ("de|", "", "de"),
            ("de|\nb = 1", "", "de"),
            ("\"de|\" = 1", "", "de"),
            ("[options.n]\n  re|q", "options/n", "req"),
            ("[[tool]]\na = 1\n[[tool]]\n|\n", "tool/1", ""),
            ("[[tool]]\n[tool.env]\nx|", "tool/0/env", "x"),
            ("options.n.r|", "options/n", "r"),
            ("value_type = { e|", "value_type", "e"),
            ("a = [\n  # note\n  { b| = 1 } ]", "a/0", "b"),
            ("a = 'open\nb|", "", "b"),
            ("? = 3\nb|", "", "b"),
            ("[options\nb|", "options", "b"),
        ] {
            check(text, Some((Slot::Key, path, token)));
        }
    }

    #[test]
    fn values_and_tables_are_found() {
        for (text, slot, path, token) in [
            ("a = |", Slot::Value, "a", ""),
            ("a = tr|", Slot::Value, "a", "tr"),
            ("a = \"x|", Slot::Value, "a", "x"),
            ("a = [\"x\", |]", Slot::Value, "a/1", ""),
            ("a = [\"x\",\n \"y|\"", Slot::Value, "a/1", "y"),
            ("a = '''\nb = 1\n|c'''", Slot::Value, "a", "\nb = 1\nc"),
            ("[o|]", Slot::Table, "", "o"),
            ("[options.|]", Slot::Table, "options", ""),
            ("[[t|", Slot::Table, "", "t"),
        ] {
            check(text, Some((slot, path, token)));
        }
    }

    #[test]
    fn comments_are_no_place_for_either() {
        for text in ["# a|", "a = 1 # |b", "a = [ # |\n]"] {
            check(text, None);
        }
    }

    #[test]
    fn broken_text_ends() {
        let deep = "a = ".to_owned() + &"[".repeat(100_000);
        for text in [
            "=", "[", "[[", "]", "a.", "a = {", "a = {,", "a = [,]", "\"", "a = \"\\", "é = ü",
            &deep,
        ] {
            drop(Outline::of(Format::Toml, text, text.len()));
        }
    }
}
