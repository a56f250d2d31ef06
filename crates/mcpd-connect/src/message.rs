//! Parts of a message that the bridge reads: its id, its method, and the parameters that HTTP
//! headers repeat. The message itself is passed on as its bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcpd_protocol::jsonrpc::RequestId;
use mcpd_protocol::meta::PROTOCOL_VERSION;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Parameters that matter to the bridge.
#[derive(Debug, Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, rename = "taskId")]
    task: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestId")]
    request: Option<&'a RawValue>,
}

/// Facts about a request or a notification.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Headers of revision 2026-07-28. Older revisions have none, and a session instead.
    pub(crate) stateless: Option<HeaderMap>,
    /// Tool that a call of revision 2026-07-28 names.
    pub(crate) tool: Option<String>,
    /// Request that `notifications/cancelled` names.
    pub(crate) cancelled: Option<RequestId>,
}

impl Facts {
    /// Reads the parameters of a message. Faulty ones are passed on, for the server to refuse.
    pub(crate) fn read(method: &str, params: Option<&RawValue>) -> Self {
        let params: Params<'_> = params
            .and_then(|params| serde_json::from_str(params.get()).ok())
            .unwrap_or_default();
        let cancelled = params
            .request
            .filter(|_| method == "notifications/cancelled")
            .and_then(|id| serde_json::from_str(id.get()).ok());
        let version = params.meta.and_then(read_version);
        let tool = params
            .name
            .filter(|_| method == "tools/call" && version.is_some())
            .and_then(|name| serde_json::from_str(name.get()).ok());
        Self {
            stateless: version.map(|version| stateless_headers(method, &version, &params)),
            tool,
            cancelled,
        }
    }
}

fn read_version(meta: &RawValue) -> Option<String> {
    let meta: serde_json::Map<String, serde_json::Value> = serde_json::from_str(meta.get()).ok()?;
    meta.get(PROTOCOL_VERSION)?.as_str().map(str::to_owned)
}

fn stateless_headers(method: &str, version: &str, params: &Params<'_>) -> HeaderMap {
    let name = match method {
        "resources/read" => params.uri,
        "tasks/get" | "tasks/update" | "tasks/cancel" => params.task,
        "tools/call" | "prompts/get" => params.name,
        _ => None,
    };
    let name: Option<String> = name.and_then(|name| serde_json::from_str(name.get()).ok());
    let values = [
        (VERSION, HeaderValue::from_str(version).ok()),
        (METHOD, HeaderValue::from_str(method).ok()),
        (
            NAME,
            name.and_then(|name| HeaderValue::try_from(header_text(&name)).ok()),
        ),
    ];
    // The server refuses a message without its headers, and says why.
    let values = values
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    values.collect()
}

/// Returns a text as the value of `Mcp-Name` or `Mcp-Param-*`: encoded in base64 if it can't be a
/// header, or looks as if it were encoded.
/// -- 2026-07-28/basic/transports/streamable-http, "Value Encoding"
pub(crate) fn header_text(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim() == text
        && !text.is_empty()
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    match is_plain {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, params: &str, expected: &[(&str, &str)]) {
        let params = RawValue::from_string(params.to_owned()).unwrap();
        let headers = Facts::read(method, Some(&params))
            .stateless
            .unwrap_or_default();
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(headers, expected, "{method}");
    }

    #[test]
    fn stateless_message_has_its_headers() {
        let meta = r#""_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}"#;
        let version = ("mcp-protocol-version", "2026-07-28");
        check(
            "tools/call",
            &format!(r#"{{"name": "gr\u00f6sse", "uri": "a", {meta}}}"#),
            &[
                version,
                ("mcp-method", "tools/call"),
                ("mcp-name", "=?base64?Z3LDtnNzZQ==?="),
            ],
        );
        check(
            "resources/read",
            &format!(r#"{{"uri": "file:///a b", {meta}}}"#),
            &[
                version,
                ("mcp-method", "resources/read"),
                ("mcp-name", "file:///a b"),
            ],
        );
        check(
            "tools/list",
            &format!("{{{meta}}}"),
            &[version, ("mcp-method", "tools/list")],
        );
        check(
            "tools/call",
            r#"{"name": "a", "_meta": {"progressToken": 1}}"#,
            &[],
        );
        check("tools/call", r#"{"name": 1, "name": 2}"#, &[]);
    }

    #[test]
    fn unusual_names_are_encoded() {
        for (text, expected) in [
            ("a b", "a b"),
            (" a", "=?base64?IGE=?="),
            ("", "=?base64??="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ] {
            assert_eq!(header_text(text), expected);
        }
    }

    #[test]
    fn cancelled_request_keeps_the_type_of_its_id() {
        let cancelled = |params: &str| {
            let params = RawValue::from_string(params.to_owned()).unwrap();
            Facts::read("notifications/cancelled", Some(&params)).cancelled
        };
        assert_eq!(cancelled(r#"{"requestId": 1}"#), Some(RequestId::from(1)));
        assert_eq!(
            cancelled(r#"{"requestId": "1"}"#),
            Some(RequestId::from("1"))
        );
        assert_eq!(cancelled(r#"{"requestId": null}"#), None);
    }
}
