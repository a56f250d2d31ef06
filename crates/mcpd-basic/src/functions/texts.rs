//! Text functions. They count in characters, from 1.

use std::sync::Arc;

use rust_decimal::prelude::ToPrimitive as _;

use super::{Arguments, Builtin};
use crate::error::Error;
use crate::value::{List, Size, Value, decimal};

pub(super) const FUNCTIONS: &[Builtin] = &[
    Builtin::new("ucase", (1, 1), |arguments| {
        let text = arguments.text(0)?;
        arguments.make_text(&text.to_uppercase())
    }),
    Builtin::new("lcase", (1, 1), |arguments| {
        let text = arguments.text(0)?;
        arguments.make_text(&text.to_lowercase())
    }),
    Builtin::new("trim", (1, 1), |arguments| {
        let text = arguments.text(0)?;
        arguments.make_text(text.trim())
    }),
    Builtin::new("left", (2, 2), |arguments| {
        let text = arguments.text(0)?;
        let length = arguments.whole(1, 0, usize::MAX)?;
        arguments.make_text(part(&text, 0, length))
    }),
    Builtin::new("right", (2, 2), |arguments| {
        let text = arguments.text(0)?;
        let length = arguments.whole(1, 0, usize::MAX)?;
        let start = text.chars().count().saturating_sub(length);
        arguments.make_text(part(&text, start, length))
    }),
    Builtin::new("mid", (2, 3), |arguments| {
        let text = arguments.text(0)?;
        let start = arguments.whole(1, 1, usize::MAX)? - 1;
        let length = match arguments.is_given(2) {
            true => arguments.whole(2, 0, usize::MAX)?,
            false => usize::MAX,
        };
        arguments.make_text(part(&text, start, length))
    }),
    Builtin::new("instr", (2, 2), |arguments| {
        let text = arguments.text(0)?;
        let wanted = arguments.text(1)?;
        let found = text.split_once(&*wanted);
        Ok(Value::count(
            found.map_or(0, |(before, _)| before.chars().count() + 1),
        ))
    }),
    Builtin::new("replace", (3, 3), replace),
    Builtin::new("split", (2, 2), split),
    Builtin::new("str", (1, 1), |arguments| {
        let text = arguments.value(0).to_string();
        arguments.make_text(&text)
    }),
    Builtin::new("val", (1, 1), |arguments| {
        if let Value::Number(_) = arguments.value(0) {
            return Ok(arguments.value(0).clone());
        }
        let text = arguments.text(0)?;
        let number = decimal(text.trim());
        number
            .map(Value::Number)
            .map_err(|error| error.help("ISNUMERIC returns whether a string is a number"))
    }),
    Builtin::new("isnumeric", (1, 1), |arguments| {
        Ok(Value::Boolean(match arguments.value(0) {
            Value::Number(_) => true,
            Value::Text(_) => decimal(arguments.text(0)?.trim()).is_ok(),
            _ => false,
        }))
    }),
    Builtin::new("chr", (1, 1), |arguments| {
        let code = arguments.whole(0, 1, char::MAX as usize)?;
        let char = u32::try_from(code).ok().and_then(char::from_u32);
        let char = char.ok_or_else(|| Error::new("no character has that number"))?;
        arguments.make_text(char.encode_utf8(&mut [0; 4]))
    }),
    Builtin::new("asc", (1, 1), |arguments| {
        let text = arguments.text(0)?;
        let first = text
            .chars()
            .next()
            .and_then(|char| u32::from(char).to_usize());
        let first = first.ok_or_else(|| Error::new("an empty text has no first character"))?;
        Ok(Value::count(first))
    }),
];

/// Returns at most `length` characters from the one at `start` on.
fn part(text: &str, start: usize, length: usize) -> &str {
    let offset = |text: &str, characters: usize| {
        text.char_indices()
            .nth(characters)
            .map_or(text.len(), |(offset, _)| offset)
    };
    let (_, rest) = text.split_at(offset(text, start));
    let (part, _) = rest.split_at(offset(rest, length));
    part
}

fn replace(arguments: &mut Arguments<'_>) -> Result<Value, Error> {
    let text = arguments.text(0)?;
    let old = arguments.text(1)?;
    let new = arguments.text(2)?;
    if old.is_empty() {
        return Err(arguments.argument_error(1, "a string that is not empty"));
    }
    // The size is checked before the text is made, which might exceed any memory.
    let times = text.matches(&*old).count();
    let bytes = (text.len() - times * old.len()).saturating_add(times.saturating_mul(new.len()));
    arguments.meter.fits(Size::of_text(bytes))?;
    arguments.make_text(&text.replace(&*old, &new))
}

fn split(arguments: &mut Arguments<'_>) -> Result<Value, Error> {
    let text = arguments.text(0)?;
    let separator = arguments.text(1)?;
    if separator.is_empty() {
        return Err(arguments.argument_error(1, "a string that is not empty"));
    }
    let parts = text.split(&*separator);
    let bytes = text.len() + parts.clone().count() * size_of::<Value>();
    arguments.meter.make(Size { bytes, depth: 1 })?;
    Ok(Value::List(Arc::new(
        parts.map(Value::text).collect::<List>(),
    )))
}
