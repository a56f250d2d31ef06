//! Small readers for raw JSON text that serde's derive has no attribute for.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use memchr::memchr;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::jsonrpc::ErrorObject;

/// Keeps an explicit `null` apart from an absent member, which `Option` alone would merge.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Object read as `T`. A value that [stands for nothing](is_nothing) gives the default; derived
/// readers would accept any array.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }

    fn visit_unit<E: Error>(self) -> Result<Object<T>, E> {
        Ok(Object(T::default()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Object<T>, A::Error> {
        match seq.next_element::<IgnoredAny>()? {
            None => Ok(Object(T::default())),
            Some(_) => Err(A::Error::invalid_type(Unexpected::Seq, &self)),
        }
    }
}

/// Writes whole numbers without a fraction: `50`, as people write it, and not `50.0`.
pub(crate) fn number<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53: up to here every whole `f64` is an integer
    if number.fract() == 0.0 && number.abs() <= EXACT {
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

/// Writes a [`number`] that may be absent.
pub(crate) fn optional_number<S: Serializer>(
    number: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    struct Number(f64);
    impl Serialize for Number {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self::number(&self.0, serializer)
        }
    }
    number.map(Number).serialize(serializer)
}

/// Returns the string that a raw value spells, borrowed unless it holds an escape. `None` for any
/// other kind of value. A long one without escapes is not read like JSON once more.
#[must_use]
pub fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let quoted = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    match memchr(b'\\', quoted.as_bytes()) {
        None => Some(Cow::Borrowed(quoted)),
        Some(_) => serde_json::from_str(raw.get()).ok().map(Cow::Owned),
    }
}

/// Returns whether a raw value is an object. Raw values carry no surrounding whitespace.
pub(crate) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// Returns whether a raw value stands for nothing: `null`, or the empty array that PHP's encoder
/// writes for an empty object, as it can't tell the two apart. Where an object is expected neither
/// can mean anything else.
pub(crate) fn is_nothing(raw: &RawValue) -> bool {
    raw.get() == "null" || is_empty_array(raw)
}

/// Returns whether a raw value is an array without elements.
pub(crate) fn is_empty_array(raw: &RawValue) -> bool {
    let inside = raw.get().strip_prefix('[');
    let inside = inside.and_then(|rest| rest.strip_suffix(']'));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

/// Reads an object that may be left out; what [stands for nothing](is_nothing) counts as left out.
pub(crate) fn optional_object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let raw = Option::<Box<RawValue>>::deserialize(deserializer)?;
    let raw = raw.filter(|raw| !is_nothing(raw));
    raw.map(|raw| serde_json::from_str(raw.get()).map_err(|error| D::Error::custom(fault(&error))))
        .transpose()
}

/// Returns the kind of a JSON value, for messages.
pub(crate) fn kind(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') if string(raw).is_none() => "a string with half a surrogate pair",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Returns the error for parameters that can't be read.
pub(crate) fn invalid_params(error: &serde_json::Error) -> ErrorObject {
    ErrorObject::invalid_params(format!("invalid params: {}", fault(error)))
}

/// Returns the message of an error without the position, which refers to a part of the message
/// that the sender can't see by itself.
pub(crate) fn fault(error: &serde_json::Error) -> String {
    let mut fault = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    if fault.ends_with(&position) {
        fault.truncate(fault.len() - position.len());
    }
    fault
}
