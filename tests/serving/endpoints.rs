//! Foreign action endpoints, good and bad: scripts and other endpoints are served regardless, and
//! faults are reported.

use std::fs;

use mcpd_tests::{Daemon, Pipes, Sandbox, eventually, output};
use serde_json::{Value, json};

use crate::{Server, text};

const SCRIPT: &str = "#!/bin/sh\n[ \"$1\" = --help ] && echo '{\"description\": \"a script\"}'\n";

/// Returns the configuration of an endpoint below `prefix` that lists `tools` and answers a call
/// with the output of `body`.
fn endpoint(prefix: &str, tools: &str, body: &str, keys: &str) -> String {
    let program = format!(
        r#"read -r request
case $request in
*list_tools*) printf '%s\n' '{{"type": "result", "tools": {tools}}}' ;;
*) {body} ;;
esac"#
    );
    table(&program, &format!("prefix = \"{prefix}\"\n{keys}"))
}

/// Returns the configuration of an endpoint that is an `sh` program.
fn table(program: &str, keys: &str) -> String {
    format!("[[endpoint]]\ncommand = [\"sh\", \"-c\", '''{program}''']\n{keys}\n")
}

const ONE: &str = r#"[{"name": "one"}]"#;

/// Returns a sandbox with a script and these endpoints.
fn sandbox_with(endpoints: &[String]) -> Sandbox {
    let sandbox = Sandbox::new().with_script("script", SCRIPT);
    fs::write(sandbox.path().join("mcpd.toml"), endpoints.join("\n")).unwrap();
    sandbox
}

fn start(sandbox: &Sandbox) -> Pipes {
    Pipes::start(sandbox, &["--config", "mcpd.toml"])
}

