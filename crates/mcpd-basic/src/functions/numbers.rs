//! Number functions.

use rust_decimal::{Decimal, MathematicalOps as _, RoundingStrategy};

use super::{Arguments, Builtin, MAX_ARGUMENTS};
use crate::error::Error;
use crate::value::Value;

/// Maximum number of decimal places.
const MAX_DECIMALS: usize = Decimal::MAX_SCALE as usize;

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("int", (1, 1), |arguments| {
        Ok(Value::Number(arguments.number(0)?.floor()))
    }),
    Builtin::new("round", (1, 2), |arguments| {
        Ok(Value::Number(round(arguments)?))
    }),
    Builtin::new("format", (2, 2), format),
    Builtin::new("abs", (1, 1), |arguments| {
        Ok(Value::Number(arguments.number(0)?.abs()))
    }),
    Builtin::new("sqrt", (1, 1), |arguments| {
        let root = arguments.number(0)?.sqrt();
        let root = root.ok_or_else(|| Error::new("a negative number has no square root"))?;
        Ok(Value::Number(root))
    }),
    Builtin::new("min", (1, MAX_ARGUMENTS), |arguments| {
        extreme(arguments, Decimal::min)
    }),
    Builtin::new("max", (1, MAX_ARGUMENTS), |arguments| {
        extreme(arguments, Decimal::max)
    }),
];

/// Rounds to a number of decimal places, halves away from zero.
fn round(arguments: &Arguments<'_>) -> Result<Decimal, Error> {
    let digits = match arguments.is_given(1) {
        true => arguments.whole(1, 0, MAX_DECIMALS)?,
        false => 0,
    };
    let number = arguments.number(0)?;
    let digits = u32::try_from(digits).unwrap_or(Decimal::MAX_SCALE);
    Ok(number.round_dp_with_strategy(digits, RoundingStrategy::MidpointAwayFromZero))
}

/// Formats a number with a fixed number of decimal places.
fn format(arguments: &mut Arguments<'_>) -> Result<Value, Error> {
    let number = round(arguments)?.normalize();
    let digits = arguments.whole(1, 0, MAX_DECIMALS)?;
    // The library's formatter panics if number and decimal places are both long.
    let point = if number.scale() == 0 && digits > 0 {
        "."
    } else {
        ""
    };
    let missing = digits - usize::try_from(number.scale()).unwrap_or(digits);
    arguments.make_text(&format!("{number}{point}{}", "0".repeat(missing)))
}

/// Returns the least or the greatest of the arguments, or of a list.
fn extreme(
    arguments: &mut Arguments<'_>,
    better: fn(Decimal, Decimal) -> Decimal,
) -> Result<Value, Error> {
    if let Value::List(list) = arguments.value(0)
        && arguments.values.len() == 1
    {
        let items = list.items.clone();
        arguments.meter.count(items.len())?;
        arguments.values = items;
    }
    let mut best = arguments.number(0)?;
    for index in 1..arguments.values.len() {
        best = better(best, arguments.number(index)?);
    }
    Ok(Value::Number(best))
}
