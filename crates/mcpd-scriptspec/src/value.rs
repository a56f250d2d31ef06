//! Whether a value is what an option wants, and the two forms in which it is passed on.

use std::{borrow::Cow, fmt::Write as _};

use crate::{
    decimal::{self, Parts},
    json::{self, Kind, Value},
    spec::{Bounds, ValueType},
};

/// Characters of a value that a message repeats.
const QUOTED: usize = 40;

/// Values of an enum that a message lists.
const LISTED: usize = 20;

/// A value in the forms in which a script gets it.
#[derive(Debug)]
pub(crate) struct Accepted<'a> {
    /// One line of JSON, for stdin.
    pub(crate) json: Cow<'a, str>,
    /// The text of a variable; `None` if it would be absurdly long.
    pub(crate) text: Option<Cow<'a, str>>,
}

/// Why a value is not what an option wants.
#[derive(Debug)]
pub(crate) struct Mismatch {
    pub(crate) kind: MismatchKind,
    /// Fragments for messages.
    pub(crate) expected: String,
    pub(crate) got: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MismatchKind {
    Type,
    /// The right type, but outside the bounds or the list.
    Bounds,
}

/// Whether a string that is exactly a number or a boolean counts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strings {
    /// Models send `"5"` where they mean 5.
    Coerced,
    /// Authors are expected to write what they mean.
    Kept,
}

/// Takes `value` for an option of `value_type`.
pub(crate) fn accept<'a>(
    value_type: &ValueType,
    value: Value<'a>,
    strings: Strings,
) -> Result<Accepted<'a>, Mismatch> {
    let accepted = match value_type {
        ValueType::String { size } => string(size, value),
        ValueType::Integer { size } => integer(size, value, strings),
        ValueType::Float { size } => float(size, value, strings),
        ValueType::Boolean => boolean(value, strings),
        ValueType::Any { size } => any(size, value),
        ValueType::Enum { values } => listed(values, value),
    };
    accepted.map_err(|Refused { kind, got }| Mismatch {
        kind,
        expected: expectation(value_type),
        got: got.unwrap_or_else(|| describe(value)),
    })
}

/// A mismatch before it is put into words.
struct Refused {
    kind: MismatchKind,
    /// What to say instead of the value itself.
    got: Option<String>,
}

const WRONG_TYPE: Refused = Refused {
    kind: MismatchKind::Type,
    got: None,
};
const OUT_OF_BOUNDS: Refused = Refused {
    kind: MismatchKind::Bounds,
    got: None,
};

fn string<'a>(size: &Bounds, value: Value<'a>) -> Result<Accepted<'a>, Refused> {
    let text = value.string().ok_or(WRONG_TYPE)?;
    within_length(size, &text)?;
    Ok(Accepted {
        json: Cow::Borrowed(value.text()),
        text: Some(text),
    })
}

fn integer<'a>(size: &Bounds, value: Value<'a>, strings: Strings) -> Result<Accepted<'a>, Refused> {
    let number = number(value, strings).ok_or(WRONG_TYPE)?;
    let parts = Parts::of(&number);
    if !parts.is_integer() {
        return Err(WRONG_TYPE);
    }
    if !size.contain(&parts) {
        return Err(OUT_OF_BOUNDS);
    }
    let digits = decimal::integer_text(number).ok_or(OUT_OF_BOUNDS)?;
    Ok(Accepted {
        json: digits.clone(),
        text: Some(digits),
    })
}

fn float<'a>(size: &Bounds, value: Value<'a>, strings: Strings) -> Result<Accepted<'a>, Refused> {
    let number = number(value, strings).ok_or(WRONG_TYPE)?;
    if !size.contain(&Parts::of(&number)) {
        return Err(OUT_OF_BOUNDS);
    }
    Ok(Accepted {
        json: number.clone(),
        text: decimal::plain_text(number),
    })
}

