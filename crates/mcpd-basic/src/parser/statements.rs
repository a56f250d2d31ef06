//! Statements that fit on a line.

use std::sync::Arc;

use super::Parser;
use super::blocks::BlockKind;
use crate::error::{Error, closest};
use crate::lexer::TokenKind;
use crate::tree::{Expression, Loop, Place, Statement, StatementKind};

/// Words that begin statements. Elsewhere, and before a `=`, they are ordinary names.
const STATEMENTS: [&str; 19] = [
    "call",
    "end",
    "error",
    "exit",
    "for",
    "function",
    "if",
    "let",
    "param",
    "print",
    "push",
    "return",
    "set",
    "stop",
    "sub",
    "talk",
    "while",
    "description",
    "rem",
];

/// Statements of other BASICs, with advice.
const FOREIGN: [(&str, &str); 6] = [
    ("goto", "FOR and WHILE repeat, FUNCTION and SUB are called"),
    ("gosub", "SUB … END SUB is called by its name"),
    ("input", "PARAM declares an argument of the caller"),
    (
        "dim",
        "the first assignment creates a variable; `x = []` creates a list",
    ),
    ("do", "WHILE … WEND repeats"),
    ("select", "use IF … ELSEIF … END IF to distinguish cases"),
];

/// Advice for the braces of other languages.
pub(super) const NO_BRACES: &str = "blocks end with END IF, NEXT, WEND, END FUNCTION or END SUB";

