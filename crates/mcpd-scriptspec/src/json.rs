//! A strict JSON reader that keeps byte spans, number text and duplicate keys.
//!
//! One reader serves both the help of a script and the arguments of a call, so both are seen the same way.
//! It builds no tree: [`read`] checks a document once, and a [`Value`] then splits itself on demand.

use std::{borrow::Cow, collections::BTreeSet, ops::Range};

use crate::{decimal, text::excerpt};

/// Byte range in the text that was read.
pub(crate) type Span = Range<usize>;

/// Arrays and objects inside each other; deeper documents are refused.
const MAX_DEPTH: usize = 128;

/// A document that was read to its end and found well-formed.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub(crate) root: Value<'a>,
    /// Every key that its object already has, at any depth.
    pub(crate) duplicates: Vec<Duplicate<'a>>,
}

/// A key that its object already has.
#[derive(Debug)]
pub(crate) struct Duplicate<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) span: Span,
}

/// Why a text is not one JSON value, and where.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) kind: SyntaxErrorKind,
    pub(crate) span: Span,
    /// A fragment that says what stands at `span` and what should.
    pub(crate) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyntaxErrorKind {
    Grammar,
    TooDeep,
    /// A whole value was read and something follows it.
    Trailing,
}

/// The six kinds of JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    /// With its article, for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Null => "`null`",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// One well-formed value of a document: its text and where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'a> {
    text: &'a str,
    start: usize,
}

/// One key of an object with its value.
#[derive(Debug, Clone)]
pub(crate) struct Member<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) key_span: Span,
    pub(crate) value: Value<'a>,
}

/// Reads the one JSON value in `text` from byte `start` on; spans count from the beginning of `text`.
pub(crate) fn read(text: &str, start: usize) -> Result<Document<'_>, SyntaxError> {
    let mut reader = Reader {
        text,
        at: start,
        depth: 0,
        duplicates: Vec::new(),
    };
    reader.skip_whitespace();
    let start = reader.at;
    reader.value()?;
    let root = Value {
        text: &text[start..reader.at],
        start,
    };
    reader.skip_whitespace();
    if reader.at < text.len() {
        return Err(SyntaxError {
            kind: SyntaxErrorKind::Trailing,
            span: reader.at..text.trim_end().len().max(reader.at + 1),
            message: format!("{} after the end of the JSON value", reader.found()),
        });
    }
    Ok(Document {
        root,
        duplicates: reader.duplicates,
    })
}

impl<'a> Value<'a> {
    pub(crate) fn span(&self) -> Span {
        self.start..self.start + self.text.len()
    }

    /// The value exactly as it was written.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.text.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// The characters of a string; `None` for every other kind.
    pub(crate) fn string(&self) -> Option<Cow<'a, str>> {
        (self.kind() == Kind::String).then(|| unescape(self.text))
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        (self.kind() == Kind::Boolean).then(|| self.text == "true")
    }

    /// The members of an object in their order; none for every other kind.
    pub(crate) fn members(&self) -> impl Iterator<Item = Member<'a>> + use<'a> {
        let mut parts = self.parts(Kind::Object);
        std::iter::from_fn(move || {
            let key = parts.next()?;
            let value = parts.next()?;
            Some(Member {
                key: unescape(key.text),
                key_span: key.span(),
                value,
            })
        })
    }

    /// The elements of an array in their order; none for every other kind.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Self> + use<'a> {
        self.parts(Kind::Array)
    }

    /// The text without insignificant whitespace, which makes it one line.
    pub(crate) fn compact(&self) -> Cow<'a, str> {
        if !self.text.bytes().any(is_whitespace) {
            return Cow::Borrowed(self.text);
        }
        let bytes = self.text.as_bytes();
        let mut compact = String::with_capacity(self.text.len());
        let mut at = 0;
        while at < bytes.len() {
            let end = match bytes[at] {
                b'"' => string_end(bytes, at),
                byte if is_whitespace(byte) => {
                    at += 1;
                    continue;
                }
                _ => at + 1,
            };
            compact.push_str(&self.text[at..end]);
            at = end;
        }
        Cow::Owned(compact)
    }

    /// Everything directly inside the brackets, keys and values alike.
    fn parts(&self, kind: Kind) -> impl Iterator<Item = Self> + use<'a> {
        let value = *self;
        let bytes = value.text.as_bytes();
        let mut at = if value.kind() == kind { 1 } else { bytes.len() };
        std::iter::from_fn(move || {
            while bytes
                .get(at)
                .is_some_and(|&byte| is_whitespace(byte) || matches!(byte, b',' | b':'))
            {
                at += 1;
            }
            let start = at;
            // The closing bracket is the last byte.
            if start + 1 >= bytes.len() {
                return None;
            }
            at = value_end(bytes, start);
            Some(Self {
                text: &value.text[start..at],
                start: value.start + start,
            })
        })
    }
}

