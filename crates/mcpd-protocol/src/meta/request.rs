//! `_meta` of a request, read before its method is known. Each value is judged alone and only on
//! access, so that each fault has an exact error and unknown members are never built.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::ProgressToken;
use super::{CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROGRESS_TOKEN, PROTOCOL_VERSION};
use crate::capabilities::{ClientCapabilities, Declared, Implementation};
use crate::json;
use crate::jsonrpc::ErrorObject;
use crate::method::LoggingLevel;

/// Log levels, in the words of an error.
const LEVELS: &str =
    "`debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert` or `emergency`";

/// Reserved members of a request's `_meta`, borrowed from its `params`.
///
/// A method gives `Ok(None)` for an absent member and `-32602` for one of the wrong type. An
/// optional member may also be `null`; a member that a stateless request requires may not.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct RequestMeta<'a> {
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/protocolVersion",
        deserialize_with = "json::present"
    )]
    protocol_version: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/clientCapabilities",
        deserialize_with = "json::present"
    )]
    client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    client_info: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/logLevel")]
    log_level: Option<&'a RawValue>,
    #[serde(borrow, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    #[serde(borrow)]
    traceparent: Option<&'a RawValue>,
    #[serde(borrow)]
    tracestate: Option<&'a RawValue>,
    #[serde(borrow)]
    baggage: Option<&'a RawValue>,
}

impl<'a> RequestMeta<'a> {
    /// Returns whether the request is written for the stateless wire: it has a member that only
    /// requests there have, valid or not.
    #[must_use]
    pub fn is_stateless(&self) -> bool {
        let said = [
            self.protocol_version,
            self.client_capabilities,
            self.client_info,
            self.log_level,
        ];
        said.iter().any(Option::is_some)
    }

    /// Returns the revision of the request, known to this crate or not.
    ///
    /// # Errors
    /// `-32602` if it is not a string.
    pub fn protocol_version(&self) -> Result<Option<Cow<'a, str>>, ErrorObject> {
        self.protocol_version
            .map(|raw| {
                json::string(raw).ok_or_else(|| wrong_type(PROTOCOL_VERSION, "a string", raw))
            })
            .transpose()
    }

    /// Returns the JSON text of the client's capabilities as it was sent, so that the same text
    /// need not be read twice.
    #[must_use]
    pub fn client_capabilities_text(&self) -> Option<&'a str> {
        self.client_capabilities.map(RawValue::get)
    }

    /// Returns the client's capabilities for this request.
    ///
    /// # Errors
    /// `-32602` if it is not an object of capabilities.
    pub fn client_capabilities(&self) -> Result<Option<ClientCapabilities>, ErrorObject> {
        let Some(raw) = self.client_capabilities else {
            return Ok(None);
        };
        // The strict reader is the faster one, and accepts most requests.
        match serde_json::from_str(raw.get()) {
            Ok(declared) if json::is_object(raw) => Ok(Some(declared)),
            _ => read_object(CLIENT_CAPABILITIES, Some(raw))
                .map(|declared| declared.map(|Declared(declared)| declared)),
        }
    }

    /// Returns the JSON text of the identity that the client claims, as it was sent.
    #[must_use]
    pub fn client_info_text(&self) -> Option<&'a str> {
        self.client_info.map(RawValue::get)
    }

    /// Returns the identity that the client claims.
    ///
    /// # Errors
    /// `-32602` if it is not an `Implementation`.
    pub fn client_info(&self) -> Result<Option<Implementation>, ErrorObject> {
        read_object(CLIENT_INFO, self.client_info)
    }

    /// Returns the lowest level of log messages that the client wants; without one it wants none.
    ///
    /// # Errors
    /// `-32602` if it is not one of the eight levels.
    pub fn log_level(&self) -> Result<Option<LoggingLevel>, ErrorObject> {
        read(LOG_LEVEL, LEVELS, self.log_level)
    }

    /// Returns the token for progress notifications; without one the client wants none.
    ///
    /// # Errors
    /// `-32602` if it is neither a string nor an integer.
    pub fn progress_token(&self) -> Result<Option<ProgressToken>, ErrorObject> {
        read(
            PROGRESS_TOKEN,
            "a string or an integer",
            self.progress_token,
        )
    }

    /// Returns whether the sender asked for notifications before the answer, provided that its
    /// parameters are valid.
    #[must_use]
    pub fn wants_notifications(&self) -> bool {
        self.log_level.is_some() || self.progress_token.is_some()
    }

    /// Returns the W3C trace context. An invalid one is no reason to refuse a request, so it
    /// counts as absent.
    #[must_use]
    pub fn traceparent(&self) -> Option<Cow<'a, str>> {
        self.traceparent.and_then(json::string)
    }

    /// Returns the W3C trace state, on the terms of [`traceparent`](Self::traceparent).
    #[must_use]
    pub fn tracestate(&self) -> Option<Cow<'a, str>> {
        self.tracestate.and_then(json::string)
    }

    /// Returns the W3C baggage, on the terms of [`traceparent`](Self::traceparent).
    #[must_use]
    pub fn baggage(&self) -> Option<Cow<'a, str>> {
        self.baggage.and_then(json::string)
    }
}

