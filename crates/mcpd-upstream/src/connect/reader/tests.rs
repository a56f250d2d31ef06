//! Messages in the many forms that servers give them.

use rmcp::model::{ClientRequest, CustomRequest};
use serde_json::json;

use super::*;

/// Makes a reader for a connection on which the request 7 is pending.
fn reader(method: &str) -> Reader {
    let pending = Pending::default();
    let request = ClientRequest::CustomRequest(CustomRequest::new(method, None));
    let id = RequestId::Number(7);
    pending.record_sent(&ClientJsonRpcMessage::request(request, id));
    Reader {
        remarks: Remarks::default(),
        pending,
    }
}

fn origin(kind: Kind) -> Origin {
    Origin {
        id: RequestId::Number(7),
        kind,
        is_streamed: false,
    }
}

/// Reads `bytes` as the answer to a call, and compares the message and the remarks.
#[track_caller]
fn check(bytes: &[u8], expected: &Value, said: &[&str]) {
    let reader = reader("tools/call");
    let readings = reader.read(bytes, None);
    let [reading] = readings.as_slice() else {
        panic!("{readings:?}");
    };
    assert_eq!(&json!(reading.message), expected);
    check_remarks(&reader, said);
}

#[track_caller]
fn check_remarks(reader: &Reader, said: &[&str]) {
    let warnings = reader.remarks.warnings();
    assert_eq!(warnings.len(), said.len(), "{warnings:?}");
    for (remark, start) in warnings.iter().zip(said) {
        assert!(remark.starts_with(start), "{warnings:?}");
    }
}

fn answer(text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": text}]}})
}

const WHOLE: &str =
    r#"{"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": "a"}]}}"#;

#[test]
fn answer_is_read_as_it_is() {
    let reader = reader("tools/call");
    let readings = reader.read(WHOLE.as_bytes(), None);
    assert!(!readings[0].is_mended);
    check(WHOLE.as_bytes(), &answer("a"), &[]);
}

#[test]
fn byte_that_is_no_utf_8_is_replaced() {
    let whole = WHOLE.replace("\"a\"", "\"caf\u{1}\"");
    let bytes = whole
        .bytes()
        .map(|byte| if byte == 1 { 0xE9 } else { byte });
    let bytes: Vec<u8> = bytes.collect();
    check(
        &bytes,
        &answer("caf\u{fffd}"),
        &["sends bytes that are not UTF-8"],
    );
}

#[test]
fn envelope_may_be_odd() {
    let body = &WHOLE[1..WHOLE.len() - 1];
    for (odd, said) in [
        (format!("\u{feff}{WHOLE}\r"), vec![]),
        (format!("[{WHOLE}]"), vec!["sends messages in an array"]),
        (
            format!("{{{body}, \"error\": null}}"),
            vec!["sends responses with both"],
        ),
        (WHOLE.replace("\"jsonrpc\": \"2.0\", ", ""), vec![]),
        (WHOLE.replace('7', "\"7\""), vec![]),
        (WHOLE.replace('7', "7.0"), vec![]),
    ] {
        check(odd.as_bytes(), &answer("a"), &said);
    }
}

