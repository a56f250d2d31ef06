//! Encoded JSON values.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// Encodes a schema to the bytes that every list repeats.
pub(crate) fn raw(schema: &impl Serialize) -> Box<RawValue> {
    to_raw_value(schema).expect("a JSON value has string keys only")
}