/// Returns the fault of the `_meta` member of `params` as a whole, or of its position there.
pub(crate) fn fault(params: &RawValue) -> Option<ErrorObject> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, default, rename = "_meta", deserialize_with = "json::present")]
        meta: Option<&'a RawValue>,
    }
    match serde_json::from_str::<Params<'_>>(params.get()) {
        Ok(Params { meta }) => meta
            .filter(|meta| !json::is_object(meta))
            .map(|meta| wrong_type("_meta", "an object", meta)),
        Err(error) => Some(json::invalid_params(&error)),
    }
}

fn read<T: DeserializeOwned>(
    key: &str,
    expected: &str,
    raw: Option<&RawValue>,
) -> Result<Option<T>, ErrorObject> {
    raw.map(|raw| serde_json::from_str(raw.get()).map_err(|_| wrong_type(key, expected, raw)))
        .transpose()
}

fn read_object<T: DeserializeOwned>(
    key: &str,
    raw: Option<&RawValue>,
) -> Result<Option<T>, ErrorObject> {
    let Some(raw) = raw else { return Ok(None) };
    if !json::is_object(raw) && !json::is_empty_array(raw) {
        return Err(wrong_type(key, "an object", raw));
    }
    serde_json::from_str(raw.get())
        .map(Some)
        .map_err(|e| ErrorObject::invalid_params(format!("`{key}`: {}", json::fault(&e))))
}

/// Returns the error for a value of the wrong kind. It names the kind, except for a string with a
/// wrong text.
fn wrong_type(key: &str, expected: &str, raw: &RawValue) -> ErrorObject {
    ErrorObject::invalid_params(match json::kind(raw) {
        "a string" => format!("`{key}` must be {expected}"),
        kind => format!("`{key}` must be {expected}, not {kind}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;

    #[track_caller]
    fn check<T: std::fmt::Debug>(
        params: &str,
        member: impl Fn(RequestMeta<'_>) -> Result<T, ErrorObject>,
        expected: &str,
    ) {
        let params: &RawValue = serde_json::from_str(params).unwrap();
        let shown = match Params::read(Some(params)).and_then(|params| member(params.meta)) {
            Ok(value) => format!("{value:?}"),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn absent_and_wrong_type_are_distinct() {
        let version = |meta: RequestMeta<'_>| {
            meta.protocol_version()
                .map(|version| version.map(Cow::into_owned))
        };
        check("{}", version, "None");
        check(r#"{"_meta":{}}"#, version, "None");
        check(
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}"#,
            version,
            r#"Some("x")"#,
        );
        check(
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":null}}"#,
            version,
            "`io.modelcontextprotocol/protocolVersion` must be a string, not null (-32602)",
        );
    }

    #[test]
    fn member_of_a_wrong_type_names_the_right_one() {
        check(
            r#"{"_meta":[1]}"#,
            |_| Ok(()),
            "`_meta` must be an object, not an array (-32602)",
        );
        check(
            r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":[1]}}"#,
            |meta| meta.client_capabilities(),
            "`io.modelcontextprotocol/clientCapabilities` must be an object, not an array (-32602)",
        );
        check(
            r#"{"_meta":{"io.modelcontextprotocol/logLevel":"loud"}}"#,
            |meta| meta.log_level(),
            "`io.modelcontextprotocol/logLevel` must be `debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert` or `emergency` (-32602)",
        );
        check(
            r#"{"_meta":{"progressToken":1.5}}"#,
            |meta| meta.progress_token(),
            "`progressToken` must be a string or an integer, not a number (-32602)",
        );
    }

    #[test]
    fn null_is_absent_where_absence_is_allowed() {
        for member in ["clientInfo", "logLevel"].map(|key| format!("io.modelcontextprotocol/{key}"))
        {
            let params = format!(r#"{{"_meta":{{"{member}":null}}}}"#);
            check(&params, |meta| Ok(meta.is_stateless()), "false");
        }
        check(
            r#"{"_meta":{"progressToken":null}}"#,
            |meta| meta.progress_token(),
            "None",
        );
    }

    #[test]
    fn empty_array_is_an_object_without_members() {
        let key = CLIENT_CAPABILITIES;
        check(
            &format!(r#"{{"_meta":{{"{key}":[]}}}}"#),
            |meta| Ok(meta.client_capabilities()?.is_some()),
            "true",
        );
        check(
            &format!(r#"{{"_meta":{{"{key}":{{"elicitation":[],"sampling":{{"tools":[]}}}}}}}}"#),
            |meta| {
                let declared = meta.client_capabilities()?.unwrap_or_default();
                Ok(serde_json::to_string(&declared).unwrap())
            },
            r#""{\"elicitation\":{},\"sampling\":{\"tools\":{}}}""#,
        );
        check(
            &format!(r#"{{"_meta":{{"{key}":{{"elicitation":[1]}}}}}}"#),
            |meta| meta.client_capabilities(),
            &format!("`{key}`: invalid type: integer `1`, expected a map (-32602)"),
        );
    }

    #[test]
    fn a_reserved_member_must_not_repeat() {
        check(
            r#"{"_meta":{"progressToken":1,"progress\u0054oken":2}}"#,
            |meta| meta.progress_token(),
            "invalid params: duplicate field `progressToken` (-32602)",
        );
    }

    #[test]
    fn a_bad_trace_context_counts_as_absent() {
        check(
            r#"{"_meta":{"traceparent":7,"tracestate":"a=b"}}"#,
            |meta| Ok((meta.traceparent().is_some(), meta.tracestate().is_some())),
            "(false, true)",
        );
    }
}
