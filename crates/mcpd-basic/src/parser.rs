//! Parser: tokens to a tree. A faulty line is reported and skipped, and parsing goes on, so that
//! one run finds all faults.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::MAX_FAULTS;
use crate::error::{Error, Span, closest, no_variable};
use crate::functions;
use crate::lexer::{Token, TokenKind, tokens};
use crate::tree::{Name, Tree};

mod blocks;
mod expressions;
mod statements;

use blocks::BlockKind;

/// Maximum nesting of blocks and expressions.
const MAX_NESTING: usize = 64;
/// Keywords that can't be names where a value is expected. All other keywords can: a parameter may
/// be called `to`.
const NO_VALUES: [&str; 6] = ["and", "or", "not", "mod", "then", "else"];

/// Parses a program. With `is_described`, its parameters are declared elsewhere, and it may read
/// any variable.
pub(crate) fn parse(source: &str, is_described: bool) -> Result<Tree, Vec<Error>> {
    let (tokens, errors) = tokens(source);
    let mut parser = Parser {
        source,
        tokens,
        next: 0,
        depth: 0,
        opened: Vec::new(),
        tree: Tree::default(),
        calls: Vec::new(),
        assigned: BTreeSet::new(),
        reads: Vec::new(),
        errors,
    };
    parser.tree.body = parser.lines();
    parser.check_calls();
    if !is_described {
        parser.check_variables();
    }
    if parser.errors.is_empty() {
        Ok(parser.tree)
    } else {
        Err(parser.errors)
    }
}

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    /// Blocks that are still open.
    opened: Vec<BlockKind>,
    tree: Tree,
    /// Calls of functions, which may be defined further down.
    calls: Vec<Call>,
    /// Variables with an assignment anywhere.
    assigned: BTreeSet<Name>,
    /// Variables that are read, with their places.
    reads: Vec<(Name, Span)>,
    errors: Vec<Error>,
}

struct Call {
    name: Name,
    arguments: usize,
    span: Span,
}

