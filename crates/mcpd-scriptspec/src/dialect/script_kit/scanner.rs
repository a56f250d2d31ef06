//! JavaScript and TypeScript → tokens with their places: enough to tell code from what only looks like it.
//!
//! Strings, templates, comments and regular expressions are known. JSX is not: a quote in its text is taken for a string,
//! but only to the end of its line, where every string and every regular expression ends.

use crate::json::Span;

/// A part of the code.
#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) span: Span,
    /// How many brackets are open around it; a bracket stands inside of itself no more than its partner does.
    pub(super) depth: usize,
    /// Whether a statement begins here, and not under a condition.
    pub(super) starts_statement: bool,
    /// Whether a line begins between the last token and this one.
    pub(super) is_on_new_line: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// A name or a keyword.
    Word(&'a str),
    Number,
    /// In single or double quotes.
    String,
    /// A whole template without substitutions.
    Template,
    /// A template up to its first substitution.
    TemplateHead,
    /// What follows a substitution, up to the next one or the end.
    TemplateRest,
    /// A text that its line or the file ends before its closing quote.
    Open,
    Regex,
    /// One or more characters that belong together.
    Symbol(&'a str),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Round,
    /// Around what an `if`, `for`, `while` or `with` decides by.
    Condition,
    Square,
    Curly,
    /// `${`
    Substitution,
}

/// What the last token was, as far as the next one depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// The beginning, or the end of a statement or a block.
    Break,
    /// Something that a value follows.
    Operator,
    /// `.`, which a name follows.
    Dot,
    /// Something that a condition in brackets follows.
    Condition,
    /// Something that can stand at the end of a statement.
    Value,
}

/// The tokens of a text, one after another; at its end only [`Kind::End`] comes.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    source: &'a str,
    at: usize,
    last: Last,
    brackets: Vec<Bracket>,
    /// How many of them are round, square and curly.
    open: [usize; 3],
    /// Where the line ends on which no further regular expression is looked for, as one was not closed.
    without_regex: usize,
    /// Line comments outside of all brackets.
    pub(super) comments: Vec<Span>,
}

/// Symbols of several characters, longest first.
const SYMBOLS: &[&str] = &[
    "...", "===", "!==", "=>", "==", "!=", "<=", ">=", "++", "--", "?.", "+=", "-=", "*=",
];

/// Keywords that a value follows.
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
    /// Of the code that begins at byte `start`.
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

    /// Has the last token be one that can stand at the end of a statement, as others can in a type.
    pub(super) fn ends_value(&mut self) {
        self.last = Last::Value;
    }

    fn kind(&mut self) -> Kind<'a> {
        let rest = &self.source[self.at..];
        let Some(first) = rest.chars().next() else {
            return Kind::End;
        };
        let is_fraction = || rest[1..].starts_with(|next: char| next.is_ascii_digit());
        match first {
            '"' | '\'' => self.string(first),
            '`' => self.template(Kind::Template, Kind::TemplateHead),
            '}' if self.brackets.last() == Some(&Bracket::Substitution) => {
                self.close(Bracket::Curly);
                self.template(Kind::TemplateRest, Kind::TemplateRest)
            }
            '/' if self.last != Last::Value && self.regex() => Kind::Regex,
            '0'..='9' => self.number(),
            '.' if is_fraction() => self.number(),
            _ if is_word(first) => self.word(),
            _ => self.symbol(first),
        }
    }

    /// Passes blanks and comments, and says whether a line ended.
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

    fn string(&mut self, quote: char) -> Kind<'a> {
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
                    return Kind::Open;
                }
                _ if char == quote => {
                    self.at += 1 + place + 1;
                    return Kind::String;
                }
                _ => {}
            }
        }
        self.at = self.source.len();
        Kind::Open
    }

    /// A template, or a part of one, from its opening character on: `whole` if it ends, `head` if a substitution follows.
    fn template(&mut self, whole: Kind<'a>, head: Kind<'a>) -> Kind<'a> {
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
        Kind::Open
    }

    /// Whether a regular expression begins here, which is then passed.
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

    /// A number, or what would be one if it were right.
    fn number(&mut self) -> Kind<'a> {
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
        Kind::Number
    }

    fn word(&mut self) -> Kind<'a> {
        let rest = &self.source[self.at..];
        let word = &rest[..rest.find(|char| !is_word(char)).unwrap_or(rest.len())];
        self.at += word.len();
        self.last = match word {
            _ if self.last == Last::Dot => Last::Value,
            _ if OPERATORS.contains(&word) => Last::Operator,
            _ if CONDITIONS.contains(&word) => Last::Condition,
            _ => Last::Value,
        };
        Kind::Word(word)
    }

    fn symbol(&mut self, first: char) -> Kind<'a> {
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
            // They stand before a value or after one.
            "++" | "--" => self.last,
            _ => Last::Operator,
        };
        Kind::Symbol(symbol)
    }

    fn open(&mut self, bracket: Bracket) {
        self.brackets.push(bracket);
        self.open[bracket.shape()] += 1;
    }

    /// Closes the innermost bracket of this shape, and all that was left open inside of it; nothing if there is none.
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
