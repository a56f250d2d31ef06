//! Parser of KDL 2: nodes with their places. A faulty node is left out, and parsing
//! continues on the next line.

use crate::json::Span;

/// Maximum nesting depth of nodes.
const MAX_DEPTH: usize = 32;

#[derive(Debug)]
pub(super) struct KdlNode {
    pub(super) name: Text,
    pub(super) arguments: Vec<KdlValue>,
    pub(super) properties: Vec<(Text, KdlValue)>,
    pub(super) children: Vec<Self>,
}

/// A text and its place.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) span: Span,
}

#[derive(Debug, Clone)]
pub(super) struct KdlValue {
    pub(super) kind: ValueKind,
    pub(super) span: Span,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueKind {
    String(String),
    /// A number in decimal digits, without `_`.
    Number(String),
    Boolean(bool),
    Null,
}

#[derive(Debug)]
pub(super) struct KdlError {
    pub(super) span: Span,
    pub(super) message: String,
}

/// Parses all nodes; spans count from the beginning of `text`.
pub(super) fn read(text: &str) -> (Vec<KdlNode>, Vec<KdlError>) {
    let mut reader = KdlReader {
        text,
        at: 0,
        errors: Vec::new(),
        has_given_up: false,
    };
    let mut nodes = reader.nodes(0);
    while reader.at < text.len() {
        let error = reader.error("an unmatched `}`");
        reader.errors.push(error);
        reader.at += 1;
        nodes.extend(reader.nodes(0));
    }
    (nodes, reader.errors)
}

struct KdlReader<'a> {
    text: &'a str,
    at: usize,
    errors: Vec<KdlError>,
    /// Parsing has ended early, so that unclosed nodes at the end are not reported again.
    has_given_up: bool,
}

type Result<T> = std::result::Result<T, KdlError>;

fn error_at(span: Span, message: impl Into<String>) -> KdlError {
    KdlError {
        span,
        message: message.into(),
    }
}

