//! Placeholders in string literals of JavaScript, TypeScript and Python, replaced by expressions
//! that read variables.
//!
//! A value is never pasted: `"Hello {{name}}"` becomes `("Hello " + process.env.MCPD_OPT_name)`. A
//! placeholder elsewhere is a fault, as is every placeholder in code that evaluates texts.

use super::{
    language::variable,
    placeholder::{self, Placeholder},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    JavaScript,
    Python,
}

const PASTED: &str =
    "values are never inserted into code, and this language reads variables differently";

/// Words of code that evaluates texts, or passes them to a shell.
const RUNNERS: &[&str] = &[
    "eval",
    "exec",
    "Function",
    "spawn",
    "fork",
    "system",
    "popen",
    "subprocess",
    "compile",
    "import(",
    "require(",
    "__import__",
    "Bun.$",
    "execa",
    "setTimeout(\"",
    "setTimeout('",
];

/// Context of the current position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LiteralContext {
    Code,
    /// A comment, up to this terminator.
    Comment(&'static str),
    /// A literal between such quotes; in a multi-line or prefixed one nothing is replaced.
    Literal {
        quotes: &'static str,
        is_plain: bool,
    },
}

/// Replaces the placeholders in the code by expressions.
pub(super) fn fill(
    code: &str,
    syntax: Syntax,
    is_number: &dyn Fn(&str) -> bool,
) -> (String, Vec<Placeholder>) {
    let runs_texts = RUNNERS.iter().any(|runner| code.contains(runner));
    let mut filler = LiteralFiller {
        code,
        syntax,
        is_number,
        runs_texts,
        at: 0,
        around: LiteralContext::Code,
        literal: 0,
        before: 0,
        output: String::with_capacity(code.len()),
        placeholders: Vec::new(),
    };
    while filler.at < code.len() {
        filler.step();
    }
    (filler.output, filler.placeholders)
}

struct LiteralFiller<'a> {
    code: &'a str,
    syntax: Syntax,
    is_number: &'a dyn Fn(&str) -> bool,
    runs_texts: bool,
    at: usize,
    around: LiteralContext,
    /// Start of the current literal in the output.
    literal: usize,
    /// Number of placeholders before it.
    before: usize,
    output: String,
    placeholders: Vec<Placeholder>,
}

