//! Binary operators.

use std::cmp::Ordering;

use rust_decimal::prelude::ToPrimitive as _;
use rust_decimal::{Decimal, MathematicalOps as _};

use crate::error::Error;
use crate::limits::Meter;
use crate::tree::Operator;
use crate::value::{Size, Value};

/// Applies any operator but AND and OR, which may skip their right side.
pub(super) fn apply(
    operator: Operator,
    left: &Value,
    right: &Value,
    meter: &mut Meter,
) -> Result<Value, Error> {
    use Operator::{Add, Equal, Greater, GreaterEqual, Join, Less, LessEqual, NotEqual};
    if operator == Join || operator == Add && either_is_text(left, right) {
        return join(left, right, meter);
    }
    meter.read(left.size().bytes.min(right.size().bytes))?;
    Ok(Value::Boolean(match operator {
        Equal => left == right,
        NotEqual => left != right,
        Less => order(left, right)?.is_lt(),
        LessEqual => order(left, right)?.is_le(),
        Greater => order(left, right)?.is_gt(),
        GreaterEqual => order(left, right)?.is_ge(),
        _ => return calculate(operator, left, right, meter),
    }))
}

fn either_is_text(left: &Value, right: &Value) -> bool {
    matches!(left, Value::Text(_)) || matches!(right, Value::Text(_))
}

fn join(left: &Value, right: &Value, meter: &mut Meter) -> Result<Value, Error> {
    let text = format!("{left}{right}");
    meter.make(Size::of_text(text.len()))?;
    Ok(Value::Text(text.into()))
}

fn order(left: &Value, right: &Value) -> Result<Ordering, Error> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(left.cmp(right)),
        (Value::Text(left), Value::Text(right)) => Ok(left.cmp(right)),
        (Value::Date(left), Value::Date(right)) => Ok(left.cmp(right)),
        _ => Err(operand_error("compared", left, right)),
    }
}

fn operand_error(done: &str, left: &Value, right: &Value) -> Error {
    let error = Error::new(format!(
        "{} and {} cannot be {done}",
        left.kind(),
        right.kind()
    ));
    let help = match (left, right) {
        (Value::Nothing, _) | (_, Value::Nothing) => {
            "NOTHING means that a parameter was not passed; test it with ISEMPTY"
        }
        (Value::Date(_), _) | (_, Value::Date(_)) => {
            "DATE converts a string to a date; DATEADD and DATEDIFF calculate with dates"
        }
        (Value::Text(_), Value::Number(_)) | (Value::Number(_), Value::Text(_)) => {
            "VAL converts a string to a number"
        }
        _ => return error,
    };
    error.help(help)
}

fn calculate(
    operator: Operator,
    left: &Value,
    right: &Value,
    meter: &mut Meter,
) -> Result<Value, Error> {
    let (Value::Number(left), Value::Number(right)) = (left, right) else {
        return Err(operand_error("calculated with", left, right));
    };
    let is_division_by_zero = match operator {
        Operator::Divide | Operator::Modulo => right.is_zero(),
        Operator::Power => left.is_zero() && right.is_sign_negative(),
        _ => false,
    };
    if is_division_by_zero {
        return Err(Error::new("division by zero"));
    }
    if operator == Operator::Power && left.is_sign_negative() && !right.is_integer() {
        return Err(Error::new("a negative number can have only whole powers"));
    }
    let result = match operator {
        Operator::Add => left.checked_add(*right),
        Operator::Subtract => left.checked_sub(*right),
        Operator::Multiply => left.checked_mul(*right),
        Operator::Divide => left.checked_div(*right),
        Operator::Modulo => left.checked_rem(*right),
        _ => power(*left, *right, meter)?,
    };
    let result = result
        .ok_or_else(|| Error::new("the result is too big: a number may have at most 28 digits"))?;
    Ok(Value::Number(result.normalize()))
}

/// Returns a power; `None` if it is too big.
fn power(base: Decimal, exponent: Decimal, meter: &mut Meter) -> Result<Option<Decimal>, Error> {
    /// Cost of a fractional power, in steps.
    const FRACTIONAL_POWER_STEPS: usize = 100;
    let (is_whole, shrinks) = (exponent.is_integer(), exponent.is_sign_negative());
    let power = if is_whole {
        let magnitude = exponent.abs().to_u64();
        let magnitude = magnitude.and_then(|magnitude| whole_power(base, magnitude));
        match shrinks {
            true => magnitude.and_then(|magnitude| Decimal::ONE.checked_div(magnitude)),
            false => magnitude,
        }
    } else {
        meter.count(FRACTIONAL_POWER_STEPS)?;
        base.checked_powd(exponent)
    };
    let size = base.abs();
    let is_tiny = size != Decimal::ONE && (size > Decimal::ONE) == shrinks;
    Ok(power.or(is_tiny.then_some(Decimal::ZERO)))
}

/// Computes a power by squaring, because exponents may be big.
fn whole_power(base: Decimal, mut exponent: u64) -> Option<Decimal> {
    let mut result = Decimal::ONE;
    let mut square = base;
    loop {
        if exponent % 2 == 1 {
            result = result.checked_mul(square)?;
        }
        exponent /= 2;
        if exponent == 0 {
            return Some(result);
        }
        square = square.checked_mul(square)?;
    }
}
