//! Validation of a value against the type of an option, and its two forms for a script.

use std::borrow::Cow;

use crate::{
    decimal::{self, Parts},
    json::{self, Kind, Value},
    spec::{Bounds, Pattern, ScriptOption, ValueType},
};

mod words;

pub(crate) use words::{describe, expectation, one_of};

/// Maximum growth of an array or an object beyond its sent length, in bytes: integers with an
/// exponent are longer in digits.
const MAX_GROWTH: usize = 32 * 1024;

/// A valid value in the forms that a script gets.
#[derive(Debug)]
pub(crate) struct Accepted<'a> {
    /// One line of JSON, for stdin.
    pub(crate) json: Cow<'a, str>,
    /// The text of a variable; `None` if it would exceed the limit.
    pub(crate) text: Option<Cow<'a, str>>,
}

impl Accepted<'static> {
    /// Returns the text in place of a secret.
    pub(crate) fn mask() -> Self {
        Self {
            json: Cow::Borrowed(r#""[redacted]""#),
            text: Some(Cow::Borrowed("[redacted]")),
        }
    }
}

impl Accepted<'_> {
    pub(crate) fn into_owned(self) -> Accepted<'static> {
        Accepted {
            json: Cow::Owned(self.json.into_owned()),
            text: self.text.map(|text| Cow::Owned(text.into_owned())),
        }
    }
}

/// Mismatch of a value and the type of an option.
#[derive(Debug)]
pub(crate) struct Mismatch {
    pub(crate) kind: MismatchKind,
    /// Place in the value, such as `[3].name`; empty for the value itself.
    pub(crate) path: String,
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

/// Treatment of a string that is exactly one JSON value of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strings {
    /// Converted: models send `"5"` for 5, and `"[1]"` for a list.
    Coerced,
    /// Not converted: authors are expected to be exact.
    Kept,
}

/// Validates `value` for an option of `value_type`.
pub(crate) fn accept<'a>(
    value_type: &ValueType,
    value: Value<'a>,
    strings: Strings,
) -> Result<Accepted<'a>, Mismatch> {
    if strings == Strings::Coerced
        && let Some(accepted) = accept_as_text(value_type, value)
    {
        return accepted;
    }
    let accepted = match value_type {
        ValueType::String { size, pattern, .. } => string(size, pattern.as_ref(), value),
        ValueType::Integer { size } => integer(size, value, strings),
        ValueType::Float { size } => float(size, value, strings),
        ValueType::Boolean => boolean(value, strings),
        ValueType::Any { size } => any(size, value),
        ValueType::Enum { values } => accept_listed(values, value),
        ValueType::Array { size, items } => array(size, items.as_deref(), value, strings),
        ValueType::Object { properties } => object(properties.as_deref(), value, strings),
    };
    accepted.map_err(|refused| match refused {
        Refused::Type => mismatch(value_type, MismatchKind::Type, describe(value)),
        Refused::Bounds => mismatch(value_type, MismatchKind::Bounds, describe(value)),
        Refused::Count(got) => mismatch(value_type, MismatchKind::Bounds, got),
        Refused::Inside(mismatch) => mismatch,
    })
}

/// Converts a string that is exactly one JSON array or object to its content, if one is expected.
fn accept_as_text(
    value_type: &ValueType,
    value: Value<'_>,
) -> Option<Result<Accepted<'static>, Mismatch>> {
    let wanted = match value_type {
        ValueType::Array { .. } => Kind::Array,
        ValueType::Object { .. } => Kind::Object,
        _ => return None,
    };
    let text = value.string()?;
    let document = json::read(&text, 0).ok()?;
    // Two parsers could read different values of a duplicate key.
    if document.root.kind() != wanted || !document.duplicates.is_empty() {
        return None;
    }
    let accepted = accept(value_type, document.root, Strings::Coerced);
    Some(accepted.map(Accepted::into_owned))
}

fn mismatch(value_type: &ValueType, kind: MismatchKind, got: String) -> Mismatch {
    Mismatch {
        kind,
        path: String::new(),
        expected: expectation(value_type),
        got,
    }
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

/// A mismatch without its message.
enum Refused {
    Type,
    Bounds,
    /// Outside the bounds; with text to show instead of the value itself.
    Count(String),
    /// A fault of an element or a property.
    Inside(Mismatch),
}

fn string<'a>(
    size: &Bounds,
    pattern: Option<&Pattern>,
    value: Value<'a>,
) -> Result<Accepted<'a>, Refused> {
    let text = value.string().ok_or(Refused::Type)?;
    within_length(size, &text)?;
    if pattern.is_some_and(|pattern| !pattern.matches(&text)) {
        return Err(Refused::Bounds);
    }
    Ok(Accepted {
        json: Cow::Borrowed(value.text()),
        text: Some(text),
    })
}

fn integer<'a>(size: &Bounds, value: Value<'a>, strings: Strings) -> Result<Accepted<'a>, Refused> {
    let number = number(value, strings).ok_or(Refused::Type)?;
    let parts = Parts::of(&number);
    if !parts.is_integer() {
        return Err(Refused::Type);
    }
    if !size.contain(&parts) {
        return Err(Refused::Bounds);
    }
    let too_long = || {
        let most = decimal::MAX_PLAIN;
        Refused::Count(format!("one of more than {most} digits"))
    };
    let digits = decimal::integer_text(number).ok_or_else(too_long)?;
    Ok(Accepted {
        json: digits.clone(),
        text: Some(digits),
    })
}

