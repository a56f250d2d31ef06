//! Headers that repeat parts of the body, so that a gateway need not read it. They must agree
//! with it, or two readers would see two requests
//! -- 2026-07-28/basic/transports/streamable-http#standard-mcp-request-headers

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{ACCEPT, HeaderMap, HeaderName};
use mcpd_protocol::jsonrpc::{ErrorObject, Request};
use mcpd_protocol::meta::RequestMeta;
use mcpd_protocol::{Params, ProtocolVersion, Wire};

use crate::message::param_headers::ParameterHeaders;
use crate::message::trace::TraceContext;
use crate::policy::SecretHeaders;
use crate::server::Server;
use crate::transport::exchange::Channel;

/// Revision of the request.
pub(super) static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Session of the stateful wire.
pub(super) static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
static METHOD: HeaderName = HeaderName::from_static("mcp-method");
static NAME: HeaderName = HeaderName::from_static("mcp-name");
static TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
static TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");
static BAGGAGE: HeaderName = HeaderName::from_static("baggage");

/// Revision of a request without the header: "the server SHOULD assume protocol version
/// `2025-03-26`" -- 2025-11-25/basic/transports#protocol-version-header
const VERSION_WITHOUT_HEADER: ProtocolVersion = ProtocolVersion::V2025_03_26;

/// A POST repeats parts of its request in headers.
impl Channel for HeaderMap {
    /// By its own envelope, then by a header that no older client sends. A client of an unknown
    /// revision need not know `_meta`, so the header is checked then.
    fn is_stateless(&self, meta: &RequestMeta<'_>) -> Result<bool, ErrorObject> {
        if meta.is_stateless() {
            return Ok(true);
        }
        if !names_stateless_version(self) {
            return Ok(false);
        }
        version(self).map(|_| true)
    }

    fn check_version(&self, version: &str) -> Result<(), ErrorObject> {
        let header = require_single(self, &PROTOCOL_VERSION)?;
        agree("MCP-Protocol-Version", header, version)
    }

    /// Checks the other headers. Another revision might have other headers, so the revision is
    /// checked before.
    fn check(&self, request: &Request<'_>, params: &Params<'_>) -> Result<(), ErrorObject> {
        let method = &request.method;
        agree("Mcp-Method", require_single(self, &METHOD)?, method)?;
        if let Some(name) = name(method, params) {
            agree(
                "Mcp-Name",
                &decode("Mcp-Name", require_single(self, &NAME)?)?,
                &name,
            )?;
        }
        Ok(())
    }
}

/// Returns whether a header names a revision of the stateless wire, or an unknown one.
fn names_stateless_version(headers: &HeaderMap) -> bool {
    let is_stateful = |version: &str| {
        let version: Result<ProtocolVersion, _> = version.parse();
        version.is_ok_and(|version| version.wire() == Wire::Stateful)
    };
    let header = headers.get(&PROTOCOL_VERSION);
    header.is_some_and(|version| !is_stateful(version.to_str().unwrap_or_default().trim()))
}

/// Returns the revision in the header, for messages without another indication. "If the server
/// receives a request with an invalid or unsupported `MCP-Protocol-Version`, it MUST respond with
/// `400 Bad Request`" -- 2025-11-25/basic/transports#protocol-version-header
///
/// # Errors
///
/// The revision is not supported.
pub(super) fn version(headers: &HeaderMap) -> Result<ProtocolVersion, ErrorObject> {
    let Some(version) = single(headers, &PROTOCOL_VERSION)? else {
        return Ok(VERSION_WITHOUT_HEADER);
    };
    version
        .parse()
        .map_err(|_| ErrorObject::unsupported_protocol_version(version, &ProtocolVersion::ALL))
}

/// Returns the single value of a header, without surrounding white space.
///
/// # Errors
///
/// `-32020` for several values, or characters that no MCP header has.
pub(super) fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, ErrorObject> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.any(|other| other != value) {
        return Err(ErrorObject::header_mismatch(format!(
            "the header `{name}` occurs more than once"
        )));
    }
    let text = value.to_str().map_err(|_| {
        ErrorObject::header_mismatch(format!("the header `{name}` contains non-ASCII characters"))
    })?;
    Ok(Some(text.trim_ascii()))
}

/// Returns the headers of a request that scripts of `server` get.
pub(super) fn secrets(server: &Server, headers: &HeaderMap) -> SecretHeaders {
    let names = server.engine().secret_headers.load();
    SecretHeaders::collect(&names, |name| secret(headers, name))
}

/// Returns the text of a header that scripts get; none for several values, and other than text.
fn secret(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    Some(value.to_str().ok()?.to_owned())
}

/// Returns the trace context in the headers. A repeated header is ignored.
pub(super) fn trace(headers: &HeaderMap) -> TraceContext {
    let header = |name| single(headers, name).ok().flatten();
    match header(&TRACE_PARENT) {
        None => TraceContext::default(),
        parent => TraceContext::new(parent, header(&TRACE_STATE), header(&BAGGAGE)),
    }
}

fn require_single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a str, ErrorObject> {
    single(headers, name)?
        .ok_or_else(|| ErrorObject::header_mismatch(format!("the header `{name}` is missing")))
}

fn agree(name: &str, header: &str, body: &str) -> Result<(), ErrorObject> {
    if header == body {
        return Ok(());
    }
    Err(ErrorObject::header_mismatch(format!(
        "the header `{name}` is `{header}`, but the body has `{body}`"
    )))
}

