//! `--kit`: the tools and resources of a Script Kit, and the commands behind them.

use std::fs;

use insta::assert_snapshot;
use mcpd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

use crate::HELLO;

/// Returns a sandbox with scripts where Script Kit keeps them, and one elsewhere.
fn sandbox() -> Sandbox {
    Sandbox::new()
        .with_script("scripts/create-note", HELLO)
        .with_script("scriptlets/greet", HELLO)
        .with_script("hello", HELLO)
}

/// Returns the answers to these requests, one a line. Each comes from a new server that has
/// received all earlier requests as well.
fn answers(sandbox: &Sandbox, arguments: &[&str], requests: &[(&str, Value)]) -> String {
    let arguments = [&["--kit"], arguments].concat();
    let daemon = Daemon::start(sandbox, &arguments);
    let mut answers = String::new();
    for (method, params) in requests {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (_, body) = daemon.client().post(&request.to_string()).unwrap();
        let answer: Value = serde_json::from_str(&body).unwrap();
        let result = answer.get("result").or(answer.get("error")).unwrap();
        answers += &format!("{result}\n");
    }
    sandbox.redact(&answers)
}

fn call(tool: &str) -> (&'static str, Value) {
    ("tools/call", json!({"name": tool}))
}

fn read(uri: &str) -> (&'static str, Value) {
    ("resources/read", json!({"uri": uri}))
}

