//! `params` of a request, parsed in one pass: `_meta` is read at once, because it determines the
//! meaning of the rest; every other member stays raw until the method is known.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json;
use crate::jsonrpc::ErrorObject;
use crate::meta::{self, RequestMeta};

/// The `params` of a request, borrowed from its bytes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Params<'a> {
    /// Request metadata.
    pub meta: RequestMeta<'a>,
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Params<'a> {
    /// Reads `params`. Absent means empty.
    ///
    /// # Errors
    /// `-32602` if `_meta` is not an object, or repeats itself or a reserved member.
    pub fn read(params: Option<&'a RawValue>) -> Result<Self, ErrorObject> {
        let Some(params) = params else {
            return Ok(Self::default());
        };
        serde_json::from_str(params.get())
            .map_err(|error| meta::fault(params).unwrap_or_else(|| json::invalid_params(&error)))
    }

    /// Reads the parameters of a known method, without their `_meta`.
    ///
    /// # Errors
    /// `-32602` naming the member that is missing or of the wrong type.
    pub fn parse<P: Deserialize<'a>>(&self) -> Result<P, ErrorObject> {
        self.parse_without(&[])
    }

    /// Reads the parameters without the members `unknown`, which the revision of the request does
    /// not define.
    ///
    /// # Errors
    /// Fails like [`parse`](Self::parse).
    pub fn parse_without<P: Deserialize<'a>>(&self, unknown: &[&str]) -> Result<P, ErrorObject> {
        let members = self.members.iter().map(|(name, value)| (&**name, *value));
        let members = members.filter(|(name, _)| !unknown.contains(name));
        P::deserialize(MapDeserializer::new(members))
            .map_err(|error: serde_json::Error| json::invalid_params(&error))
    }

    /// Returns a member as it was sent; `None` if it is absent, or there twice.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&'a RawValue> {
        let mut found = self.members.iter().filter(|(member, _)| member == name);
        let (_, value) = found.next()?;
        found.next().is_none().then_some(*value)
    }

    /// Returns a [`member`](Self::member) that is a string, borrowed unless it holds an escape.
    #[must_use]
    pub fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.member(name).and_then(json::string)
    }

    /// Returns the object `name` as it was sent, and the parameters without it: parsed, it would be
    /// read once more, and copied. Anything else in its place stays, for [`parse`](Self::parse) to
    /// judge.
    #[must_use]
    pub fn split_object(&self, name: &str) -> (Option<&'a RawValue>, Self) {
        let object = self.member(name).filter(|value| json::is_object(value));
        let mut rest = self.clone();
        if object.is_some() {
            rest.members.retain(|(member, _)| member != name);
        }
        (object, rest)
    }

    /// Returns the parameters with these members, in place of those of the same names.
    #[must_use]
    pub fn with_members<const N: usize>(&self, new: [(&'a str, &'a RawValue); N]) -> Self {
        let is_kept = |name: &str| new.iter().all(|(replaced, _)| *replaced != name);
        let kept = self.members.iter().filter(|(name, _)| is_kept(name));
        let new = new.map(|(name, value)| (Cow::Borrowed(name), value));
        Self {
            meta: self.meta,
            members: kept.cloned().chain(new).collect(),
        }
    }
}

impl<'de> Deserialize<'de> for Params<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ParamsVisitor)
    }
}

struct ParamsVisitor;

impl<'de> Visitor<'de> for ParamsVisitor {
    type Value = Params<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut meta, mut members) = (None, Vec::new());
        while let Some(Name(name)) = map.next_key()? {
            if name != "_meta" {
                members.push((name, map.next_value()?));
                continue;
            }
            let json::Object(read) = map.next_value()?;
            if meta.replace(read).is_some() {
                return Err(A::Error::duplicate_field("_meta"));
            }
        }
        let meta = meta.unwrap_or_default();
        Ok(Params { meta, members })
    }
}

