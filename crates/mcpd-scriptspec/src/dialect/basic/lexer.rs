//! Lexer of one line of BASIC: tokens with their places in the whole source.

use crate::{dialect::draft::Node, json::Span};

/// A word, a value or a symbol.
#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind<'a> {
    Word(&'a str),
    String(String),
    /// A number in JSON format.
    Number(String),
    Symbol(&'a str),
    /// A text without its closing quote.
    Unclosed,
    /// The end of the line, or a comment.
    End,
}

impl TokenKind<'_> {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("`{word}`"),
            Self::String(_) => "a text".to_owned(),
            Self::Number(number) => format!("the number {number}"),
            Self::Symbol(symbol) => format!("`{symbol}`"),
            Self::Unclosed => "an open text".to_owned(),
            Self::End => "the end of the line".to_owned(),
        }
    }
}

impl Token<'_> {
    /// Returns whether the token is this keyword, in any case.
    pub(super) fn is_word(&self, keyword: &str) -> bool {
        matches!(self.kind, TokenKind::Word(word) if word.eq_ignore_ascii_case(keyword))
    }
}

/// Iterator over the tokens of a line; after the last one it yields [`TokenKind::End`] for ever.
#[derive(Debug, Clone)]
pub(super) struct Tokens<'a> {
    source: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Tokens<'a> {
    /// Creates the tokens of the line at byte `start`.
    pub(super) fn of_line(source: &'a str, start: usize) -> Self {
        let end = source[start..]
            .find('\n')
            .map_or(source.len(), |length| start + length);
        Self {
            source,
            at: start,
            end,
        }
    }

    pub(super) fn peek(&self) -> Token<'a> {
        self.clone().next()
    }

    pub(super) fn source(&self) -> &'a str {
        self.source
    }

    /// Takes the rest of the line as one text.
    pub(super) fn rest_as_text(&mut self) -> Node {
        let span = self.peek().span.start..self.end;
        self.at = self.end;
        let text = self.source[span.clone()].trim_end();
        Node::string(span.start..span.start + text.len(), text)
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let rest = &self.source[self.at..self.end];
        let text = rest.trim_start_matches(is_blank);
        let start = self.end - text.len();
        let (kind, length) = kind(text);
        self.at = start + length;
        let mut span = start..self.at;
        if span.is_empty() {
            // A fault at the end of a line is marked at its last character, so
            // that its place is visible.
            let before = self.source[..start].trim_end_matches(is_blank);
            let last = before.chars().next_back().map_or(0, char::len_utf8);
            span = before.len() - last..before.len();
        }
        Token { kind, span }
    }
}

/// Returns whether a character is blank; some editors start files with a byte order mark.
fn is_blank(char: char) -> bool {
    char.is_whitespace() || char == '\u{feff}'
}

/// The first token of a text, and its length in bytes.
fn kind(text: &str) -> (TokenKind<'_>, usize) {
    let Some(first) = text.chars().next() else {
        return (TokenKind::End, 0);
    };
    match first {
        '\'' | '#' => (TokenKind::End, 0),
        '/' if text.starts_with("//") => (TokenKind::End, 0),
        '"' => string(text),
        '-' | '0'..='9' => number(text),
        _ if first.is_alphabetic() || first == '_' => {
            let is_part = |char: char| char.is_alphanumeric() || char == '_';
            let length = text.find(|char| !is_part(char)).unwrap_or(text.len());
            match &text[..length] {
                word if word.eq_ignore_ascii_case("rem") => (TokenKind::End, 0),
                // The suffix `$` marks a text variable, and has no meaning here.
                word if text[length..].starts_with('$') => (TokenKind::Word(word), length + 1),
                word => (TokenKind::Word(word), length),
            }
        }
        _ => (
            TokenKind::Symbol(&text[..first.len_utf8()]),
            first.len_utf8(),
        ),
    }
}

/// Parses a text; a quote in it is written twice.
fn string(text: &str) -> (TokenKind<'_>, usize) {
    let mut content = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((place, char)) = chars.next() {
        if char != '"' {
            content.push(char);
        } else if chars.next_if(|(_, next)| *next == '"').is_some() {
            content.push('"');
        } else {
            return (TokenKind::String(content), place + 1);
        }
    }
    (TokenKind::Unclosed, text.len())
}

fn number(text: &str) -> (TokenKind<'_>, usize) {
    let sign = usize::from(text.starts_with('-'));
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(&text[sign..]);
    if whole == 0 {
        return (TokenKind::Symbol(&text[..1]), 1);
    }
    let mut length = sign + whole;
    if text[length..].starts_with('.') {
        let fraction = digits(&text[length + 1..]);
        length += if fraction > 0 { 1 + fraction } else { 0 };
    }
    // JSON has no leading zeros.
    let unsigned = text[sign..length].trim_start_matches('0');
    let zero = if unsigned.is_empty() || unsigned.starts_with('.') {
        "0"
    } else {
        ""
    };
    let number = format!("{}{zero}{unsigned}", &text[..sign]);
    (TokenKind::Number(number), length)
}
