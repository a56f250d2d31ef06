//! Requests of this program to a server in its process.

use std::borrow::Cow;

use mcpd_protocol::jsonrpc::{ErrorCode, ErrorObject};
use mcpd_protocol::method::LoggingLevel;
use mcpd_server::transport::local;
pub(crate) use mcpd_server::transport::local::{call, request};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Error text for people, who can't declare a capability.
pub(crate) fn error_text(error: ErrorObject) -> Cow<'static, str> {
    if error.code != ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY {
        return error.message;
    }
    let data = error.data.as_deref().map(RawValue::get);
    let data: Value = serde_json::from_str(data.unwrap_or_default()).unwrap_or_default();
    let missing = data["requiredCapabilities"].as_object();
    let missing = missing.into_iter().flat_map(Map::keys);
    let missing: Vec<_> = missing.map(|name| format!("`{name}`")).collect();
    let missing = missing.join(" and ");
    format!("the script requires {missing}, which this command does not support").into()
}

/// The `_meta` of a request for progress and log messages from `level` on.
pub(crate) fn envelope(level: LoggingLevel) -> Box<RawValue> {
    local::envelope("mcpd", env!("CARGO_PKG_VERSION"), level)
}

/// The `_meta` of [`envelope`] for a call that a person can approve.
pub(crate) fn envelope_with_approval(level: LoggingLevel) -> Box<RawValue> {
    local::envelope_with_approval("mcpd", env!("CARGO_PKG_VERSION"), level)
}
