//! Small readers for raw JSON text that serde's derive has no attribute for. Nothing here is public.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Keeps an explicit `null` apart from an absent member, which `Option` alone would merge.
pub(crate) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// The string a raw value spells, borrowed unless it holds an escape. `None` for any other kind of value.
pub(crate) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let quoted = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if quoted.contains('\\') {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(quoted))
    }
}

/// Whether a raw value is an object. Raw values carry no surrounding whitespace.
pub(crate) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// What kind of JSON value this is, for messages.
pub(crate) fn kind(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}