#[test]
fn the_window_is_shown_and_hidden_by_commands() {
    let sandbox = sandbox();
    let configuration = r#"
        [kit]
        show = ["sh", "-c", "echo shown >> log"]
        hide = ["~/hide", "now"]
    "#;
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    sandbox.write_script("../home/hide", "#!/bin/sh\necho hidden \"$1\" >> log\n");
    let requests = [
        call("kit/state"),
        call("kit/show"),
        read("kit://state"),
        call("kit_hide"),
        call("kit/state"),
    ];
    assert_snapshot!(answers(&sandbox, &[], &requests), @r#"
    {"content":[{"type":"text","text":"{\"visible\":false,\"focused\":false,\"script_count\":1,\"scriptlet_count\":1}"}],"isError":false}
    {"content":[{"type":"text","text":"Window shown"}],"isError":false}
    {"contents":[{"uri":"kit://state","mimeType":"application/json","text":"{\"visible\":true,\"focused\":true,\"script_count\":1,\"scriptlet_count\":1}"}]}
    {"content":[{"type":"text","text":"Window hidden"}],"isError":false}
    {"content":[{"type":"text","text":"{\"visible\":false,\"focused\":false,\"script_count\":1,\"scriptlet_count\":1}"}],"isError":false}
    "#);
    let log = fs::read_to_string(sandbox.path().join("log")).unwrap();
    assert_eq!(log, "shown\nhidden now\n");
}

#[test]
fn denied_resources_are_not_listed() {
    let sandbox = sandbox()
        .with_script("scripts/secret", HELLO)
        .with_script("scriptlets/secret", HELLO);
    let rule = "[[rule]]\nclients = [\"agent\"]\ndeny = [\"*/secret\"]\n";
    fs::write(sandbox.path().join("mcpd.toml"), rule).unwrap();
    let requests = [
        call("kit/state"),
        read("kit://state"),
        read("scripts://"),
        read("scriptlets://"),
    ];
    assert_snapshot!(answers(&sandbox, &[], &requests), @r#"
    {"content":[{"type":"text","text":"{\"visible\":false,\"focused\":false,\"script_count\":1,\"scriptlet_count\":1}"}],"isError":false}
    {"contents":[{"uri":"kit://state","mimeType":"application/json","text":"{\"visible\":false,\"focused\":false,\"script_count\":1,\"scriptlet_count\":1}"}]}
    {"contents":[{"uri":"scripts://","mimeType":"application/json","text":"[{\"tool\":\"scripts/create-note\",\"name\":\"create-note\",\"description\":\"Says hello\",\"file\":\"scripts/create-note\",\"path\":\"@@ROOT@@/scripts/scripts/create-note\",\"extension\":\"\",\"has_schema\":true}]"}]}
    {"contents":[{"uri":"scriptlets://","mimeType":"application/json","text":"[{\"tool\":\"scriptlets/greet\",\"name\":\"greet\",\"description\":\"Says hello\",\"file\":\"scriptlets/greet\",\"path\":\"@@ROOT@@/scripts/scriptlets/greet\",\"extension\":\"\",\"has_schema\":true}]"}]}
    "#);
}

#[test]
fn a_command_that_fails_changes_nothing() {
    let sandbox = sandbox();
    let configuration = "[kit]\nshow = [\"sh\", \"-c\", \"exit 3\"]\n";
    fs::write(sandbox.path().join("kit.toml"), configuration).unwrap();
    let requests = [call("kit/show"), call("kit/state")];
    assert_snapshot!(answers(&sandbox, &["--config", "kit.toml"], &requests), @r#"
    {"content":[{"type":"text","text":"The window could not be shown. The reason is in the server's log."}],"isError":true}
    {"content":[{"type":"text","text":"{\"visible\":false,\"focused\":false,\"script_count\":1,\"scriptlet_count\":1}"}],"isError":false}
    "#);
}

#[test]
fn state_changes_without_commands() {
    let requests = [
        call("kit/show"),
        call("kit/state"),
        call("kit/hide"),
        call("kit/state"),
    ];
    assert_snapshot!(answers(&sandbox(), &[], &requests), @r#"
    {"content":[{"type":"text","text":"Window shown"}],"isError":false}
    {"content":[{"type":"text","text":"{\"visible\":true,\"focused\":true,\"script_count\":1,\"scriptlet_count\":1}"}],"isError":false}
    {"content":[{"type":"text","text":"Window hidden"}],"isError":false}
    {"content":[{"type":"text","text":"{\"visible\":false,\"focused\":false,\"script_count\":1,\"scriptlet_count\":1}"}],"isError":false}
    "#);
}

#[test]
fn scripts_and_scriptlets_are_listed_as_they_are_now() {
    let requests = [
        ("resources/list", json!({})),
        read("scripts://"),
        read("scriptlets://"),
    ];
    assert_snapshot!(answers(&sandbox(), &[], &requests), @r#"
    {"resources":[{"uri":"kit://state","name":"kit/state","description":"Visibility and focus of the window, and the number of scripts and scriptlets.","mimeType":"application/json"},{"uri":"scriptlets://","name":"scriptlets","description":"The scriptlets.","mimeType":"application/json"},{"uri":"scripts://","name":"scripts","description":"The scripts.","mimeType":"application/json"}]}
    {"contents":[{"uri":"scripts://","mimeType":"application/json","text":"[{\"tool\":\"scripts/create-note\",\"name\":\"create-note\",\"description\":\"Says hello\",\"file\":\"scripts/create-note\",\"path\":\"@@ROOT@@/scripts/scripts/create-note\",\"extension\":\"\",\"has_schema\":true}]"}]}
    {"contents":[{"uri":"scriptlets://","mimeType":"application/json","text":"[{\"tool\":\"scriptlets/greet\",\"name\":\"greet\",\"description\":\"Says hello\",\"file\":\"scriptlets/greet\",\"path\":\"@@ROOT@@/scripts/scriptlets/greet\",\"extension\":\"\",\"has_schema\":true}]"}]}
    "#);
}

#[test]
fn scripts_without_a_schema_are_listed() {
    let sandbox = sandbox();
    let file = |path: &str, text: &str| {
        let file = sandbox.path().join("scripts/scripts").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    let named = "// Name: Close Tabs\n// Description: Closes what is open\nawait arg(\"Which?\")\n";
    file("tabs.ts", named);
    file("plain.js", "console.log(1)\n");
    file("secret.ts", "// Name: Secret\n");
    // Script Kit ignores this file.
    file("notes.md", "# Notes\n");
    file("lib/tabs.ts", "export const tabs = 1\n");
    let rule = "[[rule]]\nclients = [\"agent\"]\ndeny = [\"*/secret\"]\n";
    fs::write(sandbox.path().join("mcpd.toml"), rule).unwrap();
    let requests = [read("scripts://"), call("kit/state")];
    assert_snapshot!(answers(&sandbox, &[], &requests), @r#"
    {"contents":[{"uri":"scripts://","mimeType":"application/json","text":"[{\"tool\":\"scripts/create-note\",\"name\":\"create-note\",\"description\":\"Says hello\",\"file\":\"scripts/create-note\",\"path\":\"@@ROOT@@/scripts/scripts/create-note\",\"extension\":\"\",\"has_schema\":true},{\"name\":\"plain\",\"file\":\"scripts/plain.js\",\"path\":\"@@ROOT@@/scripts/scripts/plain.js\",\"extension\":\"js\",\"has_schema\":false},{\"name\":\"Close Tabs\",\"description\":\"Closes what is open\",\"file\":\"scripts/tabs.ts\",\"path\":\"@@ROOT@@/scripts/scripts/tabs.ts\",\"extension\":\"ts\",\"has_schema\":false}]"}]}
    {"content":[{"type":"text","text":"{\"visible\":false,\"focused\":false,\"script_count\":3,\"scriptlet_count\":1}"}],"isError":false}
    "#);
}

#[test]
fn kit_needs_its_flag() {
    let list = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
    let kit = |arguments: &[&str]| {
        let arguments = [&["stdio", "scripts"], arguments].concat();
        sandbox()
            .run_with_stdin(&arguments, list)
            .contains("kit_show")
    };
    assert!(!kit(&[]));
    assert!(kit(&["--kit"]));
}

#[test]
fn a_command_without_a_program_is_refused() {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("kit.toml"), "[kit]\nhide = []\n").unwrap();
    assert_snapshot!(sandbox.run(&["stdio", "scripts", "--kit", "--config", "kit.toml", "--quiet"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: kit.toml:2:8: in [kit]: expected a program and its arguments
    ");
}