impl<'a> KdlReader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn error(&self, message: impl Into<String>) -> KdlError {
        let length = self.peek().map_or(0, char::len_utf8);
        error_at(self.at..self.at + length, message)
    }

    fn give_up(&mut self) {
        self.at = self.text.len();
        self.has_given_up = true;
    }

    /// Parses the nodes up to the end, or to the `}` of the node around them.
    fn nodes(&mut self, depth: usize) -> Vec<KdlNode> {
        let mut nodes = Vec::new();
        loop {
            if let Err(error) = self.between_nodes() {
                self.errors.push(error);
            }
            if matches!(self.peek(), None | Some('}')) {
                return nodes;
            }
            match self.node(depth) {
                Ok(node) => nodes.extend(node),
                Err(error) => {
                    self.errors.push(error);
                    self.take_while(|char| !is_newline(char));
                }
            }
        }
    }

    fn between_nodes(&mut self) -> Result<()> {
        loop {
            self.take_while(|char| is_newline(char) || is_space(char) || char == ';');
            if !self.comment()? {
                return Ok(());
            }
        }
    }

    /// Skips one comment of any kind.
    fn comment(&mut self) -> Result<bool> {
        if self.rest().starts_with("//") {
            self.take_while(|char| !is_newline(char));
            return Ok(true);
        }
        let start = self.at;
        if !self.eat("/*") {
            return Ok(false);
        }
        let mut open = 1_usize;
        while open > 0 {
            self.take_while(|char| !matches!(char, '/' | '*'));
            if self.eat("/*") {
                open += 1;
            } else if self.eat("*/") {
                open -= 1;
            } else if self.peek().is_some() {
                self.at += 1;
            } else {
                return Err(error_at(start..start + 2, "unclosed comment"));
            }
        }
        Ok(true)
    }

    /// Skips space between the parts of a node; `false` if there is none.
    fn space(&mut self) -> Result<bool> {
        let start = self.at;
        loop {
            self.take_while(is_space);
            if self.rest().starts_with("/*") {
                self.comment()?;
            } else if self.eat("\\") {
                self.take_while(is_space);
                self.comment()?;
                if !self.newline() && self.peek().is_some() {
                    return Err(self.error("expected the end of the line after `\\`"));
                }
            } else {
                return Ok(self.at > start);
            }
        }
    }

    fn newline(&mut self) -> bool {
        self.eat("\r\n")
            || match self.peek().filter(|char| is_newline(*char)) {
                Some(char) => {
                    self.at += char.len_utf8();
                    true
                }
                None => false,
            }
    }

    /// Parses a node; `None` if it is commented out.
    fn node(&mut self, depth: usize) -> Result<Option<KdlNode>> {
        let is_dropped = self.eat("/-");
        if is_dropped {
            self.between_nodes()?;
        }
        self.annotation()?;
        let start = self.at;
        let ValueKind::String(name) = self.value()?.kind else {
            return Err(error_at(start..self.at, "expected the name of a node"));
        };
        let mut node = KdlNode {
            name: Text {
                text: name,
                span: start..self.at,
            },
            arguments: Vec::new(),
            properties: Vec::new(),
            children: Vec::new(),
        };
        loop {
            let is_apart = self.space()?;
            match self.peek() {
                None | Some(';' | '}') => break,
                Some(char) if is_newline(char) => break,
                Some('/') if self.rest().starts_with("//") => break,
                Some('{') => node.children.extend(self.children(depth)?),
                Some('/') if self.eat("/-") => {
                    self.between_nodes()?;
                    if self.peek() == Some('{') {
                        self.children(depth)?;
                    } else {
                        self.entry()?;
                    }
                }
                Some(_) if is_apart => match self.entry()? {
                    (Some(key), value) => node.properties.push((key, value)),
                    (None, value) => node.arguments.push(value),
                },
                Some(_) => return Err(self.error("expected a space")),
            }
        }
        Ok((!is_dropped).then_some(node))
    }

    fn children(&mut self, depth: usize) -> Result<Vec<KdlNode>> {
        let open = self.at..self.at + 1;
        if depth == MAX_DEPTH {
            self.give_up();
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(error_at(open, message));
        }
        self.at += 1;
        let children = self.nodes(depth + 1);
        if self.eat("}") || self.has_given_up {
            return Ok(children);
        }
        Err(error_at(open, "unclosed `{`"))
    }

    /// Parses an argument, or a property with its key.
    fn entry(&mut self) -> Result<(Option<Text>, KdlValue)> {
        self.annotation()?;
        let value = self.value()?;
        let end = self.at;
        self.take_while(is_space);
        let key = match &value.kind {
            ValueKind::String(key) if self.eat("=") => Text {
                text: key.clone(),
                span: value.span,
            },
            _ => {
                self.at = end;
                return Ok((None, value));
            }
        };
        self.take_while(is_space);
        self.annotation()?;
        Ok((Some(key), self.value()?))
    }

    /// Skips a type in parentheses.
    fn annotation(&mut self) -> Result<()> {
        if !self.eat("(") {
            return Ok(());
        }
        self.take_while(is_space);
        self.value()?;
        self.take_while(is_space);
        if self.eat(")") {
            self.take_while(is_space);
            return Ok(());
        }
        Err(self.error("expected `)`"))
    }

    fn value(&mut self) -> Result<KdlValue> {
        let start = self.at;
        let kind = match self.peek() {
            Some('"') => ValueKind::String(self.string()?),
            Some('#') => self.raw_or_keyword()?,
            _ => self.word()?,
        };
        Ok(KdlValue {
            kind,
            span: start..self.at,
        })
    }

    /// Parses a number, or a text without quotes.
    fn word(&mut self) -> Result<ValueKind> {
        let start = self.at;
        let word = self.take_while(is_word);
        let span = start..self.at;
        let unsigned = word.trim_start_matches(['+', '-']);
        match word {
            "" => Err(self.error("expected a value")),
            "true" | "false" | "null" | "inf" | "-inf" | "nan" => {
                let message = format!("write `#{word}`, or `\"{word}\"` for a string");
                Err(error_at(span, message))
            }
            _ if unsigned.starts_with(|char: char| char.is_ascii_digit()) => {
                number(word).map(ValueKind::Number).ok_or_else(|| {
                    let message = "not a number; a string that begins like a number needs quotes";
                    error_at(span, message)
                })
            }
            _ => Ok(ValueKind::String(word.to_owned())),
        }
    }

    fn raw_or_keyword(&mut self) -> Result<ValueKind> {
        let start = self.at;
        let hashes = self.take_while(|char| char == '#');
        if self.peek() == Some('"') {
            return Ok(ValueKind::String(self.raw(hashes)?));
        }
        let word = self.take_while(is_word);
        let span = start..self.at;
        match (hashes, word) {
            ("#", "true") => Ok(ValueKind::Boolean(true)),
            ("#", "false") => Ok(ValueKind::Boolean(false)),
            ("#", "null") => Ok(ValueKind::Null),
            ("#", "inf" | "-inf" | "nan") => Ok(ValueKind::Number(word.to_owned())),
            _ => Err(error_at(
                span,
                "expected `#true`, `#false`, `#null` or a raw string",
            )),
        }
    }

    fn raw(&mut self, hashes: &str) -> Result<String> {
        let start = self.at;
        let is_multiline = self.eat("\"\"\"");
        let (close, end) = if is_multiline {
            (format!("\"\"\"{hashes}"), self.text.len())
        } else {
            self.at += 1;
            let line = self.rest().find(is_newline);
            let end = line.map_or(self.text.len(), |length| self.at + length);
            (format!("\"{hashes}"), end)
        };
        let content = &self.text[self.at..end];
        let Some(length) = content.find(&close) else {
            return self.unclosed_text(start, is_multiline);
        };
        self.at += length + close.len();
        let content = &content[..length];
        Ok(if is_multiline {
            dedent(content)
        } else {
            content.to_owned()
        })
    }

    fn string(&mut self) -> Result<String> {
        let start = self.at;
        let is_multiline = self.eat("\"\"\"");
        if !is_multiline {
            self.at += 1;
        }
        let content_start = self.at;
        loop {
            self.take_while(|char| {
                !(matches!(char, '"' | '\\') || is_newline(char) && !is_multiline)
            });
            match self.peek() {
                Some('\\') => {
                    self.at += 1;
                    self.at += self.peek().map_or(0, char::len_utf8);
                }
                Some('"') if !is_multiline || self.rest().starts_with("\"\"\"") => break,
                Some('"') => self.at += 1,
                _ => return self.unclosed_text(start, is_multiline),
            }
        }
        let span = content_start..self.at;
        self.at += if is_multiline { 3 } else { 1 };
        let content = &self.text[span.clone()];
        let content = if is_multiline {
            dedent(content)
        } else {
            content.to_owned()
        };
        unescape(&content).ok_or_else(|| error_at(span, "unknown escape"))
    }

    fn unclosed_text<T>(&mut self, start: usize, is_multiline: bool) -> Result<T> {
        self.at = start;
        self.take_while(|char| !is_newline(char));
        let line = start..self.at;
        if is_multiline {
            self.give_up();
        }
        Err(error_at(line, "the string has no closing quote"))
    }
}

