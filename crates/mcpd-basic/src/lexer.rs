//! Lexer: source to tokens. The rest of a faulty line is reported and skipped; the following lines
//! are read all the same.

use std::sync::Arc;

use rust_decimal::Decimal;

use crate::error::{Error, Span};
use crate::value::decimal;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    /// Word in lower case and without a `$` at its end.
    Word(Arc<str>),
    Number(Decimal),
    Text(Arc<str>),
    Symbol(&'static str),
    LineEnd,
    /// End of the last line.
    End,
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
}

/// Symbols; those of two characters come first.
const SYMBOLS: [&str; 22] = [
    "<>", "<=", ">=", "<", ">", "=", "+", "-", "*", "/", "^", "&", "(", ")", "[", "]", "{", "}",
    ",", ";", ":", ".",
];

/// Operators of other languages, with advice.
const FOREIGN: [(&str, &str); 4] = [
    ("==", "BASIC compares with `=`"),
    ("!=", "BASIC writes `<>` for that"),
    ("&&", "BASIC writes AND for that"),
    ("||", "BASIC writes OR for that"),
];

/// Splits the source into tokens, the last of which is the end.
pub(crate) fn tokens(source: &str) -> (Vec<Token>, Vec<Error>) {
    let mut lexer = Lexer {
        source,
        position: 0,
        tokens: Vec::new(),
    };
    let mut errors = Vec::new();
    while lexer.position < source.len() {
        if let Err(error) = lexer.line() {
            errors.push(error);
        }
        lexer.skip(|char| char != '\n');
        lexer.token(1, TokenKind::LineEnd);
    }
    lexer.token(0, TokenKind::End);
    (lexer.tokens, errors)
}

