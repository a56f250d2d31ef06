//! Tokens as a tree. A faulty line is reported and left out, and what follows is read all the same, so that
//! one look finds all faults.

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

/// How deep blocks and expressions may be nested.
const NESTING: usize = 64;
/// Words that are no names where a value is expected. All other keywords are: a parameter may be called `to`.
const NO_VALUES: [&str; 6] = ["and", "or", "not", "mod", "then", "else"];

/// Reads a program. It may read any variable if something else says what it takes.
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
    /// The blocks that are not closed yet.
    opened: Vec<BlockKind>,
    tree: Tree,
    /// Calls of functions that may be defined further down.
    calls: Vec<Call>,
    /// The variables that something is assigned to anywhere.
    assigned: BTreeSet<Name>,
    /// The variables that are read, and where.
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

    /// From `start` to the end of the last token that was taken.
    fn span_from(&self, start: usize) -> Span {
        let last = self
            .next
            .checked_sub(1)
            .and_then(|last| self.tokens.get(last));
        start..last.map_or(start, |token| token.span.end)
    }

    /// Takes the next token; the end stays.
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

    /// Takes a name, whatever it means elsewhere.
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
            TokenKind::Symbol(":") => error.help("each statement has a line of its own"),
            TokenKind::Symbol("{" | "}") => error.help(statements::NO_BRACES),
            _ => error,
        })
    }

    fn skip_line(&mut self) {
        while !self.is_line_end() {
            self.advance();
        }
    }

    /// Does something one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == NESTING {
            return Err(Error::new(format!(
                "blocks and expressions are nested deeper than {NESTING} levels"
            ))
            .help("give a part of it a name, or make it a FUNCTION")
            .at(&self.span()));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// What was read, unless it is faulty; then the rest of the line is left out.
    fn recover<T>(&mut self, parsed: Result<T, Error>) -> Option<T> {
        parsed
            .map_err(|error| {
                self.errors.push(error);
                self.skip_line();
            })
            .ok()
    }

    /// Every function that is called is there, and gets as many arguments as it takes. No more faults are looked for than
    /// are told: it takes long to find out what somebody may have meant.
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

    /// Every variable that is read is assigned to somewhere, or a parameter. A program without PARAM is not judged, as
    /// something else says what it takes, nor one with faults: what was left out may be what assigns.
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
        let mut error = Error::new(format!("there is no function `{name}`"));
        error.help = closest(name, defined.chain(functions::names()))
            .map(|known| format!("did you mean `{known}`?"));
        error
    }
}
