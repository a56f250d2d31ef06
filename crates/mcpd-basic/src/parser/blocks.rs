//! Blocks: their beginnings and ends, and the messages when the two do not match.

use super::Parser;
use crate::error::{Error, Span};
use crate::functions;
use crate::lexer::TokenKind;
use crate::tree::{Block, Expression, ExpressionKind, Function, Name, StatementKind};
use crate::value::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    If,
    For,
    While,
    Function,
    Sub,
}

impl BlockKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::If => "IF",
            Self::For => "FOR",
            Self::While => "WHILE",
            Self::Function => "FUNCTION",
            Self::Sub => "SUB",
        }
    }

    fn is_function(self) -> bool {
        matches!(self, Self::Function | Self::Sub)
    }

    fn end(self) -> &'static str {
        match self {
            Self::If => "END IF",
            Self::For => "NEXT",
            Self::While => "WEND",
            Self::Function => "END FUNCTION",
            Self::Sub => "END SUB",
        }
    }
}

/// Words that end a block or a part of it.
const ENDS: [(&[&str], BlockKind); 9] = [
    (&["elseif"], BlockKind::If),
    (&["else"], BlockKind::If),
    (&["endif"], BlockKind::If),
    (&["end", "if"], BlockKind::If),
    (&["next"], BlockKind::For),
    (&["wend"], BlockKind::While),
    (&["end", "while"], BlockKind::While),
    (&["end", "function"], BlockKind::Function),
    (&["end", "sub"], BlockKind::Sub),
];

