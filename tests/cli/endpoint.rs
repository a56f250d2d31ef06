//! `mcpd endpoint`, and the endpoint in the examples.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use mcpd_tests::{Sandbox, output};
use serde_json::{Value, json};

use crate::sandbox;

/// Script that prints the variables of endpoints.
const SEARCH: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Searches.", "command": "search QUERY", "safety": "Reads only notes."}'
  echo '{"query": {"description": "What for", "value_type": "string", "default_value": "all"},
         "limit": {"description": "How many", "value_type": "integer", "default_value": 3}}' >&2
  exit 0
fi
echo "${TOOL_QUERY-none}"
echo "${TOOL_ARGS-none}"
"#;

/// Returns the transcript of one request.
fn ask(sandbox: &Sandbox, request: &str) -> String {
    sandbox.run_with_stdin(&["endpoint", "scripts", "-q"], request)
}

/// Returns the answer to a request that succeeds.
#[track_caller]
fn answer(sandbox: &Sandbox, request: &Value) -> Value {
    let command = sandbox.command(&["endpoint", "scripts"]);
    let output = output(command, request.to_string().as_bytes());
    assert!(output.status.success(), "{}", sandbox.transcript(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"action": "call_tool", "tool": tool, "arguments": arguments})
}

#[test]
fn a_tool_is_listed_as_it_is_described() {
    let sandbox = sandbox().with_script("search", SEARCH);
    let listed = answer(&sandbox, &json!({"action": "list_tools"}));
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["count", "exit", "hello", "math/calc", "search"]);
    for tool in tools {
        let request = json!({"action": "describe_tool", "tool": tool["name"]});
        let described = answer(&sandbox, &request);
        assert_eq!(described, json!({"type": "result", "tool": tool}));
    }
}

#[test]
fn a_descriptor_has_the_words_of_the_script_or_those_made_of_its_options() {
    let sandbox = sandbox().with_script("search", SEARCH);
    let describe = |tool: &str| {
        let request = json!({"action": "describe_tool", "tool": tool});
        answer(&sandbox, &request)["tool"].take()
    };
    let search = describe("search");
    assert_eq!(search["command"], "search QUERY");
    assert_eq!(search["safety"], "Reads only notes.");
    insta::assert_json_snapshot!(describe("math_calc"));
}

