//! Expressions, by precedence climbing.

use std::sync::Arc;

use super::{Call, NO_VALUES, Parser};
use crate::error::Error;
use crate::functions;
use crate::lexer::TokenKind;
use crate::tree::{Expression, ExpressionKind, Operator};
use crate::value::Value;

/// Operators by precedence, from the lowest. NOT stands between AND and the comparisons, a minus
/// before a value between the products and the power.
const LEVELS: [&[Operator]; 7] = [
    &[Operator::Or],
    &[Operator::And],
    &[
        Operator::Equal,
        Operator::NotEqual,
        Operator::Less,
        Operator::LessEqual,
        Operator::Greater,
        Operator::GreaterEqual,
    ],
    &[Operator::Join],
    &[Operator::Add, Operator::Subtract],
    &[Operator::Modulo],
    &[Operator::Multiply, Operator::Divide],
];
const COMPARISONS: usize = 2;

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Expression, Error> {
        self.nested(|parser| parser.level(0))
    }

    /// Parses values joined by operators of this level or higher.
    fn level(&mut self, level: usize) -> Result<Expression, Error> {
        if level == COMPARISONS && self.is_word("not") {
            return self.negation(|parser| parser.level(COMPARISONS), ExpressionKind::Not);
        }
        let Some(operators) = LEVELS.get(level) else {
            return self.signed();
        };
        let start = self.span().start;
        let first = self.level(level + 1)?;
        let mut rest = Vec::new();
        loop {
            if let Some(operator) = self.take_operator(operators) {
                rest.push((operator, self.level(level + 1)?));
            } else if level == COMPARISONS && self.is_word("is") {
                rest.push(self.null_test()?);
            } else {
                break;
            }
        }
        Ok(self.chain(start, first, rest))
    }

    /// Parses `IS NULL` and `IS NOT NULL`, as a comparison with NOTHING.
    fn null_test(&mut self) -> Result<(Operator, Expression), Error> {
        self.advance();
        let operator = match self.take_word("not") {
            true => Operator::NotEqual,
            false => Operator::Equal,
        };
        let start = self.span().start;
        if !self.take_word("null") && !self.take_word("nothing") {
            return Err(self.expected("NULL"));
        }
        let nothing = self.make_expression(start, ExpressionKind::Value(Value::Nothing));
        Ok((operator, nothing))
    }

    fn chain(
        &self,
        start: usize,
        first: Expression,
        rest: Vec<(Operator, Expression)>,
    ) -> Expression {
        if rest.is_empty() {
            return first;
        }
        let kind = ExpressionKind::Chain(Box::new(first), rest);
        self.make_expression(start, kind)
    }

    fn make_expression(&self, start: usize, kind: ExpressionKind) -> Expression {
        let span = self.span_from(start);
        Expression { kind, span }
    }

    fn take_operator(&mut self, operators: &[Operator]) -> Option<Operator> {
        let found = match self.peek() {
            TokenKind::Word(word) => &**word,
            TokenKind::Symbol(symbol) => symbol,
            _ => return None,
        };
        let operator = operators
            .iter()
            .find(|operator| operator.as_str().eq_ignore_ascii_case(found))?;
        self.advance();
        Some(*operator)
    }

    /// Parses a prefix operator and its operand.
    fn negation(
        &mut self,
        operand: impl FnOnce(&mut Self) -> Result<Expression, Error>,
        kind: fn(Box<Expression>) -> ExpressionKind,
    ) -> Result<Expression, Error> {
        let start = self.span().start;
        self.advance();
        let operand = self.nested(operand)?;
        Ok(self.make_expression(start, kind(Box::new(operand))))
    }

    fn signed(&mut self) -> Result<Expression, Error> {
        if self.is_symbol("-") {
            return self.negation(Self::signed, ExpressionKind::Negate);
        }
        self.power()
    }

    fn power(&mut self) -> Result<Expression, Error> {
        let start = self.span().start;
        let first = self.element()?;
        let mut rest = Vec::new();
        while let Some(operator) = self.take_operator(&[Operator::Power]) {
            rest.push((operator, self.exponent()?));
        }
        Ok(self.chain(start, first, rest))
    }

    /// Parses an exponent. Only here does a minus bind more tightly than the power, so that `2 ^
    /// -1` works as expected.
    fn exponent(&mut self) -> Result<Expression, Error> {
        if self.is_symbol("-") {
            return self.negation(Self::exponent, ExpressionKind::Negate);
        }
        self.element()
    }

    fn element(&mut self) -> Result<Expression, Error> {
        let start = self.span().start;
        let value = self.value()?;
        let path = self.path()?;
        if path.is_empty() {
            return Ok(value);
        }
        let kind = ExpressionKind::Element(Box::new(value), path);
        Ok(self.make_expression(start, kind))
    }

    /// Parses any number of `[index]` and `.name`.
    pub(super) fn path(&mut self) -> Result<Vec<Expression>, Error> {
        let mut path = Vec::new();
        loop {
            if self.take_symbol("[") {
                path.push(self.expression()?);
                self.expect_symbol("]")?;
            } else if self.take_symbol(".") {
                let span = self.span();
                self.expect_name("a name")?;
                // Names in objects are the caller's data, so their case is kept.
                let name = self.source.get(span.clone()).unwrap_or_default();
                let kind = ExpressionKind::Value(Value::text(name));
                path.push(Expression { kind, span });
            } else {
                return Ok(path);
            }
        }
    }

    fn value(&mut self) -> Result<Expression, Error> {
        let start = self.span().start;
        let value = match self.peek() {
            TokenKind::Number(number) => Value::Number(*number),
            TokenKind::Text(text) => Value::Text(Arc::clone(text)),
            TokenKind::Symbol("(") => return self.parentheses(),
            TokenKind::Symbol("[") => {
                self.advance();
                let kind = ExpressionKind::List(self.arguments("]")?);
                return Ok(self.make_expression(start, kind));
            }
            TokenKind::Symbol("{") => return self.object(),
            TokenKind::Word(word) => match &**word {
                "true" => Value::Boolean(true),
                "false" => Value::Boolean(false),
                "nothing" | "null" => Value::Nothing,
                word if NO_VALUES.contains(&word) => return Err(self.expected("a value")),
                _ => return self.name(),
            },
            _ => return Err(self.expected("a value")),
        };
        self.advance();
        Ok(self.make_expression(start, ExpressionKind::Value(value)))
    }

    /// Parses `{ "name": value, … }`, over any number of lines. Names may lack quotes.
    fn object(&mut self) -> Result<Expression, Error> {
        let start = self.span().start;
        self.advance();
        let mut members = Vec::new();
        loop {
            self.skip_line_ends();
            if self.take_symbol("}") {
                break;
            }
            let span = self.span();
            let name = match self.peek() {
                TokenKind::Text(text) => Arc::clone(text),
                TokenKind::Word(_) => self.source.get(span).unwrap_or_default().into(),
                _ => return Err(self.expected("the name of a member, or `}`")),
            };
            self.advance();
            self.expect_symbol(":")?;
            self.skip_line_ends();
            members.push((name, self.expression()?));
            self.skip_line_ends();
            if !self.is_symbol("}") && !self.take_symbol(",") {
                return Err(self.expected("`,` or `}`"));
            }
        }
        Ok(self.make_expression(start, ExpressionKind::Object(members)))
    }

    fn skip_line_ends(&mut self) {
        while *self.peek() == TokenKind::LineEnd {
            self.advance();
        }
    }

    fn parentheses(&mut self) -> Result<Expression, Error> {
        self.advance();
        let expression = self.expression()?;
        self.expect_symbol(")")?;
        Ok(expression)
    }

    /// Parses a variable, or the call of a function.
    fn name(&mut self) -> Result<Expression, Error> {
        let start = self.span().start;
        let name = self.expect_name("a value")?;
        if !self.take_symbol("(") {
            let span = self.span_from(start);
            self.reads.push((Arc::clone(&name), span.clone()));
            let kind = ExpressionKind::Variable(name);
            return Ok(Expression { kind, span });
        }
        let arguments = self.arguments(")")?;
        let span = self.span_from(start);
        let Some(builtin) = functions::find(&name) else {
            self.calls.push(Call {
                name: Arc::clone(&name),
                arguments: arguments.len(),
                span: span.clone(),
            });
            let kind = ExpressionKind::Call(name, arguments);
            return Ok(Expression { kind, span });
        };
        builtin
            .check_count(arguments.len())
            .map_err(|error| error.at(&span))?;
        let kind = ExpressionKind::Builtin(builtin, arguments);
        Ok(Expression { kind, span })
    }

    /// Parses expressions between commas, up to the symbol that closes them.
    fn arguments(&mut self, close: &'static str) -> Result<Vec<Expression>, Error> {
        let mut arguments = Vec::new();
        if self.take_symbol(close) {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if self.take_symbol(close) {
                return Ok(arguments);
            }
            if !self.take_symbol(",") {
                return Err(self.expected(&format!("`,` or `{close}`")));
            }
        }
    }
}