impl Parser<'_> {
    /// Parses a line, or all lines of a block. A mere declaration gives nothing.
    pub(super) fn line(&mut self) -> Result<Option<Statement>, Error> {
        let start = self.span().start;
        let word = if *self.peek_after(1) == TokenKind::Symbol("=") {
            None
        } else {
            self.word()
        };
        let kind = match word.as_deref() {
            Some("param") => return self.parameter().map(|()| None),
            Some("function") => return self.function(BlockKind::Function).map(|()| None),
            Some("sub") => return self.function(BlockKind::Sub).map(|()| None),
            Some("if") if !self.is_more_after_then() => self.conditional()?,
            Some("for") => match self.counted_loop()? {
                Some(counted_loop) => counted_loop,
                None => return Ok(None),
            },
            Some("while") => self.while_loop()?,
            _ => {
                let statement = self.inline_statement()?;
                self.expect_line_end()?;
                return Ok(Some(statement));
            }
        };
        let span = self.span_from(start);
        Ok(Some(Statement { kind, span }))
    }

    /// Parses a statement within a line.
    pub(super) fn inline_statement(&mut self) -> Result<Statement, Error> {
        let start = self.span().start;
        let kind = if self.is_word("if") && *self.peek_after(1) != TokenKind::Symbol("=") {
            self.inline_conditional()?
        } else {
            self.simple()?
        };
        let span = self.span_from(start);
        Ok(Statement { kind, span })
    }

    fn word(&self) -> Option<Arc<str>> {
        match self.peek() {
            TokenKind::Word(word) => Some(Arc::clone(word)),
            _ => None,
        }
    }

    /// Parses a PARAM. The rest of the line is read by another component.
    fn parameter(&mut self) -> Result<(), Error> {
        self.advance();
        let name = self.expect_name("the name of a parameter")?;
        self.tree.parameters.push(name);
        Ok(())
    }

    fn simple(&mut self) -> Result<StatementKind, Error> {
        let Some(word) = self.word() else {
            let error = self.expected("a statement");
            return Err(match self.peek() {
                TokenKind::Number(_) => error.help("remove the line number"),
                TokenKind::Symbol("{" | "}") => error.help(NO_BRACES),
                _ => error,
            });
        };
        if self.is_assignment(&word) {
            return self.assignment();
        }
        if *self.peek_after(1) == TokenKind::Symbol("(") && !STATEMENTS.contains(&&*word) {
            return Ok(StatementKind::Call(self.expression()?));
        }
        let span = self.span();
        self.advance();
        match &*word {
            "let" | "set" => self.assignment(),
            "talk" | "print" => self.print(),
            "push" => self.push(),
            "call" => Ok(StatementKind::Call(self.expression()?)),
            "return" => self.return_value().map_err(|error| error.at(&span)),
            "exit" => self.exit().map_err(|error| error.at(&span)),
            "end" | "stop" => Ok(StatementKind::End),
            "error" => Ok(StatementKind::Error(self.expression()?)),
            _ => Err(unknown(&word).at(&span)),
        }
    }

    /// Returns whether the line is an assignment, whatever the word means elsewhere.
    fn is_assignment(&self, word: &str) -> bool {
        match self.peek_after(1) {
            TokenKind::Symbol("=") => true,
            TokenKind::Symbol("[" | ".") => !STATEMENTS.contains(&word),
            _ => false,
        }
    }

    fn assignment(&mut self) -> Result<StatementKind, Error> {
        let place = self.place()?;
        if place.path.is_empty() {
            self.assigned.insert(Arc::clone(&place.name));
        } else {
            self.change(&place);
        }
        self.expect_symbol("=")?;
        Ok(StatementKind::Assign(place, self.expression()?))
    }

    fn place(&mut self) -> Result<Place, Error> {
        let start = self.span().start;
        let name = self.expect_name("the name of a variable")?;
        let path = self.path()?;
        let span = self.span_from(start);
        Ok(Place { name, path, span })
    }

    /// Records an assignment to an element, which requires that the variable exists.
    fn change(&mut self, place: &Place) {
        let Place { name, span, .. } = place;
        self.reads.push((Arc::clone(name), span.clone()));
    }

    fn push(&mut self) -> Result<StatementKind, Error> {
        let place = self.place()?;
        self.change(&place);
        self.expect_symbol(",")?;
        Ok(StatementKind::Push(place, self.expression()?))
    }

    /// Parses the parts of a PRINT: a blank follows a comma, nothing follows a semicolon, and the
    /// line ends unless one of the two comes last.
    fn print(&mut self) -> Result<StatementKind, Error> {
        let mut parts: Vec<(Expression, &'static str)> = Vec::new();
        while !self.is_line_end() && !self.is_word("else") {
            let part = self.expression()?;
            if self.take_symbol(",") {
                parts.push((part, " "));
            } else if self.take_symbol(";") {
                parts.push((part, ""));
            } else {
                parts.push((part, "\n"));
                break;
            }
        }
        Ok(StatementKind::Print(parts))
    }

    fn return_value(&mut self) -> Result<StatementKind, Error> {
        if self.is_line_end() || self.is_word("else") {
            return Ok(StatementKind::Return(None));
        }
        Ok(StatementKind::Return(Some(self.expression()?)))
    }

    fn exit(&mut self) -> Result<StatementKind, Error> {
        let left = [
            ("for", BlockKind::For, StatementKind::Exit(Loop::For)),
            ("while", BlockKind::While, StatementKind::Exit(Loop::While)),
            ("function", BlockKind::Function, StatementKind::Return(None)),
            ("sub", BlockKind::Sub, StatementKind::Return(None)),
        ];
        for (word, kind, statement) in left {
            if self.take_word(word) {
                if self.is_in(kind) {
                    return Ok(statement);
                }
                let word = word.to_uppercase();
                return Err(Error::new(format!("there is no {word} to exit here")));
            }
        }
        Err(self.expected("FOR, WHILE, FUNCTION or SUB"))
    }
}

fn unknown(word: &str) -> Error {
    let foreign = FOREIGN.iter().find(|(foreign, _)| *foreign == word);
    let help = match (foreign, closest(word, STATEMENTS.into_iter())) {
        (Some((_, help)), _) => (*help).to_owned(),
        (None, Some(statement)) => format!("did you mean `{}`?", statement.to_uppercase()),
        (None, None) => format!("write `{word} = …` to assign to it, `{word}(…)` to call it"),
    };
    Error::new(format!("unknown statement `{word}`")).help(help)
}