#[test]
fn result_has_output_and_exit_code() {
    let sandbox = sandbox();
    assert_eq!(
        answer(&sandbox, &json!({"action": "call_tool", "tool": "hello"})),
        json!({
            "type": "result",
            "tool": "hello",
            "result": {"stdout": "{\"message\": \"Hello, World!\"}", "exit_code": 0}
        })
    );
    assert_snapshot!(ask(&sandbox, &call("exit", &json!({"code": 4})).to_string()), @r#"
    exit code: 0
    ----- stdout -----
    {"type":"result","tool":"exit","result":{"stdout":"{\"error\": \"as asked\"}","exit_code":4}}
    ----- stderr -----
    ERROR it broke
    PROGRESS 1/2 halfway
    "#);
}

#[test]
fn the_query_and_all_arguments_are_variables() {
    let sandbox = Sandbox::new()
        .with_script("search", SEARCH)
        .with_script("other", &SEARCH.replace("\"query\"", "\"words\""));
    let printed = |tool: &str, arguments: &Value| {
        let mut command = sandbox.command(&["endpoint", "scripts"]);
        command
            .env("TOOL_QUERY", "another")
            .env("TOOL_ARGS", "another");
        let output = output(command, call(tool, arguments).to_string().as_bytes());
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["result"]["stdout"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        printed("search", &json!({"query": "$(id) 'é'"})),
        "$(id) 'é'\n{\"query\":\"$(id) 'é'\",\"limit\":3}"
    );
    assert_eq!(
        printed("other", &json!({})),
        "none\n{\"words\":\"all\",\"limit\":3}"
    );
    let long = "x".repeat(32 * 1024);
    assert_eq!(
        printed("search", &json!({"query": long})),
        format!("{long}\nnone")
    );
}

#[test]
fn failed_request_is_attributed() {
    let sandbox = sandbox();
    assert_snapshot!(ask(&sandbox, "[]"), @r#"
    exit code: 1
    ----- stdout -----
    {"type":"error","error":{"name":"mcpd","category":"usage","message":"the request is not a JSON object"}}
    "#);
    assert_snapshot!(ask(&sandbox, r#"{"action": "call_tool", "tool": "hello", "arguments": []}"#), @r#"
    exit code: 1
    ----- stdout -----
    {"type":"error","error":{"name":"mcpd","category":"usage","message":"`arguments` is not a JSON object"}}
    "#);
    assert_snapshot!(ask(&sandbox, r#"{"action": "describe_tool", "tool": "helo"}"#), @r#"
    exit code: 1
    ----- stdout -----
    {"type":"error","error":{"name":"mcpd","category":"usage","message":"there is no tool `helo`"}}
    "#);
    assert_snapshot!(ask(&sandbox, &call("exit", &json!({"code": "x"})).to_string()), @r#"
    exit code: 1
    ----- stdout -----
    {"type":"error","error":{"name":"mcpd","category":"usage","message":"Invalid arguments: option `code`: expected an integer, got the string \"x\""}}
    "#);
    let missing = ["endpoint", "nowhere"];
    assert_snapshot!(sandbox.run_with_stdin(&missing, r#"{"action": "list_tools"}"#), @r#"
    exit code: 1
    ----- stdout -----
    {"type":"error","error":{"name":"mcpd","category":"fatal","message":"failed to read the root directory `nowhere`: No such file or directory (os error 2)"}}
    "#);
}

#[test]
fn rules_about_local_apply_and_refusals_are_recorded() {
    let sandbox = sandbox();
    let rules = "[[rule]]\nclients = [\"local\"]\nallow = [\"hello\", \"exit\"]\n\
                 [[rule]]\ndeny = [\"exit\"]\narguments = { code = [\"4\"] }\n";
    fs::write(sandbox.path().join("mcpd.toml"), rules).unwrap();
    let listed = answer(&sandbox, &json!({"action": "list_tools"}));
    let tools = listed["tools"].as_array().unwrap().iter();
    let names: Vec<_> = tools.map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["exit", "hello"]);

    let fault = |request: &Value| {
        let command = sandbox.command(&["endpoint", "scripts", "-q"]);
        let output = output(command, request.to_string().as_bytes());
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["error"]["message"].as_str().unwrap().to_owned()
    };
    let describe = json!({"action": "describe_tool", "tool": "count"});
    assert_eq!(fault(&describe), "there is no tool `count`");
    for tool in ["count", "cuont"] {
        let missing = format!("there is no tool `{tool}`");
        assert_eq!(fault(&call(tool, &json!({}))), missing);
    }
    assert_eq!(
        fault(&call("exit", &json!({"code": 4}))),
        "`exit` was not called: a rule denies these arguments."
    );
    let log = sandbox.stdout(&["audit", "tail", "--json"]);
    let records = serde_json::Deserializer::from_slice(&log).into_iter::<Value>();
    let outcomes: Vec<_> = records
        .map(|record| record.unwrap()["outcome"].take())
        .collect();
    assert_eq!(outcomes, ["denied", "unknown-tool", "denied"]);
}

/// Returns the answer of the endpoint in the examples.
fn echo(request: &str) -> String {
    let sandbox = Sandbox::new();
    let example = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/endpoints/echo_external"
    );
    sandbox.transcript(&output(
        sandbox.program(Path::new(example)),
        request.as_bytes(),
    ))
}

#[test]
fn example_echoes_a_message() {
    let tool = r#"{"name":"echo_external","description":"Repeats a message.","command":"echo_external message=STRING","origin":"local","safety":"Changes nothing. Stays on this machine.","input_schema":{"type":"object","properties":{"message":{"type":"string"}},"required":["message"],"additionalProperties":false},"result_schema":{"type":"object","properties":{"type":{"const":"result"},"tool":{"type":"string"},"result":{"type":"object","properties":{"echo":{"type":"string"}},"required":["echo"]}},"required":["type","tool","result"]}}"#;
    let answered = |request: &str, answer: &str| {
        assert_eq!(
            echo(request),
            format!("exit code: 0\n----- stdout -----\n{answer}\n")
        );
    };
    answered(
        r#"{"action":"list_tools"}"#,
        &format!(r#"{{"type":"result","tools":[{tool}]}}"#),
    );
    answered(
        r#"{"action":"describe_tool","tool":"echo_external"}"#,
        &format!(r#"{{"type":"result","tool":{tool}}}"#),
    );
    for message in ["hi", r#"a \"b\" \\ \n\u0000 é %s {[}, $(id) `id`"#] {
        answered(
            &format!(
                r#"{{"action":"call_tool","tool":"echo_external","arguments":{{"message":"{message}"}}}}"#
            ),
            &format!(
                r#"{{"type":"result","tool":"echo_external","result":{{"echo":"{message}"}}}}"#
            ),
        );
    }
}

#[test]
fn example_refuses_unknown_tools() {
    for (request, message) in [
        ("", "the request is not a JSON object"),
        ("[]", "the request is not a JSON object"),
        (
            r#"{"action":"list_tools"} {}"#,
            "the request is not a JSON object",
        ),
        (
            r#"{"x":["action","list_tools"]}"#,
            "action must be list_tools, describe_tool or call_tool",
        ),
        (
            r#"{"action":"describe_tool","tool":"x"}"#,
            "there is no tool but echo_external",
        ),
        (
            r#"{"action":"call_tool","tool":"echo_external","arguments":["message"]}"#,
            "arguments must be a JSON object",
        ),
        (
            r#"{"action":"call_tool","tool":"echo_external","arguments":{"message":1}}"#,
            "message must be a string",
        ),
    ] {
        assert_eq!(
            echo(request),
            format!(
                "exit code: 1\n----- stdout -----\n{{\"type\":\"error\",\"error\":{{\"name\":\"echo_external\",\"category\":\"usage\",\"message\":\"{message}\"}}}}\n"
            )
        );
    }
}