/// Returns the value that `Mcp-Name` must repeat, for the methods that have it. A body without it
/// fails later, as faulty parameters. Only this member is parsed: a faulty one beside it must not
/// leave the header unchecked.
fn name<'a>(method: &str, params: &Params<'a>) -> Option<Cow<'a, str>> {
    let member = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        // "the client MUST set the `Mcp-Name` header to the value of `params.taskId`" -- SEP-2663
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    params.string(member)
}

/// Collects the headers that repeat arguments. The tool decides which of them count.
pub(super) fn parameters(headers: &HeaderMap) -> ParameterHeaders {
    let mut parameters = ParameterHeaders::default();
    for name in headers.keys() {
        if let Some(parameter) = name.as_str().strip_prefix("mcp-param-") {
            let value = single(headers, name).and_then(|value| {
                decode(name.as_str(), value.unwrap_or_default()).map(Cow::into_owned)
            });
            parameters.0.insert(parameter.to_owned(), value);
        }
    }
    parameters
}

/// Decodes a value. One that no header can carry is sent as `=?base64?…?=`.
fn decode<'a>(name: &str, value: &'a str) -> Result<Cow<'a, str>, ErrorObject> {
    let Some(encoded) = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    else {
        return Ok(Cow::Borrowed(value));
    };
    let malformed =
        || ErrorObject::header_mismatch(format!("the header `{name}` contains malformed Base64"));
    let bytes = STANDARD.decode(encoded).map_err(|_| malformed())?;
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| malformed())
}

/// Returns whether the client accepts event streams. The most specific media range counts;
/// without the header every type is accepted.
pub(super) fn accepts_events(headers: &HeaderMap) -> bool {
    const MOST_SPECIFIC_FIRST: [&[u8]; 3] = [b"text/event-stream", b"text/*", b"*/*"];
    let values = headers.get_all(ACCEPT).iter();
    let ranges = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let mut has_ranges = false;
    let mut best: Option<(usize, bool)> = None;
    for (range, is_wanted) in ranges.filter_map(parse_media_range) {
        has_ranges = true;
        let mut known = MOST_SPECIFIC_FIRST.iter();
        let Some(rank) = known.position(|known| range.eq_ignore_ascii_case(known)) else {
            continue;
        };
        if best.is_none_or(|(best, _)| rank < best) {
            best = Some((rank, is_wanted));
        }
    }
    best.map_or(!has_ranges, |(_, is_wanted)| is_wanted)
}

/// Parses a media range, and whether its weight accepts it -- RFC 9110, 12.4.2 and 12.5.1
fn parse_media_range(range: &[u8]) -> Option<(&[u8], bool)> {
    let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let kind = parts.next().filter(|kind| !kind.is_empty())?;
    let is_zero = |weight: &[u8]| {
        let weight = str::from_utf8(weight).ok();
        weight.is_some_and(|weight| weight.parse() == Ok(0.0_f32))
    };
    let mut parts = parts.filter_map(|part| {
        let sign = part.iter().position(|byte| *byte == b'=')?;
        Some((&part[..sign], &part[sign + 1..]))
    });
    let weight = parts.find(|(name, _)| name.eq_ignore_ascii_case(b"q"));
    Some((kind, !weight.is_some_and(|(_, weight)| is_zero(weight))))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn event_stream_requires_the_accept_header() {
        #[track_caller]
        fn check(accept: &[&'static str], expected: bool) {
            let values = accept.iter().map(|value| HeaderValue::from_static(value));
            let headers = values.map(|value| (ACCEPT, value)).collect();
            assert_eq!(accepts_events(&headers), expected, "{accept:?}");
        }
        check(&[], true);
        check(&["application/json, text/event-stream"], true);
        check(&["application/json", "Text/Event-Stream;q=0.5"], true);
        check(&["text/*"], true);
        check(&["application/json, */*;q=0.1"], true);
        check(&["application/json"], false);
        check(&["text/event-stream-like"], false);
        check(&["text/event-stream; q=0, */*"], false);
        check(&["*/*;q=0.000"], false);
        let unreadable = HeaderValue::from_bytes(b"\xff").unwrap();
        assert!(!accepts_events(
            &[(ACCEPT, unreadable)].into_iter().collect()
        ));
    }

    #[track_caller]
    fn check_name(header: &str, body: &str, agrees: bool) {
        let params = RawValue::from_string(format!(r#"{{"name":{body:?}}}"#)).unwrap();
        let request = Request::new(1.into(), "tools/call".to_owned(), Some(&params));
        let params = Params::read(request.params).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(&METHOD, "tools/call".parse().unwrap());
        headers.insert(&NAME, header.parse().unwrap());
        let checked = headers.check(&request, &params);
        assert_eq!(checked.is_ok(), agrees, "{header} {body}");
    }

    #[test]
    fn name_header_may_be_encoded() {
        check_name("math/add", "math/add", true);
        check_name(" math/add ", "math/add", true);
        check_name("=?base64?Z3LDvMOfZQ==?=", "grüße", true);
        check_name("math/add", "math_add", false);
        check_name("=?base64?Z3LDvMOfZQ?=", "grüße", false);
        check_name("=?base64?Z3LD vMOfZQ==?=", "grüße", false);
        check_name("=?BASE64?Z3LDvMOfZQ==?=", "grüße", false);
        // Without both marks it is the plain name.
        check_name("=?base64?x", "=?base64?x", true);
        check_name("=?base64?/w==?=", "x", false);
    }

    #[test]
    fn repeated_headers_must_be_equal() {
        let mut headers = HeaderMap::new();
        headers.append(&METHOD, "a".parse().unwrap());
        headers.append(&METHOD, "a".parse().unwrap());
        assert_eq!(single(&headers, &METHOD).unwrap(), Some("a"));
        headers.append(&METHOD, "b".parse().unwrap());
        assert!(single(&headers, &METHOD).is_err());
    }
}
