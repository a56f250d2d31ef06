//! Scanner of JavaScript and TypeScript: tokens with their places, enough to
//! distinguish code from text in it.
//!
//! It knows strings, templates, comments and regular expressions, and not JSX: a quote in
//! JSX text begins a string, but only to the end of its line, which ends every string and
//! every regular expression.

use crate::json::Span;

/// A token of the code.
#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) span: Span,
    /// Number of open brackets around the token; a bracket counts as outside of
    /// itself, like its partner.
    pub(super) depth: usize,
    /// A statement begins here, and not under a condition.
    pub(super) starts_statement: bool,
    /// A line begins between the previous token and this one.
    pub(super) is_on_new_line: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind<'a> {
    /// A name or a keyword.
    Word(&'a str),
    Number,
    /// A string in single or double quotes.
    String,
    /// A whole template without substitutions.
    Template,
    /// A template up to its first substitution.
    TemplateHead,
    /// The part after a substitution, up to the next one or the end.
    TemplateRest,
    /// A text without its closing quote on the line or in the file.
    Open,
    Regex,
    /// One or more characters that form one symbol.
    Symbol(&'a str),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Round,
    /// Brackets around the condition of `if`, `for`, `while` or `with`.
    Condition,
    Square,
    Curly,
    /// `${`
    Substitution,
}

/// Class of the previous token, on which the next one depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// The beginning, or the end of a statement or a block.
    Break,
    /// A token before a value.
    Operator,
    /// `.`, before a name.
    Dot,
    /// A token before a condition in brackets.
    Condition,
    /// A token that can end a statement.
    Value,
}

/// Iterator over the tokens of a text; after the last one it yields [`TokenKind::End`] for ever.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    source: &'a str,
    at: usize,
    last: Last,
    brackets: Vec<Bracket>,
    /// Number of open round, square and curly brackets.
    open: [usize; 3],
    /// End of the line on which an unclosed regular expression rules out further ones.
    without_regex: usize,
    /// Line comments outside all brackets.
    pub(super) comments: Vec<Span>,
}

/// Symbols of several characters, longest first.
const SYMBOLS: &[&str] = &[
    "...", "===", "!==", "=>", "==", "!=", "<=", ">=", "++", "--", "?.", "+=", "-=", "*=",
];

/// Keywords before a value.
const OPERATORS: &[&str] = &[
    "await",
    "case",
    "const",
    "default",
    "delete",
    "do",
    "else",
    "export",
    "extends",
    "in",
    "instanceof",
    "let",
    "new",
    "return",
    "throw",
    "typeof",
    "var",
    "void",
    "yield",
];

const CONDITIONS: &[&str] = &["for", "if", "while", "with"];

impl<'a> Scanner<'a> {
    /// Creates a scanner of the code at byte `start`.
    pub(super) fn new(source: &'a str, start: usize) -> Self {
        let mut scanner = Self {
            source,
            at: start,
            last: Last::Break,
            brackets: Vec::new(),
            open: [0; 3],
            without_regex: 0,
            comments: Vec::new(),
        };
        if source[start..].starts_with("#!") {
            scanner.skip_line();
        }
        scanner
    }

