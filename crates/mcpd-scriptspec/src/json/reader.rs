//! JSON validator: reads a text once, and checks grammar, depth and duplicate keys.

use std::collections::BTreeSet;

use memchr::memchr2;

use super::{
    Duplicate, Member, Span, SyntaxError, SyntaxErrorKind, Value, is_whitespace, unescape,
};
use crate::{decimal, text::excerpt};

/// Maximum nesting depth of arrays and objects; deeper documents are rejected.
const MAX_DEPTH: usize = 128;

/// Position in the text, and what was found so far: the members of the outermost object, and
/// duplicate keys.
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    pub(super) members: Vec<Member<'a>>,
    pub(super) duplicates: Vec<Duplicate<'a>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Self {
        Self {
            text,
            at,
            depth: 0,
            members: Vec::new(),
            duplicates: Vec::new(),
        }
    }

    /// Reads one value and nothing after it.
    pub(super) fn document(&mut self) -> Result<Span, SyntaxError> {
        let value = self.first()?;
        self.skip_whitespace();
        if self.at < self.text.len() {
            return Err(SyntaxError {
                kind: SyntaxErrorKind::Trailing,
                span: self.at..self.text.trim_end().len().max(self.at + 1),
                message: format!("{} after the end of the JSON value", self.current_token()),
            });
        }
        Ok(value)
    }

    /// Reads one value, and ignores the text after it.
    pub(super) fn first(&mut self) -> Result<Span, SyntaxError> {
        self.skip_whitespace();
        let start = self.at;
        self.value()?;
        Ok(start..self.at)
    }

    fn value(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            Some(b'{') => self.read_nested(Self::object),
            Some(b'[') => self.read_nested(Self::array),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.literal(),
        }
    }

    fn read_nested(
        &mut self,
        read: fn(&mut Self) -> Result<(), SyntaxError>,
    ) -> Result<(), SyntaxError> {
        if self.depth == MAX_DEPTH {
            return Err(SyntaxError {
                kind: SyntaxErrorKind::TooDeep,
                span: self.at..self.at + 1,
                message: format!("nested more than {MAX_DEPTH} levels deep"),
            });
        }
        self.depth += 1;
        self.at += 1;
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self) -> Result<(), SyntaxError> {
        let mut keys = BTreeSet::new();
        self.skip_whitespace();
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.unexpected_token("a key in double quotes"));
            }
            self.string()?;
            let span = start..self.at;
            let key = unescape(&self.text[span.clone()]);
            if !keys.insert(key.clone()) {
                let (key, span) = (key.clone(), span.clone());
                self.duplicates.push(Duplicate { key, span });
            }
            self.skip_whitespace();
            if !self.eat(b':') {
                return Err(self.unexpected_token("`:` after the key"));
            }
            self.skip_whitespace();
            let start = self.at;
            self.value()?;
            if self.depth == 1 {
                let text = &self.text[start..self.at];
                self.members.push(Member {
                    key,
                    key_span: span,
                    value: Value { text, start },
                });
            }
            if self.eat_closing(b'}')? {
                return Ok(());
            }
        }
    }

    fn array(&mut self) -> Result<(), SyntaxError> {
        self.skip_whitespace();
        if self.eat(b']') {
            return Ok(());
        }
        loop {
            self.value()?;
            if self.eat_closing(b']')? {
                return Ok(());
            }
        }
    }

    /// Reads the end of a member or an element: the closing bracket, or a comma
    /// with another one after it.
    fn eat_closing(&mut self, bracket: u8) -> Result<bool, SyntaxError> {
        self.skip_whitespace();
        if self.eat(bracket) {
            return Ok(true);
        }
        let comma = self.at;
        if !self.eat(b',') {
            return Err(self.unexpected_token(&format!("`,` or `{}`", char::from(bracket))));
        }
        self.skip_whitespace();
        if self.peek() == Some(bracket) {
            let message = format!(
                "a comma with nothing between it and `{}`",
                char::from(bracket)
            );
            return Err(Self::grammar(comma..comma + 1, message));
        }
        Ok(false)
    }

    fn string(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        self.at += 1;
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let len = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            self.reject_control_characters(len)?;
            self.at += len;
            match self.peek() {
                None => {
                    let message = "a string without its closing quote".to_owned();
                    return Err(Self::grammar(start..self.at, message));
                }
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) => self.escape()?,
            }
        }
    }

    /// Checks that none of the next `len` bytes is a raw control character.
    fn reject_control_characters(&self, len: usize) -> Result<(), SyntaxError> {
        let bytes = &self.text.as_bytes()[self.at..self.at + len];
        let is_control = |byte: &u8| *byte <= 0x1f;
        // A loop without an early exit is vectorised; nearly all strings have none.
        if !bytes.iter().fold(false, |any, byte| any | is_control(byte)) {
            return Ok(());
        }
        let offset = bytes.iter().position(is_control).unwrap_or_default();
        let (at, byte) = (self.at + offset, bytes[offset]);
        let message = format!("a raw control character in a string, write it as `\\u{byte:04x}`");
        Err(Self::grammar(at..at + 1, message))
    }

    fn escape(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        match self.text.as_bytes().get(start + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                return Ok(());
            }
            Some(b'u') => {}
            _ => {
                self.at += 1;
                return Err(self.unexpected_token("one of `\"\\/bfnrtu` after a backslash"));
            }
        }
        let lone = |end| {
            let message = "an unpaired surrogate, which is not a character".to_owned();
            Err(Self::grammar(start..end, message))
        };
        match self.code_unit()? {
            0xdc00..=0xdfff => lone(self.at),
            0xd800..=0xdbff => {
                let end = self.at;
                let low = self.text[end..]
                    .starts_with("\\u")
                    .then(|| self.code_unit());
                match low.transpose()? {
                    Some(0xdc00..=0xdfff) => Ok(()),
                    _ => lone(end),
                }
            }
            _ => Ok(()),
        }
    }

    /// Reads one `\uXXXX`.
    fn code_unit(&mut self) -> Result<u32, SyntaxError> {
        let start = self.at;
        let digits = self.text.get(start + 2..start + 6);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(unit) = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) else {
            let message = "`\\u` without four hexadecimal digits".to_owned();
            return Err(Self::grammar(start..start + 2, message));
        };
        self.at += 6;
        Ok(unit)
    }

    fn number(&mut self) -> Result<(), SyntaxError> {
        let start = self.at;
        let token = start..self.word_end(start);
        match decimal::number_len(&self.text[token.clone()]) {
            Some(len) if len == token.len() => {
                self.at = token.end;
                Ok(())
            }
            _ => {
                let message = format!("`{}` is not a JSON number", &self.text[token.clone()]);
                Err(Self::grammar(token, message))
            }
        }
    }

    fn literal(&mut self) -> Result<(), SyntaxError> {
        let token = self.at..self.word_end(self.at);
        let message = match &self.text[token.clone()] {
            "true" | "false" | "null" => {
                self.at = token.end;
                return Ok(());
            }
            "" if self.peek() == Some(b'\'') => "strings need double quotes".to_owned(),
            "" => return Err(self.unexpected_token("a JSON value")),
            "True" => "`True` must be `true` in JSON".to_owned(),
            "False" => "`False` must be `false` in JSON".to_owned(),
            "None" => "`None` must be `null` in JSON".to_owned(),
            word => format!("expected a JSON value, found `{}`", excerpt(word, 20)),
        };
        let span = if token.is_empty() {
            token.start..token.start + 1
        } else {
            token
        };
        Err(Self::grammar(span, message))
    }

    /// End of the run of letters, digits and number signs at `start`.
    fn word_end(&self, start: usize) -> usize {
        let rest = self.text[start..].bytes();
        let is_word =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_');
        start + rest.take_while(is_word).count()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_whitespace(&mut self) {
        while self.peek().is_some_and(is_whitespace) {
            self.at += 1;
        }
    }

    /// Describes the token at the current position.
    fn current_token(&self) -> String {
        match self.text[self.at..].chars().next() {
            Some(char) => format!("`{}`", excerpt(char.encode_utf8(&mut [0; 4]), 1)),
            None => "the end of the text".to_owned(),
        }
    }

    fn unexpected_token(&self, expected: &str) -> SyntaxError {
        let message = format!("expected {expected}, found {}", self.current_token());
        let span = match self.text[self.at..].chars().next() {
            Some(char) => self.at..self.at + char.len_utf8(),
            // An error at the end stands before the final line end, which most outputs have.
            None => self.text.trim_end().len()..self.text.trim_end().len(),
        };
        Self::grammar(span, message)
    }

    fn grammar(span: Span, message: String) -> SyntaxError {
        SyntaxError {
            kind: SyntaxErrorKind::Grammar,
            span,
            message,
        }
    }
}