impl LiteralFiller<'_> {
    fn rest(&self) -> &str {
        &self.code[self.at..]
    }

    fn copy(&mut self, length: usize) {
        self.output.push_str(&self.code[self.at..self.at + length]);
        self.at += length;
    }

    fn step(&mut self) {
        if let Some((name, length)) = placeholder::first(self.rest()) {
            let name = name.to_owned();
            return self.placeholder(name, length);
        }
        match self.around {
            LiteralContext::Code => self.plain(),
            LiteralContext::Comment(end) if self.rest().starts_with(end) => {
                self.around = LiteralContext::Code;
                self.copy(end.len());
            }
            LiteralContext::Literal { quotes, .. } if self.rest().starts_with(quotes) => {
                self.copy(quotes.len());
                self.end_literal(quotes);
            }
            LiteralContext::Literal { quotes, .. }
                if quotes.len() == 1 && quotes != "`" && self.rest().starts_with('\n') =>
            {
                // The quotes began no literal.
                self.around = LiteralContext::Code;
                self.copy(1);
            }
            LiteralContext::Literal { .. } if self.rest().starts_with('\\') => self.copy_chars(2),
            _ => self.copy_chars(1),
        }
    }

    fn copy_chars(&mut self, count: usize) {
        let length = self.rest().chars().take(count).map(char::len_utf8).sum();
        self.copy(length);
    }

    fn plain(&mut self) {
        let rest = self.rest();
        let comments: &[(&str, &str)] = match self.syntax {
            Syntax::JavaScript => &[("//", "\n"), ("/*", "*/")],
            Syntax::Python => &[("#", "\n")],
        };
        let quotes: &[&str] = match self.syntax {
            Syntax::JavaScript => &["\"", "'", "`"],
            Syntax::Python => &["\"\"\"", "'''", "\"", "'"],
        };
        if let Some((start, end)) = comments.iter().find(|(start, _)| rest.starts_with(start)) {
            self.around = LiteralContext::Comment(end);
            return self.copy(start.len());
        }
        if self.starts_pattern() {
            return self.pass_pattern();
        }
        let Some(quotes) = quotes.iter().find(|quotes| rest.starts_with(**quotes)) else {
            return self.copy_chars(1);
        };
        self.around = LiteralContext::Literal {
            quotes,
            is_plain: !self.has_prefix(quotes) && quotes.len() == 1,
        };
        self.literal = self.output.len();
        self.before = self.placeholders.len();
        self.copy(quotes.len());
    }

    /// Returns whether a regular expression of JavaScript begins here.
    fn starts_pattern(&self) -> bool {
        let before = self.output.trim_end().chars().next_back();
        self.syntax == Syntax::JavaScript
            && self.rest().starts_with('/')
            && before.is_none_or(|before| "(=:[!&|?{};,".contains(before))
    }

    /// Skips a regular expression, in which quotes are ordinary characters.
    fn pass_pattern(&mut self) {
        let line = self.rest().lines().next().unwrap_or_default();
        let mut is_escaped = true;
        let end = line.find(|char| {
            let is_end = char == '/' && !is_escaped;
            is_escaped = char == '\\' && !is_escaped;
            is_end
        });
        self.copy(end.map_or(1, |end| end + 1));
    }

    /// Returns whether a prefix changes the meaning of the literal.
    fn has_prefix(&self, quotes: &str) -> bool {
        let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '$' | ')' | ']');
        let before = self.output.trim_end();
        match self.syntax {
            // A tag before a template, and the name of a module.
            Syntax::JavaScript if quotes == "`" => before.ends_with(is_part),
            Syntax::JavaScript => before.ends_with("from") || before.ends_with("import"),
            // A prefix such as `f`, and a literal that this one continues.
            Syntax::Python => self.output.ends_with(is_part) || before.ends_with(['"', '\'']),
        }
    }

    /// Returns whether the code after a literal makes it more than a value.
    fn has_suffix(&self) -> bool {
        let rest = self.rest().trim_start();
        match self.syntax {
            Syntax::JavaScript => rest.starts_with(':'),
            Syntax::Python => {
                let is_letter = |char: char| char.is_ascii_alphabetic();
                let literal = rest.trim_start_matches(is_letter);
                let is_format = rest.starts_with('%') || rest.starts_with(".format");
                is_format || literal.starts_with(['"', '\''])
            }
        }
    }

    /// Puts parentheses around a literal that has become a sum, and removes its empty parts.
    fn end_literal(&mut self, quotes: &str) {
        let has_suffix = self.has_suffix();
        let values = &mut self.placeholders[self.before..];
        if has_suffix {
            values
                .iter_mut()
                .for_each(|value| value.fault = Some(PASTED));
        }
        if !values.is_empty() && quotes != "`" {
            let literal = self.output.split_off(self.literal);
            let sum = literal.as_str();
            let empty = format!("{quotes}{quotes}");
            let sum = sum.strip_prefix(&format!("{empty} + ")).unwrap_or(sum);
            let sum = sum.strip_suffix(&format!(" + {empty}")).unwrap_or(sum);
            self.output.push_str(&format!("({sum})"));
        }
        self.around = LiteralContext::Code;
    }

    fn placeholder(&mut self, name: String, length: usize) {
        let value = match self.syntax {
            Syntax::JavaScript => format!("(process.env.{} ?? \"\")", variable(&name)),
            Syntax::Python => {
                format!(
                    "__import__(\"os\").environ.get(\"{}\", \"\")",
                    variable(&name)
                )
            }
        };
        let is_number = (self.is_number)(&name);
        let replacement = match self.around {
            LiteralContext::Comment(_) => Some(String::new()),
            LiteralContext::Code if is_number => Some(match self.syntax {
                Syntax::JavaScript => format!("Number({value})"),
                Syntax::Python => format!("__import__(\"json\").loads({value})"),
            }),
            LiteralContext::Literal {
                quotes: "`",
                is_plain: true,
            } => {
                // Open braces contain code.
                let inside = &self.output[self.literal..];
                let is_open = inside.matches("${").count() > inside.matches('}').count();
                (!is_open).then(|| format!("${{{value}}}"))
            }
            LiteralContext::Literal {
                quotes,
                is_plain: true,
            } => Some(format!("{quotes} + {value} + {quotes}")),
            _ => None,
        };
        let fault = (replacement.is_none() || self.runs_texts).then_some(PASTED);
        self.output.push_str(&replacement.unwrap_or_default());
        self.placeholders.push(Placeholder {
            name,
            span: self.at..self.at + length,
            fault,
        });
        self.at += length;
    }
}