fn float<'a>(size: &Bounds, value: Value<'a>, strings: Strings) -> Result<Accepted<'a>, Refused> {
    let number = number(value, strings).ok_or(Refused::Type)?;
    if !size.contain(&Parts::of(&number)) {
        return Err(Refused::Bounds);
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
        _ => return Err(Refused::Type),
    };
    Ok(Accepted {
        json: Cow::Borrowed(text),
        text: Some(Cow::Borrowed(text)),
    })
}

fn any<'a>(size: &Bounds, value: Value<'a>) -> Result<Accepted<'a>, Refused> {
    match value.kind() {
        Kind::String => within_length(size, &value.string().unwrap_or_default())?,
        Kind::Number if !size.contain(&Parts::of(value.text())) => return Err(Refused::Bounds),
        _ => {}
    }
    Ok(as_it_is(value))
}

fn accept_listed<'a>(values: &[String], value: Value<'a>) -> Result<Accepted<'a>, Refused> {
    let text = value.string().ok_or(Refused::Type)?;
    if !values.iter().any(|listed| *listed == text) {
        return Err(Refused::Bounds);
    }
    Ok(Accepted {
        json: Cow::Borrowed(value.text()),
        text: Some(text),
    })
}

fn array<'a>(
    size: &Bounds,
    items: Option<&ValueType>,
    value: Value<'a>,
    strings: Strings,
) -> Result<Accepted<'a>, Refused> {
    if value.kind() != Kind::Array {
        return Err(Refused::Type);
    }
    if !size.are_open() {
        check_count(size, value.elements().count(), "an array", "element")?;
    }
    let Some(items) = items else {
        return Ok(as_it_is(value));
    };
    let mut inner = Inner::of(value, '[');
    for (index, element) in value.elements().enumerate() {
        let accepted = accept(items, element, strings)
            .map_err(|mismatch| inside(&format!("[{index}]"), mismatch))?;
        inner.add(&[&accepted.json])?;
    }
    Ok(inner.finish(']'))
}

fn object<'a>(
    properties: Option<&[ScriptOption]>,
    value: Value<'a>,
    strings: Strings,
) -> Result<Accepted<'a>, Refused> {
    if value.kind() != Kind::Object {
        return Err(Refused::Type);
    }
    let Some(properties) = properties else {
        return Ok(as_it_is(value));
    };
    let mut inner = Inner::of(value, '{');
    let mut given = vec![false; properties.len()];
    for member in value.members() {
        let inside = |mismatch| inside(&format!(".{}", member.key), mismatch);
        let known = properties
            .iter()
            .position(|property| property.name == member.key);
        let Some(index) = known else {
            return Err(inside(Mismatch {
                kind: MismatchKind::Type,
                path: String::new(),
                expected: one_of("properties", properties),
                got: "an unknown one".to_owned(),
            }));
        };
        let property = &properties[index];
        if strings == Strings::Coerced && !property.required && member.value.kind() == Kind::Null {
            continue;
        }
        let accepted = accept(&property.value_type, member.value, strings).map_err(inside)?;
        let key = serde_json::to_string(&member.key).expect("a string can be written as JSON");
        inner.add(&[&key, ":", &accepted.json])?;
        given[index] = true;
    }
    let mut missing = properties.iter().zip(given);
    match missing.find(|(property, is_given)| property.required && !is_given) {
        None => Ok(inner.finish('}')),
        Some((property, _)) => {
            let missing = mismatch(
                &property.value_type,
                MismatchKind::Type,
                "nothing".to_owned(),
            );
            Err(inside(&format!(".{}", property.name), missing))
        }
    }
}

/// Builder of an array or an object from its valid parts.
struct Inner {
    json: String,
    most: usize,
}

impl Inner {
    fn of(value: Value<'_>, opening: char) -> Self {
        Self {
            json: opening.into(),
            most: value.text().len() + MAX_GROWTH,
        }
    }

    /// Adds one element or member, which consists of these parts.
    fn add(&mut self, parts: &[&str]) -> Result<(), Refused> {
        if self.json.len() > 1 {
            self.json.push(',');
        }
        self.json.extend(parts.iter().copied());
        if self.json.len() > self.most {
            let got = "integers that are too long in digits";
            return Err(Refused::Count(got.to_owned()));
        }
        Ok(())
    }

    fn finish<'a>(mut self, closing: char) -> Accepted<'a> {
        self.json.push(closing);
        Accepted {
            text: Some(Cow::Owned(self.json.clone())),
            json: Cow::Owned(self.json),
        }
    }
}

fn inside(step: &str, inner: Mismatch) -> Refused {
    Refused::Inside(Mismatch {
        path: format!("{step}{}", inner.path),
        ..inner
    })
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
        Ok(())
    } else {
        check_count(size, text.chars().count(), "a string", "character")
    }
}

fn check_count(size: &Bounds, count: usize, what: &str, unit: &str) -> Result<(), Refused> {
    let number = count.to_string();
    if size.contain(&Parts::of(&number)) {
        return Ok(());
    }
    Err(Refused::Count(format!(
        "{what} of {}",
        words::count(&number, unit)
    )))
}
