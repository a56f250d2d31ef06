//! Parser of JavaScript literals: values with their places. Nothing is evaluated; any other
//! expression is a fault.

use super::{
    scalar::{number, string},
    scanner::{Scanner, Token, TokenKind},
};
use crate::{
    diagnostic::{Diagnostic, Stream},
    dialect::draft::{Literal, Node},
    json::Span,
    rules::Code,
    text::excerpt,
};

/// Maximum nesting depth of objects, lists and brackets.
const MAX_DEPTH: usize = 64;

/// Maximum length of quoted code in a message, in characters.
const MAX_EXCERPT: usize = 40;

/// Error that has been reported; there is no value.
#[derive(Debug)]
pub(in crate::dialect) struct Reported;

/// Parser of the literals in a piece of code. A fault inside a literal is reported, and the rest
/// is parsed all the same.
#[derive(Debug)]
pub(in crate::dialect) struct LiteralReader<'a> {
    pub(super) scanner: Scanner<'a>,
    pub(super) token: Token<'a>,
    pub(in crate::dialect) faults: Vec<Diagnostic>,
    /// End of the last token.
    end: usize,
    levels: usize,
    /// The text ends inside brackets, which has been reported.
    is_cut: bool,
}

impl<'a> LiteralReader<'a> {
    /// Creates a reader of the code at byte `start`.
    pub(in crate::dialect) fn new(source: &'a str, start: usize) -> Self {
        let mut scanner = Scanner::new(source, start);
        let token = scanner.next();
        Self {
            scanner,
            token,
            faults: Vec::new(),
            end: start,
            levels: 0,
            is_cut: false,
        }
    }

    /// End of the last token.
    pub(in crate::dialect) fn end(&self) -> usize {
        self.end
    }

    /// Reads one object, with nothing after it.
    pub(in crate::dialect) fn only_object(&mut self) -> Result<Node, Reported> {
        if !self.is_symbol("{") {
            return self.report_expected("`{`");
        }
        let object = self.read_nested(Self::object)?;
        match self.token.kind {
            TokenKind::End => Ok(object),
            _ => self.report_expected("nothing after the object"),
        }
    }

