//! Date functions. A date may have a time of day, and has no time zone.

use std::str::FromStr as _;

use jiff::civil::{Date, DateTime, Time};
use jiff::{Span, ToSpan as _, Unit, Zoned};
use rust_decimal::prelude::ToPrimitive as _;

use super::{Arguments, Builtin};
use crate::error::Error;
use crate::value::Value;

/// Units in the singular.
const UNITS: [(&str, Unit); 7] = [
    ("year", Unit::Year),
    ("month", Unit::Month),
    ("week", Unit::Week),
    ("day", Unit::Day),
    ("hour", Unit::Hour),
    ("minute", Unit::Minute),
    ("second", Unit::Second),
];

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("date", (1, 3), date),
    Builtin::new("today", (0, 0), |_| Ok(Value::Date(midnight(now().date())))),
    Builtin::new("now", (0, 0), |_| Ok(Value::Date(now()))),
    Builtin::new("year", (1, 1), |arguments| {
        number(arguments.date(0)?.year())
    }),
    Builtin::new("month", (1, 1), |arguments| {
        number(arguments.date(0)?.month())
    }),
    Builtin::new("day", (1, 1), |arguments| number(arguments.date(0)?.day())),
    Builtin::new("dateadd", (3, 3), |arguments| {
        let date = arguments.date(0)?;
        let amount = arguments.number(1)?;
        let amount = amount.is_integer().then(|| amount.to_i64()).flatten();
        let amount = amount.ok_or_else(|| arguments.argument_error(1, "a whole number"))?;
        let span = span(amount, unit(arguments)?);
        let date = span.and_then(|span| date.checked_add(span).ok());
        Ok(Value::Date(date.ok_or_else(out_of_range)?))
    }),
    Builtin::new("datediff", (3, 3), |arguments| {
        let (from, to) = (arguments.date(0)?, arguments.date(1)?);
        let unit = unit(arguments)?;
        let difference = from.until((unit, to)).map_err(|_| out_of_range())?;
        number(match unit {
            Unit::Year => difference.get_years().into(),
            Unit::Month => difference.get_months().into(),
            Unit::Week => difference.get_weeks().into(),
            Unit::Day => difference.get_days().into(),
            Unit::Hour => difference.get_hours().into(),
            Unit::Minute => difference.get_minutes(),
            _ => difference.get_seconds(),
        })
    }),
];

fn number(number: impl Into<rust_decimal::Decimal>) -> Result<Value, Error> {
    Ok(Value::Number(number.into()))
}

fn midnight(date: Date) -> DateTime {
    date.to_datetime(Time::midnight())
}

/// Returns the current time in the time zone of the machine, to the second.
fn now() -> DateTime {
    let now = Zoned::now().datetime();
    now.with().subsec_nanosecond(0).build().unwrap_or(now)
}

fn out_of_range() -> Error {
    Error::new("invalid date: years must be between -9999 and 9999")
}

/// Makes a date from a text, or from year, month and day.
fn date(arguments: &mut Arguments<'_>) -> Result<Value, Error> {
    if let Value::Date(date) = arguments.value(0) {
        return Ok(Value::Date(*date));
    }
    if !arguments.is_given(1) {
        let text = arguments.text(0)?;
        let date = DateTime::from_str(text.trim());
        return date.map(Value::Date).map_err(|_| {
            Error::new("the string is not a date")
                .help("a date is written 2026-01-31 or 2026-01-31 17:30")
        });
    }
    let year = arguments.whole(0, 0, 9999)?.to_i16().unwrap_or_default();
    let month = arguments.whole(1, 1, 12)?.to_i8().unwrap_or_default();
    let day = arguments.whole(2, 1, 31)?.to_i8().unwrap_or_default();
    let date = Date::new(year, month, day).map_err(|_| out_of_range())?;
    Ok(Value::Date(midnight(date)))
}

fn unit(arguments: &mut Arguments<'_>) -> Result<Unit, Error> {
    let name = arguments.text(2)?.to_lowercase();
    let singular = name.strip_suffix('s').unwrap_or(&name);
    let unit = UNITS.iter().find(|(unit, _)| *unit == singular);
    let (_, unit) = unit.ok_or_else(|| {
        Error::new("unknown unit of time")
            .help("units are year, month, week, day, hour, minute and second")
    })?;
    Ok(*unit)
}

fn span(amount: i64, unit: Unit) -> Option<Span> {
    let span = 0.seconds();
    match unit {
        Unit::Year => span.try_years(amount),
        Unit::Month => span.try_months(amount),
        Unit::Week => span.try_weeks(amount),
        Unit::Day => span.try_days(amount),
        Unit::Hour => span.try_hours(amount),
        Unit::Minute => span.try_minutes(amount),
        _ => span.try_seconds(amount),
    }
    .ok()
}