/// The characters between the quotes of a well-formed string.
fn unescape(quoted: &str) -> Cow<'_, str> {
    let inner = &quoted[1..quoted.len() - 1];
    if inner.contains('\\') {
        Cow::Owned(serde_json::from_str(quoted).expect("a string that was read can be decoded"))
    } else {
        Cow::Borrowed(inner)
    }
}

/// Where the well-formed string that starts at `start` ends.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// Where the well-formed value that starts at `start` ends.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    let mut depth = 0_usize;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => depth -= 1,
            b',' | b':' if depth == 0 => return at,
            byte if depth == 0 && is_whitespace(byte) => return at,
            _ => {}
        }
        at += 1;
        if depth == 0 && matches!(bytes[at - 1], b'"' | b'}' | b']') {
            return at;
        }
    }
    at
}

fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Walks a document once and checks all of it.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    duplicates: Vec<Duplicate<'a>>,
}

impl<'a> Reader<'a> {
    fn value(&mut self) -> Result<(), SyntaxError> {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.literal(),
        }
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<(), SyntaxError>,
    ) -> Result<(), SyntaxError> {
        if self.depth == MAX_DEPTH {
            return Err(SyntaxError {
                kind: SyntaxErrorKind::TooDeep,
                span: self.at..self.at + 1,
                message: format!("more than {MAX_DEPTH} arrays and objects inside each other"),
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
                return Err(self.unexpected("a key in double quotes"));
            }
            self.string()?;
            let span = start..self.at;
            let key = unescape(&self.text[span.clone()]);
            if !keys.insert(key.clone()) {
                self.duplicates.push(Duplicate { key, span });
            }
            self.skip_whitespace();
            if !self.eat(b':') {
                return Err(self.unexpected("`:` after the key"));
            }
            self.skip_whitespace();
            self.value()?;
            if self.closes(b'}')? {
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
            if self.closes(b']')? {
                return Ok(());
            }
        }
    }

    /// Reads what follows a member or an element: the closing bracket, or a comma with something after it.
    fn closes(&mut self, bracket: u8) -> Result<bool, SyntaxError> {
        self.skip_whitespace();
        if self.eat(bracket) {
            return Ok(true);
        }
        let comma = self.at;
        if !self.eat(b',') {
            return Err(self.unexpected(&format!("`,` or `{}`", char::from(bracket))));
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
            match self.peek() {
                None => {
                    let message = "a string without its closing quote".to_owned();
                    return Err(Self::grammar(start..self.at, message));
                }
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(byte @ 0..=0x1f) => {
                    let message =
                        format!("a raw control character in a string, write it as `\\u{byte:04x}`");
                    return Err(Self::grammar(self.at..self.at + 1, message));
                }
                Some(_) => self.at += 1,
            }
        }
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
                return Err(self.unexpected("one of `\"\\/bfnrtu` after a backslash"));
            }
        }
        let lone = |end| {
            let message = "half of a surrogate pair, which is no character".to_owned();
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
                let message = format!("`{}` is no JSON number", &self.text[token.clone()]);
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
            "" if self.peek() == Some(b'\'') => "strings are written in double quotes".to_owned(),
            "" => return Err(self.unexpected("a JSON value")),
            "True" => "`True` is written `true` in JSON".to_owned(),
            "False" => "`False` is written `false` in JSON".to_owned(),
            "None" => "`None` is written `null` in JSON".to_owned(),
            word => format!("expected a JSON value, found `{}`", excerpt(word, 20)),
        };
        let span = if token.is_empty() {
            token.start..token.start + 1
        } else {
            token
        };
        Err(Self::grammar(span, message))
    }

    /// Where the run of letters, digits and number signs that starts at `start` ends.
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

    /// Names what stands at the current place.
    fn found(&self) -> String {
        match self.text[self.at..].chars().next() {
            Some(char) => format!("`{}`", excerpt(char.encode_utf8(&mut [0; 4]), 1)),
            None => "the end of the text".to_owned(),
        }
    }

    fn unexpected(&self, expected: &str) -> SyntaxError {
        let message = format!("expected {expected}, found {}", self.found());
        let span = match self.text[self.at..].chars().next() {
            Some(char) => self.at..self.at + char.len_utf8(),
            // Not past the line end that most outputs close with.
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
