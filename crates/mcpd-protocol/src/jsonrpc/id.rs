//! Request ids: a string or an integer, echoed unchanged. `1` and `"1"` are different ids; `1.0`
//! is the number `1`.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// Id that ties a response to its request. Cloning allocates nothing.
///
/// "Unlike base JSON-RPC, the ID MUST NOT be `null`." -- 2026-07-28/basic/index#requests
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "JSON-RPC and MCP allow these two and no other"
)]
pub enum RequestId {
    /// Whole JSON number, within 64 bits.
    Integer(i64),
    /// JSON string, also one that spells a number.
    String(Arc<str>),
}

impl From<i64> for RequestId {
    fn from(id: i64) -> Self {
        Self::Integer(id)
    }
}

impl From<&str> for RequestId {
    fn from(id: &str) -> Self {
        Self::String(id.into())
    }
}

/// Writes a string in quotes, so that a log line distinguishes `1` from `"1"`.
impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(id) => id.fmt(f),
            Self::String(id) => write!(f, "{id:?}"),
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(id) => serializer.serialize_i64(*id),
            Self::String(id) => serializer.serialize_str(id),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = RequestId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a 64-bit integer")
    }

    fn visit_i64<E: de::Error>(self, id: i64) -> Result<RequestId, E> {
        Ok(RequestId::Integer(id))
    }

    fn visit_u64<E: de::Error>(self, id: u64) -> Result<RequestId, E> {
        i64::try_from(id)
            .map(RequestId::Integer)
            .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(id), &self))
    }

    /// Accepts `1.0`, which programs write whose numbers are all floating-point.
    fn visit_f64<E: de::Error>(self, id: f64) -> Result<RequestId, E> {
        const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53: beyond it several integers share one `f64`
        if id.fract() == 0.0 && id.abs() <= EXACT {
            return Ok(RequestId::Integer(id as i64));
        }
        Err(E::invalid_value(de::Unexpected::Float(id), &self))
    }

    fn visit_str<E: de::Error>(self, id: &str) -> Result<RequestId, E> {
        Ok(RequestId::from(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Option<RequestId>) {
        let parsed: Option<RequestId> = serde_json::from_str(json).ok();
        assert_eq!(parsed, expected, "{json}");
        if let Some(id) = parsed {
            assert_eq!(serde_json::to_string(&id).unwrap(), json, "echoed exactly");
        }
    }

    #[test]
    fn a_number_and_its_spelling_are_different_ids() {
        check("1", Some(RequestId::Integer(1)));
        check("\"1\"", Some("1".into()));
        assert_ne!(RequestId::from(1), RequestId::from("1"));
        assert_eq!(RequestId::from(1).to_string(), "1");
        assert_eq!(RequestId::from("1").to_string(), "\"1\"");
    }

    #[test]
    fn the_whole_64_bit_range_is_kept() {
        check("9223372036854775807", Some(RequestId::Integer(i64::MAX)));
        check("-9223372036854775808", Some(RequestId::Integer(i64::MIN)));
        check("9223372036854775808", None);
    }

    #[test]
    fn other_values_are_no_ids() {
        for json in [
            "1.5",
            "1e300",
            "9007199254740994.0",
            "null",
            "true",
            "[]",
            "{}",
        ] {
            check(json, None);
        }
    }

    #[test]
    fn whole_number_with_a_fraction_or_exponent_is_that_integer() {
        for (json, id) in [("1.0", 1), ("-7.00", -7), ("1e3", 1000), ("0.0", 0)] {
            let parsed: RequestId = serde_json::from_str(json).unwrap();
            assert_eq!(parsed, RequestId::Integer(id), "{json}");
        }
    }
}
