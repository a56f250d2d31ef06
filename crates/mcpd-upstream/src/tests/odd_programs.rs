//! Programs that send odd messages: only the odd part is lost. The reading of each message is
//! tested in the reader; here it is seen from the caller's side.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use super::programs::{SERVER, shell};
use super::{PROMPT_TIMEOUT, text};

/// Calls the tool of a program; checks that no fault of the program is reported and that the
/// answer comes at once.
async fn call_program(script: &str) -> Value {
    let fixture = shell(script).await;
    fixture.expect_tools(&["shell/any"]).await;
    fixture.expect_faults(&[]).await;
    let client = fixture.client("2026-07-28").await;
    let begun = Instant::now();
    let result = client.call("shell/any", json!({})).await;
    assert!(begun.elapsed() < PROMPT_TIMEOUT);
    result
}

/// Returns a shell server that answers calls with this `printf` format, in which `%s` is the id.
fn answering(format: &str) -> String {
    let answer = format!("printf '{format}\\n' \"$id\"; continue;");
    let server = SERVER.replace("tools/call) ", &format!("tools/call) {answer} "));
    format!("{server} && serve")
}

#[tokio::test]
async fn program_that_ends_on_another_greeting_is_started_anew() {
    let directory = tempfile::tempdir().unwrap();
    let starts = directory.path().join("starts");
    let server = SERVER.replace("initialize) ", "initialize) greeted=1; ");
    let server = server.replace(
        "case $method in",
        r#"[ "$greeted" -o "$method" = initialize ] || exit 1; case $method in"#,
    );
    let hang_up = "tools/call) [ ! -e \"$F\" ] || { rm \"$F\"; exit; }; ";
    let server = server.replace("tools/call) ", hang_up);
    let flag = directory.path().join("end");
    let (starts_path, flag_path) = (starts.display(), flag.display());
    let script = format!("F={flag_path}; echo >>{starts_path}; {server} && serve");
    let fixture = shell(&script).await;
    fixture.expect_tools(&["shell/any"]).await;
    fixture.expect_faults(&[]).await;
    let count = || fs::read_to_string(&starts).unwrap().len();
    assert_eq!(count(), 2);
    // The next start must not be slow again, because the greeting is remembered.
    fs::write(&flag, "").unwrap();
    let client = fixture.client("2026-07-28").await;
    client.call("shell/any", json!({})).await;
    let result = client.call("shell/any", json!({})).await;
    assert_eq!(result["content"], json!([]));
    assert_eq!(count(), 3);
}

#[tokio::test]
async fn program_that_answers_nonsense_is_greeted_with_a_handshake() {
    for nonsense in [
        r#"printf '{"jsonrpc": "2.0", "id": %s, "result": {}}\n' "$id""#,
        r#"printf '{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no"}}\n'"#,
        r#"printf '{"jsonrpc": "2.0", "error": "what?", "id": "none"}\n'"#,
    ] {
        let answer = format!("server/discover) {nonsense}; continue ;; initialize)");
        let server = SERVER.replacen("initialize)", &answer, 1);
        let result = call_program(&format!("{server} && serve")).await;
        assert_eq!(result["content"], json!([]), "{nonsense}");
    }
}

#[tokio::test]
async fn invalid_bytes_and_blocks_do_not_affect_others() {
    let result = r#"{"jsonrpc": "2.0", "id": %s, "result": {"content": [RESULT]}}"#;
    for (content, expected) in [
        (r#"{"type": "text", "text": "caf\351"}"#, "caf\u{fffd}"),
        (r#"{"type": "error", "text": "locked"}"#, "locked"),
        (
            r#"{"type": "text", "text": "a", "annotations": {"priority": "high"}}"#,
            "a",
        ),
    ] {
        let result = call_program(&answering(&result.replace("RESULT", content))).await;
        assert_eq!(text(&result), expected);
    }
}

#[tokio::test]
async fn odd_envelope_is_accepted() {
    let content = r#"{"content": [{"type": "text", "text": "a"}], "structuredContent": null}"#;
    for envelope in [
        r#"{"jsonrpc": "2.0", "id": %s, "result": RESULT, "error": null}"#,
        r#"[{"jsonrpc": "2.0", "id": %s, "result": RESULT}]"#,
        r#"\357\273\277{"jsonrpc": "2.0", "id": "%s", "result": RESULT}"#,
    ] {
        let result = call_program(&answering(&envelope.replace("RESULT", content))).await;
        assert_eq!(text(&result), "a");
        assert!(result.get("structuredContent").is_none(), "{result}");
    }
}

#[tokio::test]
async fn error_without_a_request_is_reported_at_once() {
    for id in ["null", "\"server-error\"", "-1"] {
        let error =
            r#"{"jsonrpc": "2.0", "id": ID, "error": {"code": -32000, "message": "locked"}}"#;
        let result = call_program(&answering(&error.replace("ID", id))).await;
        assert_eq!(text(&result), "locked");
    }
}

#[tokio::test]
async fn broken_answer_is_reported_at_once() {
    for answer in [
        r#"{"jsonrpc": "2.0", "id": %s, "result": {"content": ["#,
        r#"{"jsonrpc": "2.0", "result": {"content": [], "n": Infinity}, "id": %s}"#,
    ] {
        let result = call_program(&answering(answer)).await;
        let told = "The upstream server `shell` gave no valid response.";
        assert_eq!(text(&result), told);
    }
}

#[tokio::test]
async fn list_without_an_end_is_served() {
    let listed = r#""inputSchema": {"type": "object"}}]"#;
    for (cursor, faults) in [
        ("\"\"", &[][..]),
        (
            "\"more\"",
            &["lists its tools without an end: the cursor \"more\" repeats"],
        ),
    ] {
        let server = SERVER.replace(listed, &format!("{listed}, \"nextCursor\": {cursor}"));
        let fixture = shell(&format!("{server} && serve")).await;
        fixture.expect_tools(&["shell/any"]).await;
        fixture.expect_faults(faults).await;
    }
}

#[tokio::test]
async fn list_may_be_in_no_array() {
    let tool = r#"{"name": "any", "inputSchema": {"type": "object"}}"#;
    let listed = format!("[{tool}]");
    let server = SERVER.replace(&listed, &format!(r#"{{"3": {tool}}}"#));
    call_program(&format!("{server} && serve")).await;
    let fixture = shell(&format!("{} && serve", SERVER.replace(&listed, "null"))).await;
    fixture.expect_tools(&[]).await;
    fixture.expect_faults(&[]).await;
}

#[tokio::test]
async fn server_without_a_name_is_served() {
    let greeting =
        r#", "capabilities": {"tools": {}}, "serverInfo": {"name": "shell", "version": "0"}"#;
    for odd in ["", r#", "capabilities": {"tools": []}"#] {
        call_program(&format!("{} && serve", SERVER.replace(greeting, odd))).await;
    }
}

#[tokio::test]
async fn last_line_needs_no_end() {
    let answer =
        r#"{"jsonrpc": "2.0", "id": %s, "result": {"content": [{"type": "text", "text": "bye"}]}}"#;
    let answer = format!("printf '{answer}' \"$id\"; exit;");
    let server = SERVER.replace("tools/call) ", &format!("tools/call) {answer} "));
    let fixture = shell(&format!("{server} && serve")).await;
    let client = fixture.client("2026-07-28").await;
    assert_eq!(text(&client.call("shell/any", json!({})).await), "bye");
}
