//! Grammar of the parameter after `@option`, `@flag` or `@arg`, parsed
//! into parts with their places.
//!
//! ```text
//! option: [-o] --name[!|~|*[sep]|+[sep]][=default|[choices]] [$ENV] <NOTATION>… description
//! flag:   [-f] --name[*] [$ENV] description
//! arg:    name[!|~|*[sep]|+[sep]][=default|[choices]] [$ENV] [<NOTATION>] description
//! ```

use crate::json::Span;

/// Kind of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParamKind {
    Option,
    Flag,
    Arg,
}

/// One parameter, as written.
#[derive(Debug)]
pub(super) struct Param<'a> {
    /// Short flag with its dash.
    pub(super) short: Option<&'a str>,
    /// The dashes or the `+` before the name; empty for an argument.
    pub(super) prefix: &'a str,
    pub(super) name: &'a str,
    pub(super) name_span: Span,
    pub(super) is_required: bool,
    pub(super) is_multiple: bool,
    /// Separator of several values in one word.
    pub(super) separator: Option<char>,
    pub(super) default: Option<Text>,
    pub(super) choices: Option<Vec<Text>>,
    /// A variable can provide the value as well.
    pub(super) is_bound: bool,
    pub(super) notations: Vec<&'a str>,
    pub(super) description: &'a str,
}

/// A text and its place.
#[derive(Debug, Clone)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) span: Span,
}

/// A syntax error with its place.
#[derive(Debug)]
pub(super) struct ParamError {
    pub(super) span: Span,
    pub(super) message: &'static str,
}

/// Parses the parameter in `source[span]`.
pub(super) fn read(source: &str, span: Span, tag: ParamKind) -> Result<Param<'_>, ParamError> {
    let mut cursor = Cursor {
        source,
        at: span.start,
        end: span.end,
    };
    cursor.spaces();
    let (short, prefix) = match tag {
        ParamKind::Arg => (None, ""),
        ParamKind::Option | ParamKind::Flag => (cursor.short(), cursor.prefix()?),
    };
    let start = cursor.at;
    let name = cursor.take_while(is_name);
    let mut param = Param {
        short,
        prefix,
        name,
        name_span: start..cursor.at,
        is_required: false,
        is_multiple: false,
        separator: None,
        default: None,
        choices: None,
        is_bound: false,
        notations: Vec::new(),
        description: "",
    };
    if name.is_empty() {
        return Err(cursor.error("expected a name"));
    }
    match tag {
        ParamKind::Flag => param.is_multiple = cursor.eat("*"),
        ParamKind::Option | ParamKind::Arg => cursor.value(&mut param)?,
    }
    cursor.tail(&mut param)?;
    Ok(param)
}

struct Cursor<'a> {
    source: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..self.end]
    }

    fn eat(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    fn take_while(&mut self, is_part: fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn spaces(&mut self) {
        self.take_while(is_space);
    }

    fn error(&self, message: &'static str) -> ParamError {
        let length = self.rest().chars().next().map_or(0, char::len_utf8);
        ParamError {
            span: self.at..self.at + length,
            message,
        }
    }

    /// Parses `-o`, if a space and further text follow.
    fn short(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let end = rest.find(is_space)?;
        let (word, after) = rest.split_at(end);
        let is_short = word.chars().count() == 2 && word.starts_with(['-', '+']);
        if !is_short || !after.trim_start_matches(is_space).starts_with(['-', '+']) {
            return None;
        }
        self.at += end;
        self.spaces();
        Some(word)
    }

    fn prefix(&mut self) -> Result<&'a str, ParamError> {
        let prefix = self.take_while(|char| matches!(char, '-' | '+'));
        if matches!(prefix, "--" | "-" | "+") {
            return Ok(prefix);
        }
        self.at -= prefix.len();
        Err(self.error("expected a name that begins with `--`"))
    }

    /// Parses the part after the name of a parameter with a value.
    fn value(&mut self, param: &mut Param<'a>) -> Result<(), ParamError> {
        if self.eat("=") {
            param.default = self.default()?;
            return Ok(());
        }
        if self.eat("!") {
            param.is_required = true;
        } else if self.eat("~") {
            param.is_multiple = true;
        } else if let Some(sign @ ('*' | '+')) = self.rest().chars().next() {
            self.at += 1;
            param.is_multiple = true;
            param.is_required = sign == '+';
            let separator = self.rest().chars().next();
            param.separator = separator.filter(|char| matches!(char, ',' | ':' | '@' | '|' | '/'));
            self.at += usize::from(param.separator.is_some());
        }
        if self.eat("[") {
            self.choices(param)?;
        }
        Ok(())
    }

    fn default(&mut self) -> Result<Option<Text>, ParamError> {
        if self.eat("`") {
            self.function()?;
            return Ok(None);
        }
        self.text(|char| !char.is_whitespace()).map(Some)
    }

    /// Skips the name of a function that computes values; no function is run.
    fn function(&mut self) -> Result<(), ParamError> {
        self.take_while(|char| char != '`' && !is_space(char));
        if self.eat("`") {
            return Ok(());
        }
        Err(self.error("expected a closing backtick"))
    }

    fn choices(&mut self, param: &mut Param<'a>) -> Result<(), ParamError> {
        if self.eat("?`") || self.eat("`") {
            self.function()?;
        } else {
            let has_default = self.eat("=");
            let mut choices = Vec::new();
            loop {
                choices.push(self.text(|char| !matches!(char, '|' | ']'))?);
                if !self.eat("|") {
                    break;
                }
            }
            param.default = choices.first().filter(|_| has_default).cloned();
            param.choices = Some(choices);
        }
        if self.eat("]") {
            return Ok(());
        }
        Err(self.error("expected `|` or `]`"))
    }

    /// Parses a word, or a quoted text, in which a backslash has no special meaning.
    fn text(&mut self, is_part: fn(char) -> bool) -> Result<Text, ParamError> {
        let start = self.at;
        let rest = self.rest();
        let text = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let mut is_escaped = false;
                let close = rest[1..].find(|char| {
                    let closes = char == quote && !is_escaped;
                    is_escaped = char == '\\' && !is_escaped;
                    closes
                });
                let Some(length) = close else {
                    return Err(self.error("the string has no closing quote"));
                };
                self.at += length + 2;
                &rest[1..=length]
            }
            _ => self.take_while(is_part),
        };
        Ok(Text {
            text: text.to_owned(),
            span: start..self.at,
        })
    }

    fn tail(&mut self, param: &mut Param<'a>) -> Result<(), ParamError> {
        if !self.rest().is_empty() && !self.rest().starts_with(is_space) {
            return Err(self.error("expected a space"));
        }
        self.spaces();
        if self.rest().starts_with('$') {
            self.take_while(|char| !is_space(char));
            param.is_bound = true;
            self.spaces();
        }
        while let Some((notation, length)) = notation(self.rest()) {
            param.notations.push(notation);
            self.at += length;
            self.spaces();
        }
        param.description = self.rest().trim();
        Ok(())
    }
}

/// Parses `<NAME>`, possibly with nested brackets, and returns its length.
fn notation(text: &str) -> Option<(&str, usize)> {
    let mut open = 0_usize;
    if !text.starts_with('<') {
        return None;
    }
    for (place, char) in text.char_indices() {
        match char {
            '<' => open += 1,
            '>' if open == 1 => return Some((&text[1..place], place + 1)),
            '>' => open -= 1,
            _ => {}
        }
    }
    None
}

fn is_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.' | ':' | '@')
}

fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t')
}