struct Lexer<'s> {
    source: &'s str,
    position: usize,
    tokens: Vec<Token>,
}

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        self.source.get(self.position..).unwrap_or_default()
    }

    fn skip(&mut self, unwanted: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.position += rest.len() - rest.trim_start_matches(unwanted).len();
    }

    fn skip_blanks(&mut self) {
        self.skip(|char| char != '\n' && (char.is_whitespace() || char == '\u{feff}'));
    }

    fn token(&mut self, length: usize, kind: TokenKind) {
        let start = self.position;
        self.position = self.source.len().min(start + length);
        self.tokens.push(Token {
            kind,
            span: start..self.position,
        });
    }

    /// Reads the tokens of a line; its end, and a comment before it, are left.
    fn line(&mut self) -> Result<(), Error> {
        self.skip_blanks();
        if self.declaration() {
            return Ok(());
        }
        self.tokens_until(self.source.len())
    }

    /// Reads tokens up to a position or to the end of the line.
    fn tokens_until(&mut self, end: usize) -> Result<(), Error> {
        loop {
            self.skip_blanks();
            let rest = self.rest();
            let Some(first) = rest.chars().next().filter(|_| self.position < end) else {
                return Ok(());
            };
            if matches!(first, '\n' | '\'' | '#') || rest.starts_with("//") {
                return Ok(());
            }
            match first {
                '"' => self.text()?,
                '0'..='9' => self.number()?,
                _ if is_word_start(first) => {
                    if self.word().eq_ignore_ascii_case("rem") && self.is_first_of_its_line() {
                        return Ok(());
                    }
                    self.push_word();
                }
                _ => self.symbol(first)?,
            }
        }
    }

    fn is_first_of_its_line(&self) -> bool {
        self.tokens
            .last()
            .is_none_or(|token| token.kind == TokenKind::LineEnd)
    }

    /// Skips a declaration, if the line has one, except for the name of a PARAM. The rest is read
    /// by another component; a PARAM without a name is read like any other line, to report what
    /// stands in its place.
    fn declaration(&mut self) -> bool {
        let word = self.word();
        let is_parameter = word.eq_ignore_ascii_case("param");
        let after = self.rest().get(word.len()..).unwrap_or_default();
        let after = after.trim_start_matches([' ', '\t']);
        if !(is_parameter || word.eq_ignore_ascii_case("description"))
            || after.starts_with(['=', ':'])
        {
            return false;
        }
        if is_parameter {
            self.push_word();
            self.skip_blanks();
            if self.word().is_empty() {
                return false;
            }
            self.push_word();
        }
        true
    }

    fn word(&self) -> &'s str {
        let rest = self.rest();
        if !rest.starts_with(is_word_start) {
            return "";
        }
        let length = rest
            .find(|char: char| !char.is_alphanumeric() && char != '_')
            .unwrap_or(rest.len());
        let length = length + usize::from(rest.get(length..).is_some_and(|r| r.starts_with('$')));
        rest.get(..length).unwrap_or_default()
    }

    fn push_word(&mut self) {
        let word = self.word();
        let name = word.trim_end_matches('$').to_lowercase();
        self.token(word.len(), TokenKind::Word(name.into()));
    }

    fn number(&mut self) -> Result<(), Error> {
        let rest = self.rest();
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let mut length = digits(rest);
        if let Some(fraction) = rest.get(length..).and_then(|rest| rest.strip_prefix('.')) {
            length += 1 + digits(fraction);
        }
        let text = rest.get(..length).unwrap_or_default();
        let span = self.position..self.position + length;
        let number = decimal(text).map_err(|error| error.at(&span))?;
        self.token(length, TokenKind::Number(number));
        Ok(())
    }

    /// Reads a text. A quote within a text is doubled.
    fn text(&mut self) -> Result<(), Error> {
        let line = self.rest().lines().next().unwrap_or_default();
        let mut text = String::new();
        let mut length = 1;
        loop {
            let after = line.get(length..).unwrap_or_default();
            let Some((part, after)) = after.split_once('"') else {
                return Err(Error::new("unclosed string")
                    .help("a string ends with `\"` on the same line; write `\"\"` for a `\"` inside of it")
                    .at(&(self.position..self.position + line.len())));
            };
            text.push_str(part);
            length += part.len() + 1;
            if !after.starts_with('"') {
                let end = self.position + length;
                return match line.get(1..length).and_then(Placeholder::find) {
                    Some(placeholder) => self.template(placeholder, end),
                    None => {
                        self.token(length, TokenKind::Text(text.into()));
                        Ok(())
                    }
                };
            }
            text.push('"');
            length += 1;
        }
    }

    /// Reads a text with placeholders `${…}`, as the tokens of the concatenation it stands for:
    /// `"Hi ${name}!"` is `("Hi " & (name) & "!")`.
    fn template(&mut self, first: Placeholder, end: usize) -> Result<(), Error> {
        self.token(1, TokenKind::Symbol("("));
        let mut next = Some(first);
        while let Some(Placeholder { before, inside }) = next {
            self.text_part(before);
            self.token(2, TokenKind::Symbol("&"));
            self.token(0, TokenKind::Symbol("("));
            let close = self.position + inside;
            self.tokens_until(close)?;
            if self.position != close {
                let span = close - inside..close;
                return Err(Error::new("a `${` must hold an expression up to its `}`").at(&span));
            }
            self.token(1, TokenKind::Symbol(")"));
            self.token(0, TokenKind::Symbol("&"));
            let rest = self.source.get(self.position..end).unwrap_or_default();
            next = Placeholder::find(rest);
        }
        self.text_part(end - self.position - 1);
        self.token(1, TokenKind::Symbol(")"));
        Ok(())
    }

    /// Reads the next bytes as a text.
    fn text_part(&mut self, length: usize) {
        let part = self.rest().get(..length).unwrap_or_default();
        let text = part.replace("\"\"", "\"");
        self.token(length, TokenKind::Text(text.into()));
    }

    fn symbol(&mut self, first: char) -> Result<(), Error> {
        let rest = self.rest();
        if let Some((foreign, help)) = FOREIGN.iter().find(|(word, _)| rest.starts_with(word)) {
            let span = self.position..self.position + foreign.len();
            return Err(Error::new(format!("BASIC has no `{foreign}`"))
                .help(*help)
                .at(&span));
        }
        let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) else {
            let span = self.position..self.position + first.len_utf8();
            let char = first.escape_debug();
            return Err(Error::new(format!("unexpected `{char}`")).at(&span));
        };
        self.token(symbol.len(), TokenKind::Symbol(symbol));
        Ok(())
    }
}

/// Placeholder `${…}` ahead: the number of bytes before it and inside.
struct Placeholder {
    before: usize,
    inside: usize,
}

impl Placeholder {
    /// Finds the first placeholder that is closed; any other `${` is text.
    fn find(text: &str) -> Option<Self> {
        let before = text.find("${")?;
        let inside = text.get(before + 2..)?.find('}')?;
        Some(Self { before, inside })
    }
}

fn is_word_start(char: char) -> bool {
    char.is_alphabetic() || char == '_'
}