impl Parser<'_> {
    /// Parses statements up to an end that belongs to an open block, which is left, or to the end
    /// of the program.
    pub(super) fn lines(&mut self) -> Block {
        let mut block = Block::new();
        loop {
            while *self.peek() == TokenKind::LineEnd {
                self.advance();
            }
            if *self.peek() == TokenKind::End {
                return block;
            }
            let Some(kind) = self.end_ahead() else {
                let parsed = self.line();
                block.extend(self.recover(parsed).flatten());
                continue;
            };
            if self.opened.contains(&kind) {
                return block;
            }
            let (opener, end) = (kind.as_str(), kind.end());
            let error = Error::new(format!("there is no {opener} for this"))
                .help(format!("every {opener} has one {end}"));
            self.errors.push(error.at(&self.span()));
            self.skip_line();
        }
    }

    /// Returns the kind of block whose end or next part begins the line.
    fn end_ahead(&self) -> Option<BlockKind> {
        if *self.peek_after(1) == TokenKind::Symbol("=") {
            return None;
        }
        let is_ahead = |words: &[&str]| {
            words.iter().enumerate().all(|(index, word)| {
                matches!(self.peek_after(index), TokenKind::Word(found) if &**found == *word)
            })
        };
        let (_, kind) = ENDS.iter().find(|(words, _)| is_ahead(words))?;
        Some(*kind)
    }

    /// Parses the statements between the line that opens a block and its end, which is left.
    fn block(&mut self, kind: BlockKind) -> Result<Block, Error> {
        self.opened.push(kind);
        let block = self.nested(|parser| Ok(parser.lines()));
        self.opened.pop();
        block
    }

    /// Reads the end of a block. If another end stands there, it is left to the block that it
    /// belongs to.
    fn close(&mut self, kind: BlockKind, opener: &Span) -> bool {
        let is_there = self.end_ahead() == Some(kind);
        if is_there {
            self.take_word("end");
            self.advance();
        } else {
            let (name, end) = (kind.as_str(), kind.end());
            let error = Error::new(format!("this {name} has no {end}"));
            self.errors.push(error.at(opener));
        }
        is_there
    }

    /// Reads the end of a block that has nothing after it.
    fn close_line(&mut self, kind: BlockKind, opener: &Span) -> Result<(), Error> {
        if self.close(kind, opener) {
            self.expect_line_end()?;
        }
        Ok(())
    }

    /// Returns whether EXIT can leave such a block here: a loop around a function does not count
    /// inside the function.
    pub(super) fn is_in(&self, kind: BlockKind) -> bool {
        for opened in self.opened.iter().rev() {
            if *opened == kind || opened.is_function() {
                return *opened == kind;
            }
        }
        false
    }

    /// Parses `IF` with blocks.
    pub(super) fn conditional(&mut self) -> Result<StatementKind, Error> {
        let opener = self.span();
        self.advance();
        let header = self.condition();
        let first = self.recover_header(header);
        let mut branches = vec![(first, self.block(BlockKind::If)?)];
        let mut otherwise = None;
        while self.is_word("else") || self.is_word("elseif") {
            if otherwise.is_some() {
                let error = Error::new("nothing comes after ELSE but END IF");
                self.errors.push(error.at(&self.span()));
            }
            let is_else = self.take_word("else");
            if is_else && !self.is_word("if") {
                let line_end = self.expect_line_end();
                self.recover(line_end);
                otherwise = Some(self.block(BlockKind::If)?);
                continue;
            }
            self.advance();
            let header = self.condition();
            let condition = self.recover_header(header);
            branches.push((condition, self.block(BlockKind::If)?));
        }
        self.close_line(BlockKind::If, &opener)?;
        let otherwise = otherwise.unwrap_or_default();
        Ok(StatementKind::If {
            branches,
            otherwise,
        })
    }

    /// Returns whether an IF has its statement on its own line.
    pub(super) fn is_more_after_then(&self) -> bool {
        let line = self.tokens.iter().skip(self.next).map(|token| &token.kind);
        let mut after = line
            .take_while(|kind| !matches!(kind, TokenKind::LineEnd | TokenKind::End))
            .skip_while(|kind| **kind != TokenKind::Word("then".into()));
        after.next().is_some() && after.next().is_some()
    }

    fn condition(&mut self) -> Result<Expression, Error> {
        let condition = self.expression()?;
        self.expect_word("then")?;
        Ok(condition)
    }

    /// Parses the rest of the line that opens a block; if it is faulty, the block is parsed all
    /// the same.
    fn recover_header(&mut self, header: Result<Expression, Error>) -> Expression {
        let header = header.and_then(|header| self.expect_line_end().map(|()| header));
        self.recover(header).unwrap_or(Expression {
            kind: ExpressionKind::Value(Value::Nothing),
            span: 0..0,
        })
    }

    /// Parses `IF` with one statement, and perhaps another after ELSE, on its line.
    pub(super) fn inline_conditional(&mut self) -> Result<StatementKind, Error> {
        self.advance();
        let condition = self.condition()?;
        let then = self.nested(Self::inline_statement)?;
        let mut otherwise = Block::new();
        if self.take_word("else") {
            otherwise.push(self.nested(Self::inline_statement)?);
        }
        Ok(StatementKind::If {
            branches: vec![(condition, vec![then])],
            otherwise,
        })
    }

    /// Parses `FOR` and `FOR EACH`.
    pub(super) fn counted_loop(&mut self) -> Result<Option<StatementKind>, Error> {
        let opener = self.span();
        self.advance();
        let is_each = self.is_word("each") && matches!(self.peek_after(1), TokenKind::Word(_));
        if is_each {
            self.advance();
        }
        let header = self.loop_header(is_each);
        let header = self.recover(header);
        let body = self.block(BlockKind::For)?;
        let is_closed = self.close(BlockKind::For, &opener);
        let Some((variable, values)) = header else {
            self.skip_line();
            return Ok(None);
        };
        if is_closed {
            self.closing_variable(&variable)?;
        }
        Ok(Some(match values {
            Values::Each(list) => StatementKind::ForEach {
                variable,
                list,
                body,
            },
            Values::Range { from, to, step } => StatementKind::For {
                variable,
                from,
                to,
                step,
                body,
            },
        }))
    }

    /// Reads the optional variable after NEXT.
    fn closing_variable(&mut self, variable: &Name) -> Result<(), Error> {
        let span = self.span();
        if !self.is_line_end() && self.expect_name("the end of the line")? != *variable {
            let message = format!("the loop that ends here is that of `{variable}`");
            return Err(Error::new(message).at(&span));
        }
        self.expect_line_end()
    }

    fn loop_header(&mut self, is_each: bool) -> Result<(Name, Values), Error> {
        let variable = self.expect_name("the name of a variable")?;
        self.assigned.insert(Name::clone(&variable));
        let values = if is_each {
            self.expect_word("in")?;
            Values::Each(self.expression()?)
        } else {
            self.expect_symbol("=")?;
            let from = self.expression()?;
            self.expect_word("to")?;
            let to = self.expression()?;
            let step = self.take_word("step").then(|| self.expression());
            Values::Range {
                from,
                to,
                step: step.transpose()?,
            }
        };
        self.expect_line_end()?;
        Ok((variable, values))
    }

    pub(super) fn while_loop(&mut self) -> Result<StatementKind, Error> {
        let opener = self.span();
        self.advance();
        let header = self.expression();
        let condition = self.recover_header(header);
        let body = self.block(BlockKind::While)?;
        self.close_line(BlockKind::While, &opener)?;
        Ok(StatementKind::While { condition, body })
    }

    /// Parses `FUNCTION` and `SUB`, which only differ in their names.
    pub(super) fn function(&mut self, kind: BlockKind) -> Result<(), Error> {
        let opener = self.span();
        if !self.opened.is_empty() {
            let name = kind.as_str();
            let error = Error::new(format!("{name} is not allowed inside another block"));
            self.errors.push(error.at(&opener));
        }
        self.advance();
        let header = self.function_header();
        let header = self.recover(header);
        let body = self.block(kind)?;
        self.close_line(kind, &opener)?;
        if let Some((name, parameters)) = header {
            let function = Function { parameters, body };
            self.tree.functions.insert(name, function);
        }
        Ok(())
    }

    fn function_header(&mut self) -> Result<(Name, Vec<Name>), Error> {
        let span = self.span();
        let name = self.expect_name("the name of the function")?;
        if functions::find(&name).is_some() {
            return Err(Error::new(format!("there is a built-in function `{name}`")).at(&span));
        }
        if self.tree.functions.contains_key(&name) {
            return Err(Error::new(format!("there is another function `{name}`")).at(&span));
        }
        let mut parameters = Vec::new();
        if self.take_symbol("(") && !self.take_symbol(")") {
            loop {
                let span = self.span();
                let parameter = self.expect_name("the name of a parameter")?;
                if parameters.contains(&parameter) {
                    return Err(
                        Error::new(format!("there are two parameters `{parameter}`")).at(&span),
                    );
                }
                self.assigned.insert(Name::clone(&parameter));
                parameters.push(parameter);
                if self.take_symbol(")") {
                    break;
                }
                self.expect_symbol(",")?;
            }
        }
        self.expect_line_end()?;
        Ok((name, parameters))
    }
}

/// Range of a loop variable.
enum Values {
    Each(Expression),
    Range {
        from: Expression,
        to: Expression,
        step: Option<Expression>,
    },
}
