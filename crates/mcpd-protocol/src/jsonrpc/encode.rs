//! Encoding of messages to bytes. Each function gives one line of JSON without its terminator, so
//! that the same bytes fit a pipe, an HTTP body and an event stream.

use memchr::memmem;
use serde::Serialize;

use super::error::ErrorObject;
use super::id::RequestId;

const START: &[u8] = br#"{"jsonrpc":"2.0""#;

/// Encodes a response that succeeded. The public function is
/// [`Stamp::respond`](crate::Stamp::respond).
pub(crate) fn response(id: &RequestId, result: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut out = start(256);
    member(&mut out, "id", id)?;
    let before = out.len();
    member(&mut out, "result", result)?;
    replace_nul(&mut out[before..]);
    Ok(finish(out))
}

/// Encodes a response that succeeded from an already encoded result, which must be one JSON
/// object.
#[must_use]
pub fn response_raw(id: &RequestId, result: &[u8]) -> Vec<u8> {
    let mut out = start(64 + result.len());
    plain_member(&mut out, "id", id);
    name(&mut out, "result");
    out.extend_from_slice(result);
    finish(out)
}

/// Returns the bytes before and after an already encoded result, which must be one JSON object,
/// that make a response of it without copying it. Unlike [`response_raw`] this keeps line breaks,
/// see [`one_line`].
#[must_use]
pub fn response_around(id: &RequestId) -> (Vec<u8>, &'static [u8]) {
    let mut before = start(64);
    plain_member(&mut before, "id", id);
    name(&mut before, "result");
    (before, b"}")
}

/// Encodes a response that failed. It has no id when the request's own could not be read.
#[must_use]
pub fn error_response(id: Option<&RequestId>, error: &ErrorObject) -> Vec<u8> {
    let mut out = start(256);
    if let Some(id) = id {
        plain_member(&mut out, "id", id);
    }
    let before = out.len();
    plain_member(&mut out, "error", error);
    replace_nul(&mut out[before..]);
    finish(out)
}

/// Encodes a notification.
///
/// # Errors
/// Fails if `params` has no JSON form, such as a map with keys that are not strings. No type of
/// this crate is like that.
pub fn notification(method: &str, params: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut out = start(256);
    member(&mut out, "method", method)?;
    member(&mut out, "params", params)?;
    Ok(finish(out))
}

/// Encodes a request.
///
/// # Errors
/// Fails if `params` has no JSON form, as for [`notification`].
pub fn request(
    id: &RequestId,
    method: &str,
    params: &impl Serialize,
) -> serde_json::Result<Vec<u8>> {
    let mut out = start(256);
    member(&mut out, "id", id)?;
    member(&mut out, "method", method)?;
    member(&mut out, "params", params)?;
    Ok(finish(out))
}

fn start(capacity: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(capacity);
    out.extend_from_slice(START);
    out
}

fn name(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn member(
    out: &mut Vec<u8>,
    key: &str,
    value: &(impl Serialize + ?Sized),
) -> serde_json::Result<()> {
    name(out, key);
    serde_json::to_writer(out, value)
}

/// Writes a [`member`] that always has a JSON form: an id or an error object.
fn plain_member(out: &mut Vec<u8>, key: &str, value: &impl Serialize) {
    member(out, key, value).expect("strings, integers and raw JSON always encode into memory");
}

/// Closes the object and keeps it on one line.
fn finish(mut out: Vec<u8>) -> Vec<u8> {
    out.push(b'}');
    one_line(&mut out);
    out
}

/// Replaces U+0000 in the strings of valid JSON by U+FFFD, whose escape is as long. Model APIs and
/// databases permanently refuse a conversation with that character, so no result and no error
/// contains it.
pub fn replace_nul(json: &mut [u8]) {
    const NUL: &[u8] = br"\u0000";
    let mut from = 0;
    while let Some(found) = memmem::find(&json[from..], NUL) {
        let at = from + found;
        // Behind an odd number of backslashes, this one is escaped itself.
        let before = json[..at].iter().rev();
        let is_escaped = before.take_while(|byte| **byte == b'\\').count() % 2 == 1;
        if !is_escaped {
            json[at..at + NUL.len()].copy_from_slice(br"\ufffd");
        }
        from = at + NUL.len();
    }
}

/// Puts JSON on one line. In JSON text a line break stands only between tokens, where a space does
/// as well.
pub fn one_line(json: &mut [u8]) {
    for byte in json {
        // The unconditional store lets the loop be vectorised, which is several times faster.
        *byte = if matches!(*byte, b'\n' | b'\r') {
            b' '
        } else {
            *byte
        };
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    #[track_caller]
    fn check(encoded: &[u8], expected: &str) {
        assert_eq!(std::str::from_utf8(encoded).unwrap(), expected);
    }

    #[test]
    fn nul_in_a_string_is_replaced_and_its_escaped_spelling_is_not() {
        for (json, expected) in [
            (r#""a\u0000\u0000b""#, r#""a\ufffd\ufffdb""#),
            (r#""a\\u0000""#, r#""a\\u0000""#),
            (r#""a\\\u0000""#, r#""a\\\ufffd""#),
            (r#""\u00000""#, r#""\ufffd0""#),
            (r#"{"u0000":"\u0001"}"#, r#"{"u0000":"\u0001"}"#),
        ] {
            let mut bytes = json.as_bytes().to_vec();
            replace_nul(&mut bytes);
            check(&bytes, expected);
        }
    }

    #[test]
    fn nul_is_echoed_in_ids_only() {
        let id = RequestId::from("a\0");
        let error = ErrorObject::internal_error("b\0");
        check(
            &error_response(Some(&id), &error),
            r#"{"jsonrpc":"2.0","id":"a\u0000","error":{"code":-32603,"message":"b\ufffd"}}"#,
        );
        check(
            &response(&id, &json!({"text": "b\0"})).unwrap(),
            r#"{"jsonrpc":"2.0","id":"a\u0000","result":{"text":"b\ufffd"}}"#,
        );
    }

    #[test]
    fn each_kind_of_message_is_one_compact_object() {
        let id = RequestId::from("a\"b");
        check(
            &response(&id, &json!({"ok": true})).unwrap(),
            r#"{"jsonrpc":"2.0","id":"a\"b","result":{"ok":true}}"#,
        );
        check(
            &response_raw(&RequestId::from(-7), b"{}"),
            r#"{"jsonrpc":"2.0","id":-7,"result":{}}"#,
        );
        check(
            &notification("notifications/x", &json!({})).unwrap(),
            r#"{"jsonrpc":"2.0","method":"notifications/x","params":{}}"#,
        );
        check(
            &request(&RequestId::from(1), "ping", &json!({})).unwrap(),
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#,
        );
    }

    #[test]
    fn an_error_without_a_readable_id_has_no_id() {
        let error = ErrorObject::parse_error("not JSON");
        check(
            &error_response(None, &error),
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"not JSON"}}"#,
        );
        check(
            &error_response(Some(&RequestId::from(1)), &error),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"not JSON"}}"#,
        );
    }

    #[test]
    fn raw_json_over_several_lines_becomes_one_line() {
        let raw = RawValue::from_string("{\r\n \"a\": \"\\n\"\n}".into()).unwrap();
        check(
            &response(&RequestId::from(1), &raw).unwrap(),
            r#"{"jsonrpc":"2.0","id":1,"result":{   "a": "\n" }}"#,
        );
    }
}
