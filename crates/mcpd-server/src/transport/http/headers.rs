//! Headers that repeat what the body says, so that a gateway need not read it. They must agree, or two
//! readers would see two requests -- 2026-07-28/basic/transports/streamable-http#standard-mcp-request-headers

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderMap;
use mcpd_protocol::jsonrpc::{ErrorObject, Request};
use serde::Deserialize;

use crate::mirror::ParameterHeaders;
use crate::trace::TraceContext;

/// The revision the request is in.
pub(super) const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The session of the stateful wire.
pub(super) const SESSION_ID: &str = "mcp-session-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Checks that the headers of a stateless request name the revision of its body.
///
/// # Errors
///
/// `-32020` if they don't.
pub(crate) fn check_version(headers: &HeaderMap, version: &str) -> Result<(), ErrorObject> {
    let header = required(headers, PROTOCOL_VERSION)?;
    agree("MCP-Protocol-Version", header, version)
}

/// Checks the other headers of a stateless request against its body. In another revision they might be
/// others, so the revision is known by then.
///
/// # Errors
///
/// `-32020`, saying which header is missing, malformed or different.
pub(crate) fn check(headers: &HeaderMap, request: &Request<'_>) -> Result<(), ErrorObject> {
    agree("Mcp-Method", required(headers, METHOD)?, &request.method)?;
    if let Some(name) = name(request) {
        agree(
            "Mcp-Name",
            &decode("Mcp-Name", required(headers, NAME)?)?,
            &name,
        )?;
    }
    Ok(())
}

/// The single value of a header, without the white space around it.
///
/// # Errors
///
/// `-32020` if there are several, or it has characters that no MCP header has.
pub(super) fn single<'a>(
    headers: &'a HeaderMap,
    name: &str,
) -> Result<Option<&'a str>, ErrorObject> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.any(|other| other != value) {
        return Err(ErrorObject::header_mismatch(format!(
            "the header `{name}` is given more than once"
        )));
    }
    let text = value.to_str().map_err(|_| {
        ErrorObject::header_mismatch(format!(
            "the header `{name}` has characters outside of ASCII"
        ))
    })?;
    Ok(Some(text.trim_ascii()))
}

/// The trace that the headers name. One that is given more than once is none.
pub(super) fn trace(headers: &HeaderMap) -> TraceContext {
    let header = |name| single(headers, name).ok().flatten();
    match header("traceparent") {
        None => TraceContext::default(),
        parent => TraceContext::new(parent, header("tracestate"), header("baggage")),
    }
}

fn required<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<&'a str, ErrorObject> {
    single(headers, name)?
        .ok_or_else(|| ErrorObject::header_mismatch(format!("the header `{name}` is missing")))
}

fn agree(name: &str, header: &str, body: &str) -> Result<(), ErrorObject> {
    if header == body {
        return Ok(());
    }
    Err(ErrorObject::header_mismatch(format!(
        "the header `{name}` says `{header}`, the body `{body}`"
    )))
}

/// What `Mcp-Name` repeats, for the methods that have it. A body without it fails as that method's
/// parameters, later.
fn name<'a>(request: &Request<'a>) -> Option<Cow<'a, str>> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        name: Option<Cow<'a, str>>,
        #[serde(borrow)]
        uri: Option<Cow<'a, str>>,
        #[serde(borrow, rename = "taskId")]
        task_id: Option<Cow<'a, str>>,
    }
    let params = || serde_json::from_str::<Params<'a>>(request.params?.get()).ok();
    match &*request.method {
        "tools/call" | "prompts/get" => params()?.name,
        "resources/read" => params()?.uri,
        // "the client MUST set the `Mcp-Name` header to the value of `params.taskId`" -- SEP-2663
        "tasks/get" | "tasks/update" | "tasks/cancel" => params()?.task_id,
        _ => None,
    }
}

/// The headers that repeat arguments. Which of them count, the tool decides.
pub(super) fn parameters(headers: &HeaderMap) -> ParameterHeaders {
    let mut parameters = ParameterHeaders::default();
    for name in headers.keys() {
        if let Some(parameter) = name.as_str().strip_prefix("mcp-param-") {
            let value = single(headers, name.as_str()).and_then(|value| {
                decode(name.as_str(), value.unwrap_or_default()).map(Cow::into_owned)
            });
            parameters.0.insert(parameter.to_owned(), value);
        }
    }
    parameters
}

/// A value that no header can carry as it is, travels as `=?base64?…?=`.
fn decode<'a>(name: &str, value: &'a str) -> Result<Cow<'a, str>, ErrorObject> {
    let Some(encoded) = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    else {
        return Ok(Cow::Borrowed(value));
    };
    let malformed =
        || ErrorObject::header_mismatch(format!("the header `{name}` holds malformed Base64"));
    let bytes = STANDARD.decode(encoded).map_err(|_| malformed())?;
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| malformed())
}

#[cfg(test)]
mod tests {
    use mcpd_protocol::jsonrpc::Message;

    use super::*;

    #[track_caller]
    fn check_name(header: &str, body: &str, agrees: bool) {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{body:?}}}}}"#
        );
        let Ok(Message::Request(request)) = Message::decode(message.as_bytes()) else {
            panic!("{message}")
        };
        let mut headers = HeaderMap::new();
        headers.insert(METHOD, "tools/call".parse().unwrap());
        headers.insert(NAME, header.parse().unwrap());
        assert_eq!(check(&headers, &request).is_ok(), agrees, "{header} {body}");
    }

    #[test]
    fn a_name_may_be_encoded() {
        check_name("math/add", "math/add", true);
        check_name(" math/add ", "math/add", true);
        check_name("=?base64?Z3LDvMOfZQ==?=", "grüße", true);
        check_name("math/add", "math_add", false);
        check_name("=?base64?Z3LDvMOfZQ?=", "grüße", false);
        check_name("=?base64?Z3LD vMOfZQ==?=", "grüße", false);
        check_name("=?BASE64?Z3LDvMOfZQ==?=", "grüße", false);
        // Without both marks it is the name itself.
        check_name("=?base64?x", "=?base64?x", true);
        check_name("=?base64?/w==?=", "x", false);
    }

    #[test]
    fn repeated_headers_must_be_equal() {
        let mut headers = HeaderMap::new();
        headers.append(METHOD, "a".parse().unwrap());
        headers.append(METHOD, "a".parse().unwrap());
        assert_eq!(single(&headers, METHOD).unwrap(), Some("a"));
        headers.append(METHOD, "b".parse().unwrap());
        assert!(single(&headers, METHOD).is_err());
    }
}
