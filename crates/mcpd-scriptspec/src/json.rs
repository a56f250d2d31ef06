//! Strict JSON parser that keeps byte spans, number text and duplicate keys.
//!
//! One parser serves both the help of a script and the arguments of a call, so both obey
//! the same rules. It builds no tree: [`read`] checks a document once, and a [`Value`]
//! then splits itself on demand.

use std::{borrow::Cow, ops::Range};

use memchr::{memchr, memchr2};
use serde_json::value::RawValue;

use reader::Reader;

mod reader;

/// Byte range in the parsed text.
pub(crate) type Span = Range<usize>;

/// A complete and well-formed document.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub(crate) root: Value<'a>,
    /// Members of the root in their order, if it is an object.
    pub(crate) members: Vec<Member<'a>>,
    /// Every duplicate key, at any depth.
    pub(crate) duplicates: Vec<Duplicate<'a>>,
}

/// A duplicate key of an object.
#[derive(Debug)]
pub(crate) struct Duplicate<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) span: Span,
}

/// Syntax error of a text that is not one JSON value, with its place.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) kind: SyntaxErrorKind,
    pub(crate) span: Span,
    /// A fragment with the found and the expected token at `span`.
    pub(crate) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyntaxErrorKind {
    Grammar,
    TooDeep,
    /// Text follows a complete value.
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
    /// Name with its article, for messages.
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

/// A well-formed value of a document: its text and its place.
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

/// Parses the one JSON value in `text` from byte `start` on; spans count
/// from the beginning of `text`.
pub(crate) fn read(text: &str, start: usize) -> Result<Document<'_>, SyntaxError> {
    read_by(Reader::document, text, start)
}

/// Parses the JSON value at byte `start` of `text`, and ignores the text after it.
pub(crate) fn read_first(text: &str, start: usize) -> Result<Document<'_>, SyntaxError> {
    read_by(Reader::first, text, start)
}

fn read_by<'a>(
    read: impl FnOnce(&mut Reader<'a>) -> Result<Span, SyntaxError>,
    text: &'a str,
    start: usize,
) -> Result<Document<'a>, SyntaxError> {
    let mut reader = Reader::new(text, start);
    let span = read(&mut reader)?;
    let root = Value {
        text: &text[span.clone()],
        start: span.start,
    };
    Ok(Document {
        root,
        members: reader.members,
        duplicates: reader.duplicates,
    })
}

impl<'a> Value<'a> {
    pub(crate) fn span(&self) -> Span {
        self.start..self.start + self.text.len()
    }

    /// The value exactly as written.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// The value as raw JSON for serde.
    pub(crate) fn raw(&self) -> &'a RawValue {
        serde_json::from_str(self.text).expect("a value that was read is JSON")
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

    /// The text without insignificant whitespace, on one line.
    pub(crate) fn compact(&self) -> Cow<'a, str> {
        // White space in a string is significant.
        if self.kind() == Kind::String || !self.text.bytes().any(is_whitespace) {
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

    /// All values directly inside the brackets, keys included.
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

/// Unescapes the characters between the quotes of a well-formed string.
fn unescape(quoted: &str) -> Cow<'_, str> {
    let inner = &quoted[1..quoted.len() - 1];
    if memchr(b'\\', inner.as_bytes()).is_some() {
        Cow::Owned(serde_json::from_str(quoted).expect("a string that was read can be decoded"))
    } else {
        Cow::Borrowed(inner)
    }
}

/// Index after the closing quote of the well-formed string at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        at += memchr2(b'"', b'\\', &bytes[at..]).expect("a string that was read has its end");
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
}

/// End of the well-formed value at `start`.
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