fn names(server: &mut dyn Server) -> Vec<String> {
    let list = server.exchange(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let tools = list["result"]["tools"].as_array().unwrap();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

#[test]
fn bad_endpoint_does_not_affect_others() {
    let result = |stdout: &str| format!(r#"echo '{{"type": "result", "result": {stdout}}}'"#);
    let sandbox = sandbox_with(&[
        endpoint(
            "good",
            ONE,
            &result(r#"{"stdout": "fine", "exit_code": 0}"#),
            "",
        ),
        table(
            r#"echo '{"type": "error", "error": {"name": "x", "category": "fatal", "message": "no database"}}' >&2; exit 1"#,
            "",
        ),
        table("echo garbage", ""),
        table("exit 3", ""),
        table("sleep 1000", ""),
        table("head -c 100000000 /dev/zero", ""),
        "[[endpoint]]\ncommand = [\"./nowhere\"]\n".to_owned(),
        endpoint(
            "half",
            r#"[{"name": "one"}, {"name": ".."}, {"title": "x"}, {"name": "two", "input_schema": {"type": "string"}}]"#,
            "",
            "",
        ),
    ]);
    let mut daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
    assert_eq!(names(&mut daemon), ["good_one", "half_one", "script"]);
    assert_eq!(text(&daemon.call("good_one", json!({}))), "fine");
    let found = output(
        sandbox.command(&["check", "scripts", "--format", "short"]),
        b"",
    );
    insta::assert_snapshot!(sandbox.transcript(&found));
}

#[test]
fn list_has_its_own_timeout() {
    let program = format!(r#"sleep 1.5; echo '{{"type": "result", "tools": {ONE}}}'"#);
    let sandbox = sandbox_with(&[table(&program, "timeout = 1")]);
    let mut daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
    assert_eq!(names(&mut daemon), ["one", "script"]);
}

#[test]
fn call_of_an_unlisted_tool_is_explained() {
    let sandbox = sandbox_with(&[table("exit 3", "")]);
    let found = output(sandbox.command(&["call", "scripts", "one"]), b"");
    let said = String::from_utf8_lossy(&found.stderr);
    let expected = "did not list its tools: it failed with exit code 3";
    assert!(said.contains("there is no tool `one`"), "{said}");
    assert!(said.contains(expected), "{said}");
}

/// Checks the text of a call whose endpoint prints the output of `body`, and whether it is an
/// error.
#[track_caller]
fn check(body: &str, expected: &str, is_error: bool) {
    let sandbox = sandbox_with(&[endpoint("far", ONE, body, "timeout = 2")]);
    let mut server = start(&sandbox);
    let result = server.call("far_one", json!({}));
    assert_eq!(text(&result), expected, "{body}");
    assert_eq!(result["isError"] == json!(true), is_error, "{body}");
    // The other tools still work.
    server.call("script", json!({}));
}

#[test]
fn answer_has_output_and_exit_code() {
    check(
        r#"echo '{"type": "result", "tool": "one", "result": {"stdout": "ab", "exit_code": 0}}'"#,
        "ab",
        false,
    );
    check(
        r#"echo '{"type": "result", "result": {"stdout": "no", "exit_code": 4}}'"#,
        "no",
        true,
    );
    check(
        r#"echo '{"type": "result", "result": {"n": 1.50}}'"#,
        r#"{"n": 1.50}"#,
        false,
    );
    let error = r#"echo '{"type": "error", "error": {"name": "x", "category": "usage", "message": "no such note"}}'"#;
    check(error, "no such note", true);
    check(&format!("{error}; exit 1"), "no such note", true);
    check(&format!("{error} >&2; exit 1"), "no such note", true);
}

#[test]
fn invalid_answer_is_reported_without_details() {
    let no_answer = "The endpoint gave no valid response. The reason is in the server's log.";
    for body in [
        "echo garbage",
        "exit 1",
        "kill -9 $$",
        "head -c 100000000 /dev/zero",
        r#"echo '{"type": "result", "result": "text"}'"#,
        r#"echo '{"type": "result", "tools": []}'"#,
    ] {
        check(body, no_answer, true);
    }
}

#[test]
fn command_line_call_explains_a_missing_answer() {
    let sandbox = sandbox_with(&[endpoint("far", ONE, "echo garbage", "")]);
    let found = output(sandbox.command(&["call", "scripts", "far/one"]), b"");
    let said = String::from_utf8_lossy(&found.stderr);
    let expected = "expected an object of the type `result`, found `garbage`";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn endpoint_timeout_is_reported() {
    let expected = "The endpoint was stopped because it ran longer than its limit of 2 s.";
    check("sleep 1000", expected, true);
}

#[test]
fn an_object_is_structured_content() {
    let body = r#"echo '{"type": "result", "result": {"echo": "hi"}}'"#;
    let sandbox = sandbox_with(&[endpoint("far", ONE, body, "")]);
    let result = start(&sandbox).call("far_one", json!({}));
    assert_eq!(result["structuredContent"], json!({"echo": "hi"}));
    assert_eq!(text(&result), r#"{"echo": "hi"}"#);
}

#[test]
fn endpoint_receives_the_arguments() {
    let body = r#"printf '{"type": "result", "result": %s}' "$request""#;
    let tools = r#"[{"name": "sub/one", "input_schema": {"type": "object", "required": ["n"]}}]"#;
    let sandbox = sandbox_with(&[endpoint("far", tools, body, "")]);
    let mut server = start(&sandbox);
    let result = server.call("far_sub_one", json!({"n": [1.5, "é"]}));
    let asked = r#"{"action":"call_tool","tool":"sub/one","arguments":{"n":[1.5,"é"]}}"#;
    assert_eq!(text(&result), asked);
    let refused = server.call("far_sub_one", json!({}));
    assert_eq!(
        text(&refused),
        "Invalid arguments: option `n`: expected a value, got nothing"
    );
}

#[test]
fn changed_list_is_served() {
    let program = r#"cat tools.json && read -r request"#;
    let sandbox = sandbox_with(&[table(program, "refresh = 0.05")]);
    let list = |tools: &str| {
        let new = sandbox.path().join("new.json");
        fs::write(&new, format!(r#"{{"type": "result", "tools": {tools}}}"#)).unwrap();
        fs::rename(new, sandbox.path().join("tools.json")).unwrap();
    };
    let mut daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
    let mut expect = |expected: &[&str]| {
        eventually("another list", || {
            (names(&mut daemon) == expected).then_some(())
        });
    };
    // The first listing fails, because the file is missing.
    expect(&["script"]);
    list(ONE);
    expect(&["one", "script"]);
    list(r#"[{"name": "one"}, {"name": "two"}]"#);
    expect(&["one", "script", "two"]);
    fs::remove_file(sandbox.path().join("tools.json")).unwrap();
    list("[]");
    expect(&["script"]);
}

#[test]
fn endpoint_receives_only_its_own_secrets() {
    let body = r#"printf '{"type": "result", "result": {"stdout": "%s|%s|%s", "exit_code": 0}}' "$TOKEN" "$MCPD_CONFIG" "$MCPD_NO_SOURCES""#;
    let keys = "[endpoint.env]\nTOKEN = \"s3cret-of-alice\"\n";
    let sandbox = sandbox_with(&[endpoint("far", ONE, body, keys)]);
    let result = start(&sandbox).call("far_one", json!({}));
    assert_eq!(text(&result), "[redacted TOKEN]||1");
}

#[test]
fn rules_apply_to_tools_of_an_endpoint() {
    let body = r#"echo x 2>/dev/null >"$PWD/written" && said=yes || said=no; printf '{"type": "result", "result": {"stdout": "%s", "exit_code": 0}}' $said"#;
    for (pattern, written) in [("near/*", "yes"), ("far/*", "no")] {
        let rule = format!("[[tool]]\nmatch = \"{pattern}\"\nsandbox = \"guarded\"\n");
        let sandbox = sandbox_with(&[endpoint("far", ONE, body, ""), rule]);
        let result = start(&sandbox).call("far_one", json!({}));
        assert_eq!(text(&result), written, "{pattern}");
    }
}