impl Parser<'_> {
    fn peek(&self) -> &TokenKind {
        self.peek_after(0)
    }

    fn peek_after(&self, tokens: usize) -> &TokenKind {
        self.tokens
            .get(self.next + tokens)
            .map_or(&TokenKind::End, |token| &token.kind)
    }

    fn span(&self) -> Span {
        let token = self.tokens.get(self.next).or(self.tokens.last());
        token.map_or(0..0, |token| token.span.clone())
    }

    /// Returns the span from `start` to the end of the last token read.
    fn span_from(&self, start: usize) -> Span {
        let last = self
            .next
            .checked_sub(1)
            .and_then(|last| self.tokens.get(last));
        start..last.map_or(start, |token| token.span.end)
    }

    /// Moves to the next token, at most to the end.
    fn advance(&mut self) {
        self.next = self.tokens.len().saturating_sub(1).min(self.next + 1);
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), TokenKind::Word(found) if &**found == word)
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), TokenKind::Symbol(found) if *found == symbol)
    }

    fn is_line_end(&self) -> bool {
        matches!(self.peek(), TokenKind::LineEnd | TokenKind::End)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_there = self.is_word(word);
        if is_there {
            self.advance();
        }
        is_there
    }

    fn take_symbol(&mut self, symbol: &str) -> bool {
        let is_there = self.is_symbol(symbol);
        if is_there {
            self.advance();
        }
        is_there
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Error> {
        if self.take_word(word) {
            return Ok(());
        }
        let error = self.expected(&word.to_uppercase());
        Err(match self.peek() {
            TokenKind::Symbol("{") => error.help(statements::NO_BRACES),
            _ => error,
        })
    }

    fn expect_symbol(&mut self, symbol: &str) -> Result<(), Error> {
        if self.take_symbol(symbol) {
            return Ok(());
        }
        Err(self.expected(&format!("`{symbol}`")))
    }

    /// Reads a name, whatever it means elsewhere.
    fn expect_name(&mut self, what: &str) -> Result<Name, Error> {
        let TokenKind::Word(name) = self.peek() else {
            return Err(self.expected(what));
        };
        let name = Arc::clone(name);
        self.advance();
        Ok(name)
    }

    fn expected(&self, what: &str) -> Error {
        let span = self.span();
        let found = match self.peek() {
            TokenKind::LineEnd | TokenKind::End => "the line ends".to_owned(),
            _ => {
                let text = self.source.get(span.clone()).unwrap_or_default();
                let shown: String = text.chars().take(30).collect();
                format!("found `{}`", shown.escape_debug())
            }
        };
        Error::new(format!("expected {what}, but {found}")).at(&span)
    }

    fn expect_line_end(&mut self) -> Result<(), Error> {
        if self.is_line_end() {
            return Ok(());
        }
        let error = self.expected("the end of the line");
        Err(match self.peek() {
            TokenKind::Symbol(":") => error.help("each statement needs its own line"),
            TokenKind::Symbol("{" | "}") => error.help(statements::NO_BRACES),
            _ => error,
        })
    }

    fn skip_line(&mut self) {
        while !self.is_line_end() {
            self.advance();
        }
    }

    /// Parses one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == MAX_NESTING {
            return Err(Error::new(format!(
                "blocks and expressions are nested deeper than {MAX_NESTING} levels"
            ))
            .help("assign a part of it to a variable, or move it into a FUNCTION")
            .at(&self.span()));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Returns the parsed part; if it is faulty, reports it and skips the rest of the line.
    fn recover<T>(&mut self, parsed: Result<T, Error>) -> Option<T> {
        parsed
            .map_err(|error| {
                self.errors.push(error);
                self.skip_line();
            })
            .ok()
    }

    /// Checks that every called function exists, and gets the right number of arguments. Stops at
    /// the maximum number of reported faults, because finding a similar name is slow.
    fn check_calls(&mut self) {
        let mut faulty_lines = 0;
        let mut line_end = 0;
        for call in &self.calls {
            let Call {
                name,
                arguments,
                span,
            } = call;
            if span.start < line_end {
                continue;
            }
            let error = match self.tree.functions.get(name) {
                None => self.no_function(name),
                Some(function) if function.parameters.len() != *arguments => {
                    let takes = functions::arguments(function.parameters.len());
                    Error::new(format!("`{name}` takes {takes}, not {arguments}"))
                }
                Some(_) => continue,
            };
            self.errors.push(error.at(span));
            faulty_lines += 1;
            if faulty_lines == MAX_FAULTS {
                return;
            }
            let rest = self.source.get(span.start..).unwrap_or_default();
            line_end = span.start + rest.find('\n').unwrap_or(rest.len());
        }
    }

    /// Checks that every variable read is assigned somewhere, or is a parameter. Programs without
    /// PARAM are exempt, as their parameters are declared elsewhere, and so are programs with
    /// faults: a skipped line may be the assignment.
    fn check_variables(&mut self) {
        if self.tree.parameters.is_empty() || !self.errors.is_empty() {
            return;
        }
        let mut known = std::mem::take(&mut self.assigned);
        known.extend(self.tree.parameters.iter().cloned());
        let mut told = BTreeSet::new();
        let unknown = self.reads.iter();
        let unknown = unknown.filter(|(name, _)| !known.contains(name) && told.insert(name));
        for (name, span) in unknown.take(MAX_FAULTS) {
            let error = no_variable(name, known.iter().map(|name| &**name));
            self.errors.push(error.at(span));
        }
    }

    fn no_function(&self, name: &str) -> Error {
        let defined = self.tree.functions.keys().map(|name| &**name);
        let mut error = Error::new(format!("unknown function `{name}`"));
        error.help = closest(name, defined.chain(functions::names()))
            .map(|known| format!("did you mean `{known}`?"));
        error
    }
}
