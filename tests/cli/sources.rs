//! Tools from other sources, on the command line: their configuration, and `list`, `describe`,
//! `call` and `check`.

use std::fs;
use std::process::Command;

use insta::assert_snapshot;
use mcpd_tests::{Sandbox, output, repository};
use serde_json::{Value, json};

use crate::HELLO;

/// Returns an mcpd command with the endpoint in the examples.
fn command(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let example = repository().join("examples/endpoints/echo_external");
    let mut command = sandbox.command(arguments);
    command.env("MCP_ENDPOINT", format!("'{}'", example.display()));
    command
}

#[track_caller]
fn run(arguments: &[&str]) -> String {
    let sandbox = Sandbox::new().with_script("hello", HELLO);
    sandbox.transcript(&output(command(&sandbox, arguments), b""))
}

#[test]
fn the_tools_of_an_endpoint_are_listed_described_and_called_beside_the_scripts() {
    assert_snapshot!(run(&["list", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    echo_external(message: string)  Repeats a message.
    hello()                         Says hello
    ");
    assert_snapshot!(run(&["describe", "scripts", "echo_external"]), @"
    exit code: 0
    ----- stdout -----
    echo_external

    Repeats a message.

    Hints: read-only, stays on this machine

    Options:
      message: string, required

    Source: the endpoint `@@REPOSITORY@@/examples/endpoints/echo_external`
    ");
    assert_snapshot!(run(&["call", "scripts", "echo_external", "message=hi"]), @r#"
    exit code: 0
    ----- stdout -----
    {"echo":"hi"}
    "#);
    assert_snapshot!(run(&["call", "scripts", "echo_external"]), @"
    exit code: 5
    ----- stdout -----
    Invalid arguments: option `message`: expected a value, got nothing
    ----- stderr -----
    mcpd: error: `echo_external` failed
    ");
    assert_snapshot!(run(&["check", "scripts"]), @r"
    exit code: 0
    ----- stdout -----
    no faults in 1 script
    ");
}

#[test]
fn an_endpoint_passes_on_the_tools_of_another_as_remote() {
    let sandbox = Sandbox::new().with_script("hello", HELLO);
    let answer = |request: Value| -> Value {
        let command = command(&sandbox, &["endpoint", "scripts"]);
        let output = output(command, request.to_string().as_bytes());
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let list = answer(json!({"action": "list_tools"}));
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| (&tool["name"], &tool["origin"]))
        .collect();
    assert_eq!(
        names,
        [
            (&json!("echo_external"), &json!("remote")),
            (&json!("hello"), &json!("local"))
        ]
    );
    assert_eq!(tools[0]["command"], "echo_external message=STRING");
    assert_eq!(
        tools[0]["safety"],
        "Changes nothing. Stays on this machine."
    );
    let call =
        json!({"action": "call_tool", "tool": "echo_external", "arguments": {"message": "hi"}});
    assert_eq!(
        answer(call),
        json!({"type": "result", "tool": "echo_external", "result": {"echo": "hi"}})
    );
}

#[test]
fn endpoint_that_is_mcpd_itself_is_not_recursive() {
    let sandbox = Sandbox::new().with_script("hello", HELLO);
    let mcpd = mcpd_tests::binary();
    let table = format!(
        "[[endpoint]]\ncommand = ['{}', 'endpoint', 'scripts']\nprefix = 'again'\n",
        mcpd.display()
    );
    fs::write(sandbox.path().join("mcpd.toml"), table).unwrap();
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    again/hello()  Says hello
    hello()        Says hello
    ");
    let call = ["call", "scripts", "again/hello"];
    assert_snapshot!(sandbox.run(&call), @r#"
    exit code: 0
    ----- stdout -----
    {"message": "Hello, World!"}
    "#);
}

#[test]
fn notifications_of_an_endpoint_reach_the_caller() {
    let sandbox = Sandbox::new();
    let program = r#"read -r request
case $request in
*list_tools*) echo '{"type": "result", "tools": [{"name": "work"}]}' ;;
*) echo 'PROGRESS 1/2 halfway' >&2; echo 'WARNING: it creaks' >&2; echo '{"type": "result", "result": {}}' ;;
esac"#;
    let table = format!("[[endpoint]]\ncommand = ['sh', '-c', '''{program}''']\n");
    fs::write(sandbox.path().join("mcpd.toml"), table).unwrap();
    assert_snapshot!(sandbox.run(&["call", "scripts", "work"]), @r"
    exit code: 0
    ----- stdout -----
    {}
    ----- stderr -----
    PROGRESS 1/2 halfway
    WARNING it creaks
    ");
}

/// Returns the message about an invalid configuration, or about an invalid command in the
/// variable.
#[track_caller]
fn mistake(configuration: &str, variable: &str) -> String {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let mut command = sandbox.command(&["list", "scripts"]);
    command.env("MCP_ENDPOINT", variable);
    sandbox.transcript(&output(command, b""))
}

#[test]
fn configuration_error_precedes_any_request() {
    assert_snapshot!(mistake("", "notes 'of mine"), @r"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to use the command of MCP_ENDPOINT: unclosed quotation mark
    ");
    assert_snapshot!(mistake("", "# a comment"), @r"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to use the command of MCP_ENDPOINT: expected a program and its arguments
    ");
    assert_snapshot!(mistake("[[endpoint]]\ncommand = []\n", ""), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: mcpd.toml:2:11: in [[endpoint]]: `command`: expected a program and its arguments
    ");
    assert_snapshot!(mistake("[[endpoint]]\nprefix = \"x\"\n", ""), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: mcpd.toml:1:1: in [[endpoint]]: missing field `command`
    ");
    assert_snapshot!(mistake("[[endpoint]]\ncommand = [\"x\"]\nprefix = \"a//b\"\n", ""), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: mcpd.toml:3:10: in [[endpoint]]: `prefix`: the path has an empty segment
    ");
    assert_snapshot!(mistake("[[endpoint]]\ncommand = [\"x\"]\n[endpoint.env]\nMCPD_X = \"\"\n", ""), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: mcpd.toml:4:1: in [endpoint.env]: `MCPD_X`: names that begin with `MCPD_` are reserved for mcpd
    ");
}

/// A gateway serves no scripts: `roots = []` says so.
#[test]
fn sources_need_no_directory_if_roots_is_empty() {
    let sandbox = Sandbox::new();
    let file = sandbox.path().join("mcpd.toml");
    let endpoint = "[[endpoint]]\ncommand = [\"true\"]\n";
    fs::write(&file, format!("roots = []\n{endpoint}")).unwrap();
    let listed = sandbox.run(&["list"]);
    assert!(listed.starts_with("exit code: 0"), "{listed}");
    fs::write(&file, endpoint).unwrap();
    let refused = sandbox.run(&["list"]);
    assert!(refused.contains("a directory is required"), "{refused}");
}