    pub(super) fn source(&self) -> &'a str {
        self.source
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let is_on_new_line = self.skip_blank();
        let starts_statement = match self.last {
            Last::Break => true,
            Last::Value => is_on_new_line,
            Last::Operator | Last::Dot | Last::Condition => false,
        };
        let start = self.at;
        let outside = self.brackets.len();
        let kind = self.kind();
        Token {
            kind,
            span: start..self.at,
            depth: outside.min(self.brackets.len()),
            starts_statement,
            is_on_new_line,
        }
    }

    /// Marks the last token as one that can end a statement; in a type other tokens can.
    pub(super) fn ends_value(&mut self) {
        self.last = Last::Value;
    }

    fn kind(&mut self) -> TokenKind<'a> {
        let rest = &self.source[self.at..];
        let Some(first) = rest.chars().next() else {
            return TokenKind::End;
        };
        let is_fraction = || rest[1..].starts_with(|next: char| next.is_ascii_digit());
        match first {
            '"' | '\'' => self.string(first),
            '`' => self.template(TokenKind::Template, TokenKind::TemplateHead),
            '}' if self.brackets.last() == Some(&Bracket::Substitution) => {
                self.close(Bracket::Curly);
                self.template(TokenKind::TemplateRest, TokenKind::TemplateRest)
            }
            '/' if self.last != Last::Value && self.regex() => TokenKind::Regex,
            '0'..='9' => self.number(),
            '.' if is_fraction() => self.number(),
            _ if is_word(first) => self.word(),
            _ => self.symbol(first),
        }
    }

    /// Skips spaces and comments, and returns whether a line ended.
    fn skip_blank(&mut self) -> bool {
        let mut has_line_end = false;
        loop {
            let rest = &self.source[self.at..];
            let text = rest.trim_start();
            let mut skipped = &rest[..rest.len() - text.len()];
            let start = self.at + skipped.len();
            self.at = start;
            if text.starts_with("//") {
                self.skip_line();
                if self.brackets.is_empty() {
                    self.comments.push(start..self.at);
                }
            } else if let Some(comment) = text.strip_prefix("/*") {
                self.at += 2 + comment.find("*/").map_or(comment.len(), |end| end + 2);
                skipped = &rest[..self.at + rest.len() - self.source.len()];
            }
            has_line_end |= skipped.contains(is_line_end);
            if self.at == start {
                return has_line_end;
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = &self.source[self.at..];
        self.at += rest.find(is_line_end).unwrap_or(rest.len());
    }

    fn string(&mut self, quote: char) -> TokenKind<'a> {
        self.last = Last::Value;
        let mut chars = self.source[self.at + 1..].char_indices();
        while let Some((place, char)) = chars.next() {
            match char {
                '\\' => {
                    let escaped = chars.next();
                    if matches!(escaped, Some((_, '\r'))) && chars.as_str().starts_with('\n') {
                        chars.next();
                    }
                }
                '\n' | '\r' => {
                    self.at += 1 + place;
                    return TokenKind::Open;
                }
                _ if char == quote => {
                    self.at += 1 + place + 1;
                    return TokenKind::String;
                }
                _ => {}
            }
        }
        self.at = self.source.len();
        TokenKind::Open
    }

    /// Scans a template, or a part of one, from its opening character on: `whole` if it ends,
    /// `head` if a substitution follows.
    fn template(&mut self, whole: TokenKind<'a>, head: TokenKind<'a>) -> TokenKind<'a> {
        let mut chars = self.source[self.at + 1..].char_indices();
        while let Some((place, char)) = chars.next() {
            match char {
                '\\' => {
                    chars.next();
                }
                '`' => {
                    self.at += 1 + place + 1;
                    self.last = Last::Value;
                    return whole;
                }
                '$' if chars.as_str().starts_with('{') => {
                    self.at += 1 + place + 2;
                    self.open(Bracket::Substitution);
                    self.last = Last::Operator;
                    return head;
                }
                _ => {}
            }
        }
        self.at = self.source.len();
        TokenKind::Open
    }

    /// Scans a regular expression, and returns whether there is one.
    fn regex(&mut self) -> bool {
        if self.at < self.without_regex {
            return false;
        }
        let mut is_class = false;
        let mut chars = self.source[self.at + 1..].char_indices();
        while let Some((place, char)) = chars.next() {
            match char {
                '\\' => {
                    chars.next();
                }
                '[' => is_class = true,
                ']' => is_class = false,
                '/' if !is_class => {
                    let flags = chars.as_str();
                    let length = flags.find(|char| !is_word(char)).unwrap_or(flags.len());
                    self.at += 1 + place + 1 + length;
                    self.last = Last::Value;
                    return true;
                }
                _ if is_line_end(char) => {
                    self.without_regex = self.at + 1 + place;
                    return false;
                }
                _ => {}
            }
        }
        self.without_regex = self.source.len();
        false
    }

    /// Scans a number, valid or not.
    fn number(&mut self) -> TokenKind<'a> {
        let rest = &self.source[self.at..];
        let is_radix =
            rest.len() > 1 && matches!(rest.as_bytes()[1], b'x' | b'X' | b'b' | b'B' | b'o' | b'O');
        let mut previous = '0';
        let is_outside = |char: char| {
            let is_sign = matches!(char, '+' | '-') && matches!(previous, 'e' | 'E') && !is_radix;
            previous = char;
            !(is_word(char) || char == '.' || is_sign)
        };
        self.at += rest.find(is_outside).unwrap_or(rest.len());
        self.last = Last::Value;
        TokenKind::Number
    }

    fn word(&mut self) -> TokenKind<'a> {
        let rest = &self.source[self.at..];
        let word = &rest[..rest.find(|char| !is_word(char)).unwrap_or(rest.len())];
        self.at += word.len();
        self.last = match word {
            _ if self.last == Last::Dot => Last::Value,
            _ if OPERATORS.contains(&word) => Last::Operator,
            _ if CONDITIONS.contains(&word) => Last::Condition,
            _ => Last::Value,
        };
        TokenKind::Word(word)
    }

    fn symbol(&mut self, first: char) -> TokenKind<'a> {
        let rest = &self.source[self.at..];
        let known = SYMBOLS
            .iter()
            .copied()
            .find(|symbol| rest.starts_with(symbol));
        let symbol = known.unwrap_or(&rest[..first.len_utf8()]);
        self.at += symbol.len();
        self.last = match symbol {
            "(" => {
                let is_condition = self.last == Last::Condition;
                self.open(if is_condition {
                    Bracket::Condition
                } else {
                    Bracket::Round
                });
                Last::Operator
            }
            "[" => {
                self.open(Bracket::Square);
                Last::Operator
            }
            "{" => {
                self.open(Bracket::Curly);
                Last::Break
            }
            ")" => match self.close(Bracket::Round) {
                Some(Bracket::Condition) => Last::Operator,
                _ => Last::Value,
            },
            "]" => {
                self.close(Bracket::Square);
                Last::Value
            }
            "}" => {
                self.close(Bracket::Curly);
                Last::Break
            }
            ";" => Last::Break,
            "." | "?." => Last::Dot,
            // These operators stand before a value or after one.
            "++" | "--" => self.last,
            _ => Last::Operator,
        };
        TokenKind::Symbol(symbol)
    }

    fn open(&mut self, bracket: Bracket) {
        self.brackets.push(bracket);
        self.open[bracket.shape()] += 1;
    }

    /// Closes the innermost bracket of this shape, and all unclosed ones inside it; returns `None`
    /// if there is none.
    fn close(&mut self, bracket: Bracket) -> Option<Bracket> {
        if self.open[bracket.shape()] == 0 {
            return None;
        }
        loop {
            let closed = self.brackets.pop()?;
            self.open[closed.shape()] -= 1;
            if closed.shape() == bracket.shape() {
                return Some(closed);
            }
        }
    }
}

impl Bracket {
    fn shape(self) -> usize {
        match self {
            Self::Round | Self::Condition => 0,
            Self::Square => 1,
            Self::Curly | Self::Substitution => 2,
        }
    }
}

pub(super) fn is_line_end(char: char) -> bool {
    matches!(char, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '$' | '\u{200c}' | '\u{200d}')
}