/// Removes the common indentation of a text: that of its last, blank line.
fn dedent(content: &str) -> String {
    let mut lines: Vec<_> = content.lines().collect();
    let indent = lines.pop().map_or(0, str::len);
    // The first line is empty: it follows the opening quotes.
    let lines = lines.into_iter().skip(1).map(|line| {
        let spaces = line.len() - line.trim_start().len();
        line.get(spaces.min(indent)..).unwrap_or_default()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn unescape(content: &str) -> Option<String> {
    let mut text = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(place) = rest.find('\\') {
        text.push_str(&rest[..place]);
        let mut after = rest[place + 1..].chars();
        text.push(match after.next()? {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'b' => '\u{8}',
            'f' => '\u{c}',
            's' => ' ',
            char @ ('"' | '\\') => char,
            'u' => {
                let (digits, more) = after.as_str().strip_prefix('{')?.split_once('}')?;
                after = more.chars();
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
            char if char.is_whitespace() => {
                rest = after.as_str().trim_start();
                continue;
            }
            _ => return None,
        });
        rest = after.as_str();
    }
    text.push_str(rest);
    Some(text)
}

/// Formats a number in decimal digits, without `_`.
fn number(word: &str) -> Option<String> {
    let word = word.replace('_', "");
    let unsigned = word.trim_start_matches(['+', '-']);
    let base = match unsigned.get(..2) {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => return word.parse::<f64>().is_ok().then_some(word),
    };
    let number = u128::from_str_radix(&unsigned[2..], base).ok()?;
    let sign = if word.starts_with('-') { "-" } else { "" };
    Some(format!("{sign}{number}"))
}

fn is_newline(char: char) -> bool {
    matches!(
        char,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

fn is_space(char: char) -> bool {
    char.is_whitespace() && !is_newline(char) || char == '\u{feff}'
}

fn is_word(char: char) -> bool {
    !char.is_whitespace() && !char.is_control() && !"\\/(){};[]\"#=".contains(char)
}