#[test]
fn half_a_surrogate_pair_is_replaced() {
    let bytes = WHOLE.replace("\"a\"", r#""a\ud83d""#);
    check(bytes.as_bytes(), &answer("a\u{fffd}"), &[]);
}

#[test]
fn several_messages_in_an_array_are_read_in_order() {
    let reader = reader("tools/call");
    let said = r#"{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}"#;
    let readings = reader.read(format!("[{said}, {WHOLE}]").as_bytes(), None);
    assert_eq!(readings.len(), 2);
    assert_eq!(json!(readings[1].message), answer("a"));
}

#[test]
fn error_is_read_in_any_form() {
    for (error, code, message) in [
        (r#"{"code": -32000, "message": "no"}"#, -32000, "no"),
        (r#""no""#, -32603, "no"),
        (r#"{"code": "-32000", "message": "no"}"#, -32000, "no"),
        (r#"{"message": "no"}"#, -32603, "no"),
        (r#"{"reason": "no"}"#, -32603, r#"{"reason":"no"}"#),
    ] {
        let reader = reader("tools/call");
        let bytes = format!(r#"{{"jsonrpc": "2.0", "id": 7, "result": null, "error": {error}}}"#);
        let readings = reader.read(bytes.as_bytes(), None);
        let expected =
            json!({"jsonrpc": "2.0", "id": 7, "error": {"code": code, "message": message}});
        assert_eq!(json!(readings[0].message), expected);
    }
}

#[test]
fn answer_that_is_no_json_becomes_an_error() {
    for bytes in [
        r#"{"jsonrpc": "2.0", "id": 7, "result": {"content": [], "n": NaN}}"#,
        r#"{"jsonrpc": "2.0", "id": 7, "result": {"content": ["#,
        r#"{"jsonrpc": "2.0", "result": {"content": [], "n": NaN}, "id": 7}"#,
        r#"{"jsonrpc": "2.0", "id": 7}"#,
    ] {
        let reader = reader("tools/call");
        let readings = reader.read(bytes.as_bytes(), None);
        let told = json!(readings[0].message);
        assert_eq!(told["id"], 7, "{told}");
        assert_eq!(told["error"]["code"], UNREADABLE.0, "{told}");
    }
}

#[test]
fn noise_is_remarked_and_skipped() {
    for noise in [
        "Listening ...",
        "[INFO] here",
        "7",
        r#"{"error": "unauthorized"}"#,
        "[]",
    ] {
        let reader = reader("tools/call");
        assert!(reader.read(noise.as_bytes(), None).is_empty());
        check_remarks(&reader, &["sends something that is not a message"]);
    }
}

#[test]
fn notification_may_have_an_odd_envelope() {
    let reader = reader("tools/call");
    for params in ["null", "[]"] {
        let bytes = format!(
            r#"{{"jsonrpc": "2.0", "id": null, "method": "notifications/tools/list_changed", "params": {params}}}"#
        );
        let readings = reader.read(bytes.as_bytes(), None);
        let expected = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        assert_eq!(json!(readings[0].message), expected);
    }
}

/// Reads a message in the response to the request 7.
#[track_caller]
fn check_response(bytes: &str, expected_id: u64, is_error: bool) {
    let readings = reader("tools/call").read(bytes.as_bytes(), Some(&origin(Kind::CallTool)));
    let told = json!(readings[0].message);
    assert_eq!(told["id"], expected_id, "{told}");
    assert_eq!(told.get("error").is_some(), is_error, "{told}");
}

#[test]
fn response_belongs_to_its_request() {
    let error = r#""error": {"code": -32000, "message": "no"}"#;
    for id in ["null", "\"server-error\"", "8"] {
        check_response(
            &format!(r#"{{"jsonrpc": "2.0", "id": {id}, {error}}}"#),
            7,
            true,
        );
    }
    check_response(&format!(r#"{{"jsonrpc": "2.0", {error}}}"#), 7, true);
    check_response(&WHOLE.replace('7', "null"), 7, false);
    // The number may belong to another client's request.
    check_response(&WHOLE.replace('7', "8"), 7, true);
}

#[test]
fn stream_may_have_answers_to_other_requests() {
    let reader = reader("tools/call");
    let origin = Origin {
        id: RequestId::Number(6),
        is_streamed: true,
        ..origin(Kind::Other)
    };
    let readings = reader.read(WHOLE.as_bytes(), Some(&origin));
    assert_eq!(json!(readings[0].message), answer("a"));
}

/// Returns the result of a request as read.
#[track_caller]
fn result(method: &str, result: Value) -> Value {
    let bytes = json!({"jsonrpc": "2.0", "id": 7, "result": result}).to_string();
    let mut readings = reader(method).read(bytes.as_bytes(), None);
    json!(readings.swap_remove(0).message)["result"].take()
}

#[test]
fn greeting_may_lack_every_member() {
    let nothing = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
        "serverInfo": {"name": "", "version": ""},
    });
    assert_eq!(result("initialize", json!({})), nothing);
    let given = json!({
        "protocolVersion": "2025-03-26",
        "capabilities": {"tools": [], "prompts": false, "logging": true, "experimental": []},
        "serverInfo": {"name": "odd"},
        "instructions": null,
    });
    let expected = json!({
        "protocolVersion": "2025-03-26",
        "capabilities": {"tools": {}, "logging": {}},
        "serverInfo": {"name": "odd", "version": ""},
    });
    assert_eq!(result("initialize", given), expected);
    let given = json!({"protocolVersion": "2025-03-26", "capabilities": []});
    assert_eq!(result("initialize", given)["capabilities"], json!({}));
}

#[test]
fn discover_answer_without_revisions_is_an_error() {
    let known = result(
        "server/discover",
        json!({"supportedVersions": ["2026-07-28"]}),
    );
    assert_eq!(known["supportedVersions"], json!(["2026-07-28"]));
    for nonsense in [json!({}), json!(null), json!("ok"), json!({"tools": []})] {
        let bytes = json!({"jsonrpc": "2.0", "id": 7, "result": nonsense}).to_string();
        let readings = reader("server/discover").read(bytes.as_bytes(), None);
        let told = json!(readings[0].message);
        assert_eq!(
            told["error"]["code"],
            ErrorCode::METHOD_NOT_FOUND.0,
            "{told}"
        );
    }
}

#[test]
fn block_of_an_unknown_type_is_read_as_text() {
    for stamp in [json!(null), json!("complete")] {
        let block = json!({"type": "error", "text": "locked"});
        let read = result(
            "tools/call",
            json!({"content": [block], "resultType": stamp}),
        );
        let expected = json!([{"type": "text", "text": "locked"}]);
        assert_eq!(read["content"], expected, "{read}");
    }
}

#[test]
fn question_in_place_of_a_result_stays_one() {
    let given = json!({"resultType": "input_required", "inputRequests": {}, "requestState": "s"});
    assert_eq!(result("tools/call", given)["resultType"], "input_required");
}
