//! Error objects and the codes MCP may send. Internal causes never belong in an error object: the
//! other side reads it.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::capabilities::ClientCapabilities;
use crate::json::present;
use crate::version::{ProtocolVersion, Wire};

/// Error code. `-32768..=-32000` is reserved; an application's own codes lie outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(i64);

impl ErrorCode {
    /// Input that is not JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// JSON that is not a JSON-RPC message.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// Method that is unknown, removed, or part of a capability that was not declared.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// Parameters that do not fit the method.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// Failure of the server, not of the caller.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// Unknown resource, on the stateful wire only.
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
    /// HTTP header that disagrees with the body -- 2026-07-28/basic/index#error-codes.
    pub const HEADER_MISMATCH: Self = Self(-32020);
    /// Request that needs a capability it did not declare -- 2026-07-28/basic/index#error-codes.
    pub const MISSING_REQUIRED_CLIENT_CAPABILITY: Self = Self(-32021);
    /// Request in a revision this server does not speak -- 2026-07-28/basic/index#error-codes.
    pub const UNSUPPORTED_PROTOCOL_VERSION: Self = Self(-32022);

    /// Range reserved by JSON-RPC and MCP.
    pub const RESERVED: RangeInclusive<i64> = -32768..=-32000;

    /// Makes a code that has no name here.
    #[must_use]
    pub const fn new(code: i64) -> Self {
        Self(code)
    }

    /// Returns the number on the wire.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Returns whether programs may use this code for errors of their own: the codes of invalid
    /// parameters and of an internal error, and codes "allocated outside the JSON-RPC reserved
    /// range (`-32768` to `-32000`)" -- 2026-07-28/basic/index#error-codes
    #[must_use]
    pub fn is_free(self) -> bool {
        [Self::INVALID_PARAMS, Self::INTERNAL_ERROR].contains(&self)
            || !Self::RESERVED.contains(&self.0)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The `error` member of a response.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(expecting = "an object with `code` and `message`")]
#[non_exhaustive]
pub struct ErrorObject {
    /// Kind of error.
    pub code: ErrorCode,
    /// One sentence for the reader of the other side's log.
    pub message: Cow<'static, str>,
    /// Details whose shape the code defines. `Some` also for an explicit `null`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub data: Option<Box<RawValue>>,
}

impl ErrorObject {
    /// Makes an error without data.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Sets the details.
    #[must_use]
    pub fn with_data(mut self, data: &Value) -> Self {
        // A `Value` has string keys only, so this is always `Some`.
        self.data = to_raw_value(data).ok();
        self
    }

    /// Makes the error for input that is not JSON.
    pub fn parse_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::PARSE_ERROR, message)
    }

    /// Makes the error for JSON that is not a message this peer may send.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, message)
    }

    /// Makes the error for an unknown method.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        Self::new(
            ErrorCode::METHOD_NOT_FOUND,
            format!("method not found: `{method}`"),
        )
    }

    /// Makes the error for parameters that do not fit the method.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, message)
    }

    /// Makes the error for a failure of the server. The message is for the caller; keep the cause
    /// for the operator.
    pub fn internal_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::INTERNAL_ERROR, message)
    }

    /// Makes the error for an unknown resource. Its code is the only one that depends on the wire.
    #[must_use]
    pub fn resource_not_found(uri: &str, wire: Wire) -> Self {
        let code = match wire {
            Wire::Stateful => ErrorCode::RESOURCE_NOT_FOUND,
            Wire::Stateless => ErrorCode::INVALID_PARAMS,
        };
        Self::new(code, "resource not found").with_data(&json!({ "uri": uri }))
    }

    /// Makes the error for a mirrored HTTP header that is missing, malformed or different from the
    /// body.
    pub fn header_mismatch(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::HEADER_MISMATCH, message)
    }

    /// Makes the error for a request that must declare these capabilities to be served.
    #[must_use]
    pub fn missing_required_client_capability(required: &ClientCapabilities) -> Self {
        let names: Vec<_> = required.names();
        let names = names.iter().map(|name| format!("`{name}`"));
        let names = names.collect::<Vec<_>>().join(", ");
        Self::new(
            ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
            format!("the client does not declare a capability that the request requires: {names}"),
        )
        .with_data(&json!({ "requiredCapabilities": required }))
    }

    /// Makes the error for a request in a revision outside `supported`.
    #[must_use]
    pub fn unsupported_protocol_version(requested: &str, supported: &[ProtocolVersion]) -> Self {
        Self::new(
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
            "unsupported protocol version",
        )
        .with_data(&json!({ "supported": supported, "requested": requested }))
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ErrorObject {}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: &ErrorObject, expected: &str) {
        assert_eq!(serde_json::to_string(error).unwrap(), expected);
    }

    #[test]
    fn a_missing_resource_has_a_code_of_its_own_on_the_stateful_wire() {
        check(
            &ErrorObject::resource_not_found("mcpd://x/state", Wire::Stateful),
            r#"{"code":-32002,"message":"resource not found","data":{"uri":"mcpd://x/state"}}"#,
        );
        check(
            &ErrorObject::resource_not_found("mcpd://x/state", Wire::Stateless),
            r#"{"code":-32602,"message":"resource not found","data":{"uri":"mcpd://x/state"}}"#,
        );
    }

    #[test]
    fn unsupported_version_lists_supported_ones() {
        check(
            &ErrorObject::unsupported_protocol_version("1999-01-01", &[ProtocolVersion::LATEST]),
            r#"{"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"1999-01-01"}}"#,
        );
    }

    #[test]
    fn null_data_is_not_absent_data() {
        let json = r#"{"code":1,"message":"m","data":null}"#;
        check(&serde_json::from_str(json).unwrap(), json);
        let json = r#"{"code":1,"message":"m"}"#;
        check(&serde_json::from_str(json).unwrap(), json);
    }
}