fn boolean<'a>(value: Value<'a>, strings: Strings) -> Result<Accepted<'a>, Refused> {
    let text = match (value.kind(), value.text()) {
        (Kind::Boolean, text) => text,
        (Kind::String, r#""true""#) if strings == Strings::Coerced => "true",
        (Kind::String, r#""false""#) if strings == Strings::Coerced => "false",
        _ => return Err(WRONG_TYPE),
    };
    Ok(Accepted {
        json: Cow::Borrowed(text),
        text: Some(Cow::Borrowed(text)),
    })
}

fn any<'a>(size: &Bounds, value: Value<'a>) -> Result<Accepted<'a>, Refused> {
    match value.kind() {
        Kind::String => within_length(size, &value.string().unwrap_or_default())?,
        Kind::Number if !size.contain(&Parts::of(value.text())) => return Err(OUT_OF_BOUNDS),
        _ => {}
    }
    Ok(as_it_is(value))
}

fn listed<'a>(values: &[String], value: Value<'a>) -> Result<Accepted<'a>, Refused> {
    let text = value.string().ok_or(WRONG_TYPE)?;
    if !values.iter().any(|listed| *listed == text) {
        return Err(OUT_OF_BOUNDS);
    }
    Ok(Accepted {
        json: Cow::Borrowed(value.text()),
        text: Some(text),
    })
}

/// A value of any type: strings raw, everything else as JSON.
pub(crate) fn as_it_is(value: Value<'_>) -> Accepted<'_> {
    let json = value.compact();
    let text = match value.kind() {
        Kind::String => value.string(),
        Kind::Number => decimal::plain_text(json.clone()),
        Kind::Null | Kind::Boolean | Kind::Array | Kind::Object => Some(json.clone()),
    };
    Accepted { json, text }
}

fn number<'a>(value: Value<'a>, strings: Strings) -> Option<Cow<'a, str>> {
    match value.kind() {
        Kind::Number => Some(Cow::Borrowed(value.text())),
        Kind::String if strings == Strings::Coerced => value
            .string()
            .filter(|text| decimal::number_len(text) == Some(text.len())),
        _ => None,
    }
}

/// Checks the number of code points.
fn within_length(size: &Bounds, text: &str) -> Result<(), Refused> {
    if size.are_open() {
        return Ok(());
    }
    let count = text.chars().count();
    if size.contain(&Parts::of(&count.to_string())) {
        return Ok(());
    }
    Err(Refused {
        got: Some(format!("a string of {count} characters")),
        ..OUT_OF_BOUNDS
    })
}

/// What a value of this type is, as a fragment: `an integer from 1 to 100`.
pub(crate) fn expectation(value_type: &ValueType) -> String {
    match value_type {
        ValueType::String { size } => counted("a string", size, "characters"),
        ValueType::Integer { size } => sized("an integer", size),
        ValueType::Float { size } => sized("a number", size),
        ValueType::Boolean => "`true` or `false`".to_owned(),
        ValueType::Any { size } => sized("a value", size),
        ValueType::Enum { values } => {
            let mut text = "one of ".to_owned();
            for (index, value) in values.iter().take(LISTED).enumerate() {
                let comma = if index == 0 { "" } else { ", " };
                write!(text, "{comma}{value:?}").expect("a string takes all that is written");
            }
            if values.len() > LISTED {
                text + " …"
            } else {
                text
            }
        }
    }
}

fn sized(what: &str, size: &Bounds) -> String {
    match (&size.min, &size.max) {
        (Some(min), Some(max)) => format!("{what} from {min} to {max}"),
        (Some(min), None) => format!("{what} of at least {min}"),
        (None, Some(max)) => format!("{what} of at most {max}"),
        (None, None) => what.to_owned(),
    }
}

fn counted(what: &str, size: &Bounds, unit: &str) -> String {
    match (&size.min, &size.max) {
        (Some(min), Some(max)) if min == max => format!("{what} of {min} {unit}"),
        (Some(min), Some(max)) => format!("{what} of {min} to {max} {unit}"),
        (None, None) => what.to_owned(),
        _ => format!("{} {unit}", sized(what, size)),
    }
}

/// A value as a fragment: `the string "ten"`.
pub(crate) fn describe(value: Value<'_>) -> String {
    let text = json::shorten(value.text(), QUOTED);
    match value.kind() {
        Kind::String => format!("the string {text}"),
        Kind::Number => format!("the number {text}"),
        Kind::Null | Kind::Boolean => format!("`{text}`"),
        Kind::Array | Kind::Object => value.kind().name().to_owned(),
    }
}