    pub(super) fn advance(&mut self) -> Token<'a> {
        self.end = self.token.span.end;
        let next = self.scanner.next();
        std::mem::replace(&mut self.token, next)
    }

    pub(super) fn is_symbol(&self, symbol: &str) -> bool {
        self.token.kind == TokenKind::Symbol(symbol)
    }

    /// Reads the expression at this position, inside `depth` brackets; `None` for `undefined`.
    pub(in crate::dialect) fn expression(
        &mut self,
        depth: usize,
    ) -> Result<Option<Node>, Reported> {
        let start = self.token.span.start;
        let value = self.value(depth)?;
        self.end_of_value(start, depth)?;
        Ok(value)
    }

    /// Skips TypeScript's type annotations of the value at `start`, which must then end.
    pub(super) fn end_of_value(&mut self, start: usize, depth: usize) -> Result<(), Reported> {
        while matches!(self.token.kind, TokenKind::Word("as" | "satisfies"))
            && !self.token.is_on_new_line
        {
            self.skip_type(depth);
        }
        if self.is_at_end(depth) {
            return Ok(());
        }
        match self.token.kind {
            TokenKind::Word(_) | TokenKind::Number | TokenKind::String | TokenKind::Template => {
                self.report_expected("`,`")
            }
            _ => self.not_literal(start, depth),
        }
    }

    /// Reads a value, without the text after it.
    pub(super) fn value(&mut self, depth: usize) -> Result<Option<Node>, Reported> {
        if self.is_at_end(depth) {
            return self.report_expected("a value");
        }
        let span = self.token.span.clone();
        let literal = match self.token.kind {
            TokenKind::Symbol("{") => return self.read_nested(Self::object).map(Some),
            TokenKind::Symbol("[") => return self.read_nested(Self::list).map(Some),
            TokenKind::Symbol("(") => return self.read_nested(Self::group),
            TokenKind::Symbol("-" | "+") => return self.read_signed(depth).map(Some),
            TokenKind::Word("undefined") => {
                self.advance();
                return Ok(None);
            }
            TokenKind::Word("null") => Literal::Null,
            TokenKind::Word("true") => Literal::Boolean(true),
            TokenKind::Word("false") => Literal::Boolean(false),
            TokenKind::Number => Literal::Number(self.text(number)?),
            TokenKind::String | TokenKind::Template => Literal::String(self.text(string)?),
            TokenKind::Open => return self.report_unclosed(),
            _ => return self.not_literal(span.start, depth),
        };
        if !matches!(literal, Literal::Number(_) | Literal::String(_)) {
            self.advance();
        }
        Ok(Some(Node::new(span, literal)))
    }

    /// Reads the next token as a text or number.
    fn text(&mut self, read: fn(&str) -> Result<String, &'static str>) -> Result<String, Reported> {
        let token = self.advance();
        read(&self.scanner.source()[token.span.clone()]).map_err(|message| {
            self.fault(Code::SourceSyntax, token.span, message);
            Reported
        })
    }

    fn read_signed(&mut self, depth: usize) -> Result<Node, Reported> {
        let sign = self.advance();
        if self.token.kind != TokenKind::Number {
            return self.not_literal(sign.span.start, depth);
        }
        let minus = if sign.kind == TokenKind::Symbol("-") {
            "-"
        } else {
            ""
        };
        let number = format!("{minus}{}", self.text(number)?);
        Ok(Node::new(
            sign.span.start..self.end,
            Literal::Number(number),
        ))
    }

    fn read_nested<T>(
        &mut self,
        read: fn(&mut Self, &Token<'a>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        let open = self.advance();
        if self.levels == MAX_DEPTH {
            self.skip(open.depth);
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            self.fault(Code::NestingTooDeep, open.span, message);
            return Err(Reported);
        }
        self.levels += 1;
        let value = read(self, &open);
        self.levels -= 1;
        value
    }

    fn group(&mut self, open: &Token<'a>) -> Result<Option<Node>, Reported> {
        let value = self.expression(open.depth + 1);
        if self.is_closing(open, ")") {
            self.advance();
            return value;
        }
        value?;
        self.unclosed_bracket(open, ")")
    }

    fn list(&mut self, open: &Token<'a>) -> Result<Node, Reported> {
        let mut items = Vec::new();
        self.parts(open, "]", |reader, depth| {
            let start = reader.token.span.start;
            match reader.expression(depth)? {
                Some(item) => items.push(item),
                None => reader.fault(
                    Code::SourceNotConstant,
                    start..reader.end,
                    "`undefined` is not allowed in a list",
                ),
            }
            Ok(())
        })?;
        Ok(Node::new(open.span.start..self.end, Literal::Array(items)))
    }

    /// Reads an object. A faulty part becomes `null`, so that the object does not count as empty.
    fn object(&mut self, open: &Token<'a>) -> Result<Node, Reported> {
        let mut object = Node::object(open.span.clone());
        // An unclosed object with its members is more useful than none.
        let _ = self.parts(open, "}", |reader, depth| {
            let start = reader.token.span.start;
            let member = reader.member(depth, &mut object);
            if member.is_err() {
                let span = start..reader.end.max(start);
                object.add("", span.clone(), Node::new(span, Literal::Null));
            }
            member
        });
        object.span.end = self.end;
        Ok(object)
    }

    fn member(&mut self, depth: usize, object: &mut Node) -> Result<(), Reported> {
        let span = self.token.span.clone();
        let key = match self.token.kind {
            TokenKind::Word(word) => {
                self.advance();
                word.to_owned()
            }
            TokenKind::String => self.text(string)?,
            TokenKind::Number => self.text(number)?,
            TokenKind::Open => return self.report_unclosed(),
            _ if self.is_at_end(depth) => return self.report_expected("a key"),
            _ => return self.not_literal(span.start, depth),
        };
        if !self.is_symbol(":") {
            return self.not_literal(span.start, depth);
        }
        self.advance();
        let value = self.expression(depth);
        match value {
            Ok(Some(value)) => object.add(key, span, value),
            Ok(None) => {}
            Err(Reported) => object.add(key, span.clone(), Node::new(span, Literal::Null)),
        }
        Ok(())
    }

    /// Reads everything after an opening bracket up to the closing one, including it.
    fn parts(
        &mut self,
        open: &Token<'a>,
        close: &'static str,
        mut part: impl FnMut(&mut Self, usize) -> Result<(), Reported>,
    ) -> Result<(), Reported> {
        let depth = open.depth + 1;
        while !self.is_closing(open, close) {
            if self.token.kind == TokenKind::End || self.token.depth < depth {
                return self.unclosed_bracket(open, close);
            }
            let start = self.token.span.start;
            let is_understood = part(self, depth).is_ok();
            if self.token.depth < depth || self.token.kind == TokenKind::End {
                continue;
            }
            let is_separated = self.is_symbol(",");
            if is_understood && !is_separated {
                let _ = self.report_expected::<()>(&format!("`,` or `{close}`"));
            }
            if is_separated || self.is_symbol(";") || self.token.span.start == start {
                self.advance();
            }
        }
        self.advance();
        Ok(())
    }

    fn is_closing(&self, open: &Token<'a>, close: &str) -> bool {
        self.token.depth == open.depth && self.is_symbol(close)
    }

    /// Returns whether an expression inside `depth` brackets ends here.
    fn is_at_end(&self, depth: usize) -> bool {
        let Token { kind, .. } = self.token;
        kind == TokenKind::End
            || self.token.depth < depth
            || self.token.depth == depth && matches!(kind, TokenKind::Symbol("," | ";"))
            || depth == 0 && self.token.is_on_new_line && self.token.starts_statement
    }

    /// Skips everything up to the end of the expression.
    fn skip(&mut self, depth: usize) {
        while !self.is_at_end(depth) {
            self.advance();
        }
    }

    /// Skips `as`, `satisfies` or `:` and a type, in which commas can stand between `<` and `>`.
    pub(super) fn skip_type(&mut self, depth: usize) {
        let mut angles = 0_usize;
        loop {
            self.advance();
            match self.token.kind {
                TokenKind::End => return,
                TokenKind::Symbol("<") => angles += 1,
                TokenKind::Symbol(">") => {
                    angles = angles.saturating_sub(1);
                    self.scanner.ends_value();
                }
                TokenKind::Symbol("=") if depth == self.token.depth => return,
                TokenKind::Word("as" | "satisfies") if angles == 0 && self.token.depth == depth => {
                    return;
                }
                TokenKind::Symbol(",") if angles > 0 && self.token.depth == depth => {}
                _ if self.is_at_end(depth) => return,
                TokenKind::Word("const" | "void") => self.scanner.ends_value(),
                _ => {}
            }
        }
    }

    /// Reports that the expression at `start` is not a literal.
    fn not_literal<T>(&mut self, start: usize, depth: usize) -> Result<T, Reported> {
        let is_regex = self.token.kind == TokenKind::Regex && self.token.span.start == start;
        while !self.is_at_end(depth) {
            if self.token.kind == TokenKind::Open {
                return self.report_unclosed();
            }
            self.advance();
        }
        let span = start..self.end.max(start);
        let code = excerpt(&self.scanner.source()[span.clone()], MAX_EXCERPT);
        let help = if is_regex {
            "write the regular expression as a string"
        } else {
            "write the value itself; the description of a script is read without running it"
        };
        self.fault(
            Code::SourceNotConstant,
            span,
            format!("`{code}` is not a literal"),
        );
        if let Some(fault) = self.faults.last_mut() {
            fault.help = Some(help.to_owned());
        }
        Err(Reported)
    }

    pub(super) fn report_expected<T>(&mut self, what: &str) -> Result<T, Reported> {
        let Token { kind, span, .. } = self.token.clone();
        let found = match kind {
            TokenKind::End => "the end of the text".to_owned(),
            _ => format!(
                "`{}`",
                excerpt(&self.scanner.source()[span.clone()], MAX_EXCERPT)
            ),
        };
        self.fault(
            Code::SourceSyntax,
            span,
            format!("expected {what}, found {found}"),
        );
        Err(Reported)
    }

    fn report_unclosed<T>(&mut self) -> Result<T, Reported> {
        let token = self.advance();
        self.fault(
            Code::SourceSyntax,
            token.span,
            "the string has no closing quote",
        );
        self.is_cut = self.token.kind == TokenKind::End;
        Err(Reported)
    }

    fn unclosed_bracket<T>(&mut self, open: &Token<'a>, close: &str) -> Result<T, Reported> {
        // The outer brackets are not closed either.
        if !self.is_cut {
            let message = format!("missing `{close}`");
            self.fault(Code::SourceSyntax, open.span.clone(), message);
        }
        self.is_cut = self.token.kind == TokenKind::End;
        Err(Reported)
    }

    fn fault(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.faults
            .push(Diagnostic::new(code, Stream::Source, span, message.into()));
    }
}
