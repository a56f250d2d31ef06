//! Values. They have value semantics: an assigned list behaves as a copy, though it is shared
//! until one of the two is changed.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use jiff::civil::DateTime;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::Error;
use crate::limits::MAX_VALUE_DEPTH;

#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Value of a missing parameter.
    Nothing,
    Boolean(bool),
    Number(Decimal),
    Text(Arc<str>),
    /// Date; a mere day has the time midnight.
    Date(DateTime),
    List(Arc<List>),
    Object(Arc<Object>),
}

/// Size of a value including everything in it, and its nesting depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Size {
    pub(crate) bytes: usize,
    pub(crate) depth: usize,
}

impl Size {
    pub(crate) fn of_text(bytes: usize) -> Self {
        Self { bytes, depth: 0 }
    }

    /// Returns the size of a value that contains this one.
    fn inside_container(self) -> Self {
        Self {
            bytes: self.bytes + size_of::<Value>(),
            depth: self.depth + 1,
        }
    }

    /// Returns the size of a container after `other` is added.
    #[must_use]
    pub(crate) fn with(self, other: Self) -> Self {
        let other = other.inside_container();
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            depth: self.depth.max(other.depth),
        }
    }

    /// Returns the size of a container without an element of the size `old`.
    #[must_use]
    pub(crate) fn without(self, old: Self) -> Self {
        Self {
            bytes: self.bytes - old.inside_container().bytes,
            depth: self.depth,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct List {
    pub(crate) items: Vec<Value>,
    pub(crate) size: Size,
}

impl List {
    pub(crate) fn push(&mut self, value: Value) {
        self.size = self.size.with(value.size());
        self.items.push(value);
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Self {
        let mut list = Self::default();
        for value in values {
            list.push(value);
        }
        list
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Object {
    pub(crate) members: IndexMap<Arc<str>, Value>,
    pub(crate) size: Size,
}

impl Object {
    /// Returns the member of that name, which is added if it is missing.
    pub(crate) fn member(&mut self, name: &Arc<str>) -> &mut Value {
        let Self { members, size } = self;
        members.entry(Arc::clone(name)).or_insert_with(|| {
            *size = size.with(Size::of_text(name.len()));
            Value::Nothing
        })
    }

    pub(crate) fn insert(&mut self, name: Arc<str>, value: Value) {
        let size = value.size();
        let member = self.member(&name);
        let old = std::mem::replace(member, value).size();
        self.size = self.size.without(old).with(size);
    }
}

impl Value {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn count(number: usize) -> Self {
        Self::Number(number.into())
    }

    pub(crate) fn size(&self) -> Size {
        match self {
            Self::Text(text) => Size::of_text(text.len()),
            Self::List(list) => list.size,
            Self::Object(object) => object.size,
            Self::Nothing | Self::Boolean(_) | Self::Number(_) | Self::Date(_) => Size::default(),
        }
    }

    /// Returns the kind of a value, for messages. The value itself may be a secret.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "NOTHING",
            Self::Boolean(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Date(_) => "a date",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// Returns whether a condition with this value is true.
    pub(crate) fn truth(&self) -> Result<bool, Error> {
        match self {
            Self::Nothing => Ok(false),
            Self::Boolean(boolean) => Ok(*boolean),
            Self::Number(number) => Ok(!number.is_zero()),
            _ => Err(Error::new(format!(
                "a condition must be true or false, and this is {}",
                self.kind()
            ))
            .help("compare it with something, such as `<> \"\"`")),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Text(text) => text.is_empty(),
            Self::List(list) => list.items.is_empty(),
            Self::Object(object) => object.members.is_empty(),
            Self::Boolean(_) | Self::Number(_) | Self::Date(_) => false,
        }
    }

    /// Converts a JSON value. It is read from its text, as `serde_json::Value` would round
    /// numbers.
    pub(crate) fn from_json(json: &RawValue) -> Result<Self, Error> {
        Self::from_json_within(json, 0)
    }

    fn from_json_within(json: &RawValue, depth: usize) -> Result<Self, Error> {
        let text = json.get();
        if depth > MAX_VALUE_DEPTH {
            return Err(Error::too_deep());
        }
        Ok(match text.as_bytes().first() {
            Some(b'n') => Self::Nothing,
            Some(b't' | b'f') => Self::Boolean(read(text)?),
            Some(b'"') => Self::Text(read::<String>(text)?.into()),
            Some(b'[') => {
                let items = read::<Vec<&RawValue>>(text)?.into_iter();
                let items = items.map(|item| Self::from_json_within(item, depth + 1));
                Self::List(Arc::new(items.collect::<Result<_, _>>()?))
            }
            Some(b'{') => {
                let mut object = Object::default();
                for (name, json) in read::<IndexMap<String, &RawValue>>(text)? {
                    object.insert(name.into(), Self::from_json_within(json, depth + 1)?);
                }
                Self::Object(Arc::new(object))
            }
            _ => Self::Number(decimal(text)?),
        })
    }
}

fn read<'j, T: Deserialize<'j>>(json: &'j str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|error| Error::new(error.to_string()))
}

/// Parses a number as JSON and people write it. A number that would have to be rounded is refused.
pub(crate) fn decimal(text: &str) -> Result<Decimal, Error> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if !is_whole(&digits) || !is_whole(exponent) {
        return Err(Error::new("the string is not a number"));
    }
    scaled(&digits, fraction.len(), exponent)
        .ok_or_else(|| Error::new("a number may have at most 28 digits"))
}

fn is_whole(text: &str) -> bool {
    let digits = without_sign(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn without_sign(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

/// Returns the number with these digits, `behind` of them after the point, if it is exact.
fn scaled(digits: &str, behind: usize, exponent: &str) -> Option<Decimal> {
    let significant = digits.trim_end_matches('0');
    if without_sign(significant).is_empty() {
        return Some(Decimal::ZERO);
    }
    let number: i128 = significant.parse().ok()?;
    let exponent: i64 = exponent.parse().ok()?;
    let zeros = digits.len() - significant.len();
    let exponent = exponent
        .checked_add_unsigned(zeros as u64)?
        .checked_sub_unsigned(behind as u64)?;
    let size = u32::try_from(exponent.unsigned_abs()).ok()?;
    let (number, scale) = match exponent {
        0.. => (number.checked_mul(10_i128.checked_pow(size)?)?, 0),
        _ => (number, size),
    };
    Decimal::try_from_i128_with_scale(number, scale).ok()
}

/// NOTHING equals an empty text; otherwise values of different kinds are never equal.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, Self::Nothing) => true,
            (Self::Nothing, Self::Text(text)) | (Self::Text(text), Self::Nothing) => {
                text.is_empty()
            }
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Date(a), Self::Date(b)) => a == b,
            (Self::List(a), Self::List(b)) => a.items == b.items,
            (Self::Object(a), Self::Object(b)) => a.members == b.members,
            _ => false,
        }
    }
}

/// Prints a list or an object as JSON, everything else as people write it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::Boolean(boolean) => write!(f, "{boolean}"),
            Self::Number(number) => write!(f, "{}", number.normalize()),
            Self::Text(text) => f.write_str(text),
            Self::Date(date) if date.time() == jiff::civil::Time::midnight() => {
                write!(f, "{}", date.date())
            }
            Self::Date(date) => write!(f, "{}", date.strftime("%Y-%m-%d %H:%M:%S")),
            Self::List(_) | Self::Object(_) => self.write_json(f),
        }
    }
}

impl Value {
    fn write_json(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("null"),
            Self::Boolean(_) | Self::Number(_) => write!(f, "{self}"),
            Self::Text(_) | Self::Date(_) => write_json_text(&self.to_string(), f),
            Self::List(list) => {
                let mut separator = "[";
                for item in &list.items {
                    f.write_str(separator)?;
                    item.write_json(f)?;
                    separator = ", ";
                }
                f.write_str(if list.items.is_empty() { "[]" } else { "]" })
            }
            Self::Object(object) => {
                let mut separator = "{";
                for (name, value) in &object.members {
                    f.write_str(separator)?;
                    write_json_text(name, f)?;
                    f.write_str(": ")?;
                    value.write_json(f)?;
                    separator = ", ";
                }
                f.write_str(if object.members.is_empty() { "{}" } else { "}" })
            }
        }
    }
}

fn write_json_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}", serde_json::Value::from(text))
}
