//! Statements that have blocks.

use rust_decimal::Decimal;

use super::{Flow, Run, Stop};
use crate::error::Error;
use crate::tree::{Block, Expression, Loop, Name};
use crate::value::{List, Value};

/// Control flow after an iteration.
enum Turn {
    Again,
    Leave(Flow),
}

impl Run<'_> {
    pub(super) fn choose(
        &mut self,
        branches: &[(Expression, Block)],
        otherwise: &Block,
    ) -> Result<Flow, Stop> {
        for (condition, block) in branches {
            if self.condition(condition)? {
                return self.block(block);
            }
        }
        self.block(otherwise)
    }

    pub(super) fn count(
        &mut self,
        variable: &Name,
        [from, to]: [&Expression; 2],
        step: Option<&Expression>,
        body: &Block,
    ) -> Result<Flow, Stop> {
        let (from, to) = (self.number(from)?, self.number(to)?);
        let step = match step {
            Some(step) => self.number(step)?,
            None => Decimal::ONE,
        };
        if step.is_zero() {
            return Err(Error::new("a loop with STEP 0 never ends").into());
        }
        let is_up = step.is_sign_positive();
        let mut next = Some(from);
        while let Some(number) = next
            && (if is_up { number <= to } else { number >= to })
        {
            self.assign(variable, Value::Number(number));
            match self.turn(body, Loop::For)? {
                Turn::Again => next = number.checked_add(step),
                Turn::Leave(flow) => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn each(
        &mut self,
        variable: &Name,
        list: &List,
        body: &Block,
    ) -> Result<Flow, Stop> {
        for item in &list.items {
            self.assign(variable, item.clone());
            if let Turn::Leave(flow) = self.turn(body, Loop::For)? {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn repeat(&mut self, condition: &Expression, body: &Block) -> Result<Flow, Stop> {
        while self.condition(condition)? {
            if let Turn::Leave(flow) = self.turn(body, Loop::While)? {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// Runs the body of a loop once.
    fn turn(&mut self, body: &Block, of: Loop) -> Result<Turn, Stop> {
        self.meter.count(1)?;
        Ok(match self.block(body)? {
            Flow::Next => Turn::Again,
            Flow::Exit(exited) if exited == of => Turn::Leave(Flow::Next),
            flow => Turn::Leave(flow),
        })
    }

    fn number(&mut self, expression: &Expression) -> Result<Decimal, Stop> {
        match self.value(expression)? {
            Value::Number(number) => Ok(number),
            value => {
                let message = format!("FOR needs numbers, and this is {}", value.kind());
                Err(Error::new(message).at(&expression.span).into())
            }
        }
    }
}