/// Name of a member, borrowed unless it holds an escape.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::method::{CallToolRequestParams, LoggingLevel, SetLevelRequestParams};

    fn read(params: &str) -> Result<Params<'_>, ErrorObject> {
        Params::read(Some(serde_json::from_str(params).unwrap()))
    }

    #[track_caller]
    fn check_refused<P: DeserializeOwned>(params: &str, expected: &str) {
        let parsed = read(params).and_then(|params| params.parse::<P>().map(drop));
        assert_eq!(parsed.unwrap_err().to_string(), expected, "{params}");
    }

    #[test]
    fn members_stay_as_they_came() {
        let text = r#"{"n\u0061me":"a\tb","arguments":{ "x": 1.50 },"_meta":{"progressToken":1}}"#;
        let call: CallToolRequestParams = read(text).unwrap().parse().unwrap();
        assert_eq!(call.name, "a\tb");
        assert_eq!(call.arguments.unwrap().get(), r#"{ "x": 1.50 }"#);
        assert!(read(text).unwrap().meta.progress_token().unwrap().is_some());
        let level: SetLevelRequestParams = read(r#"{"level":"info"}"#).unwrap().parse().unwrap();
        assert_eq!(level.level, LoggingLevel::Info);
    }

    #[test]
    fn members_unknown_to_a_revision_may_be_anything() {
        let text = r#"{"name":"a","requestState":7,"requestState":[],"inputResponses":null}"#;
        let unknown = ["inputResponses", "requestState"];
        let call = read(text).unwrap();
        let call = call.parse_without::<CallToolRequestParams>(&unknown);
        assert!(call.unwrap().request_state.is_none());
        check_refused::<CallToolRequestParams>(
            text,
            "invalid params: invalid type: integer `7`, expected a string (-32602)",
        );
    }

    #[test]
    fn member_that_is_there_twice_is_none() {
        let params = read(r#"{"a":"x\ty","b":1,"c":"","\u0063":""}"#).unwrap();
        assert_eq!(params.string("a").as_deref(), Some("x\ty"));
        assert_eq!(params.member("b").unwrap().get(), "1");
        for name in ["b", "c", "d"] {
            assert!(params.string(name).is_none(), "{name}");
        }
    }

    #[test]
    fn object_is_split_from_the_other_members() {
        let text = r#"{"name":"a","arguments":{ "x": 1 }}"#;
        let params = read(text).unwrap();
        let (arguments, rest) = params.split_object("arguments");
        assert_eq!(arguments.unwrap().get(), r#"{ "x": 1 }"#);
        let call: CallToolRequestParams = rest.parse().unwrap();
        assert!(call.name == "a" && call.arguments.is_none());
        for (arguments, expected) in [
            (
                "1",
                "invalid params: `arguments` must be an object, not a number (-32602)",
            ),
            (
                r#"{},"arguments":{}"#,
                "invalid params: duplicate field `arguments` (-32602)",
            ),
        ] {
            let text = format!(r#"{{"name":"a","arguments":{arguments}}}"#);
            let (object, rest) = read(&text).unwrap().split_object("arguments");
            assert!(object.is_none(), "{text}");
            let refused = rest.parse::<CallToolRequestParams>().unwrap_err();
            assert_eq!(refused.to_string(), expected);
        }
    }

    #[test]
    fn fault_refers_to_the_whole_text() {
        let text = r#"{"level":1,"level":"info"}"#;
        let params: &RawValue = serde_json::from_str(text).unwrap();
        let request = crate::jsonrpc::Request::new(1.into(), "logging/setLevel", Some(params));
        let whole = request.parse_params::<SetLevelRequestParams>();
        check_refused::<SetLevelRequestParams>(text, &whole.unwrap_err().to_string());
        for (params, expected) in [
            ("{}", "invalid params: missing field `name` (-32602)"),
            (
                r#"{"name":null}"#,
                "invalid params: invalid type: null, expected a string (-32602)",
            ),
            (
                r#"{"name":"a","n\u0061me":"b"}"#,
                "invalid params: duplicate field `name` (-32602)",
            ),
            (
                r#"{"name":"\ud800"}"#,
                "invalid params: unexpected end of hex escape (-32602)",
            ),
        ] {
            check_refused::<CallToolRequestParams>(params, expected);
        }
    }

    #[test]
    fn meta_is_a_single_object() {
        for (meta, kind) in [
            ("true", "a boolean"),
            ("1e999", "a number"),
            ("[1,2,3,4,5,6,7,8]", "an array"),
        ] {
            check_refused::<CallToolRequestParams>(
                &format!(r#"{{"_meta":{meta}}}"#),
                &format!("`_meta` must be an object, not {kind} (-32602)"),
            );
        }
        for meta in ["null", "[]", "[ ]"] {
            let params = format!(r#"{{"_meta":{meta}}}"#);
            assert!(read(&params).is_ok_and(|params| !params.meta.is_stateless()));
        }
        for meta in ["[]", "{}"] {
            check_refused::<CallToolRequestParams>(
                &format!(r#"{{"_meta":{meta},"\u005fmeta":{{}}}}"#),
                "invalid params: duplicate field `_meta` (-32602)",
            );
        }
    }
}
