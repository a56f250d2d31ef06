//! Expressions, down to variables and calls.

use std::iter;
use std::sync::Arc;

use rust_decimal::Decimal;

use super::elements::element;
use super::operators::apply;
use super::{Flow, Run, Stop};
use crate::error::{Error, no_variable};
use crate::tree::{Expression, ExpressionKind, Name, Operator};
use crate::value::{List, Object, Value};

impl Run<'_> {
    pub(super) fn value(&mut self, expression: &Expression) -> Result<Value, Stop> {
        let span = &expression.span;
        self.meter.enter().map_err(|error| error.at(span))?;
        let value = self.evaluate(&expression.kind);
        self.meter.leave();
        value.map_err(|stop| stop.at(span))
    }

    fn evaluate(&mut self, expression: &ExpressionKind) -> Result<Value, Stop> {
        match expression {
            ExpressionKind::Value(value) => Ok(value.clone()),
            ExpressionKind::Variable(name) => Ok(self.variable(name)?.clone()),
            ExpressionKind::List(items) => {
                let list: List = self.values(items)?.into_iter().collect();
                self.meter.make(list.size)?;
                Ok(Value::List(Arc::new(list)))
            }
            ExpressionKind::Object(members) => {
                let mut object = Object::default();
                for (name, value) in members {
                    object.insert(Arc::clone(name), self.value(value)?);
                }
                self.meter.make(object.size)?;
                Ok(Value::Object(Arc::new(object)))
            }
            ExpressionKind::Negate(operand) => {
                let zero = Value::Number(Decimal::ZERO);
                let value = self.value(operand)?;
                Ok(apply(Operator::Subtract, &zero, &value, &mut self.meter)?)
            }
            ExpressionKind::Not(operand) => Ok(Value::Boolean(!self.condition(operand)?)),
            ExpressionKind::Chain(first, rest) => self.chain(first, rest),
            ExpressionKind::Element(base, path) => {
                let mut value = self.value(base)?;
                for key in path {
                    let found = element(&value, &self.value(key)?);
                    value = found.map_err(|error| error.at(&key.span))?;
                }
                Ok(value)
            }
            ExpressionKind::Builtin(builtin, arguments) => {
                let arguments = self.values(arguments)?;
                Ok(builtin.call(arguments, &mut self.meter)?)
            }
            ExpressionKind::Call(name, arguments) => {
                let arguments = self.values(arguments)?;
                self.call(name, arguments)
            }
        }
    }

    pub(super) fn condition(&mut self, condition: &Expression) -> Result<bool, Stop> {
        let value = self.value(condition)?;
        Ok(value.truth().map_err(|error| error.at(&condition.span))?)
    }

    pub(super) fn values(&mut self, expressions: &[Expression]) -> Result<Vec<Value>, Stop> {
        let values = expressions.iter().map(|expression| self.value(expression));
        values.collect()
    }

    /// Evaluates a chain of operators. The right side of AND and OR is evaluated only if needed.
    fn chain(
        &mut self,
        first: &Expression,
        rest: &[(Operator, Expression)],
    ) -> Result<Value, Stop> {
        if let [(decided @ (Operator::And | Operator::Or), _), ..] = rest {
            let goes_on = *decided == Operator::And;
            for operand in iter::once(first).chain(rest.iter().map(|(_, operand)| operand)) {
                if self.condition(operand)? != goes_on {
                    return Ok(Value::Boolean(!goes_on));
                }
            }
            return Ok(Value::Boolean(goes_on));
        }
        let mut value = self.value(first)?;
        for (operator, operand) in rest {
            let operand = self.value(operand)?;
            value = apply(*operator, &value, &operand, &mut self.meter)?;
        }
        Ok(value)
    }

    fn call(&mut self, name: &Name, arguments: Vec<Value>) -> Result<Value, Stop> {
        let tree = self.tree;
        let function = tree.functions.get(name);
        let function = function.ok_or_else(|| Error::new(format!("unknown function `{name}`")))?;
        let frame = function.parameters.iter().cloned().zip(arguments);
        self.frames.push(frame.collect());
        let flow = self.block(&function.body)?;
        self.frames.pop();
        match flow {
            Flow::Return(value) => Ok(value),
            _ => Ok(Value::Nothing),
        }
    }

    pub(super) fn variable(&self, name: &Name) -> Result<&Value, Error> {
        let mut scopes = self.frames.last().into_iter().chain(self.frames.first());
        scopes
            .find_map(|scope| scope.get(name))
            .ok_or_else(|| self.no_variable(name))
    }

    fn no_variable(&self, name: &Name) -> Error {
        let scopes = self.frames.last().into_iter().chain(self.frames.first());
        no_variable(
            name,
            scopes.flat_map(|scope| scope.keys().map(|name| &**name)),
        )
    }
}
