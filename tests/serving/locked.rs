//! Servers with `--locked`: a tool that changes is held back while the server runs, and a change
//! between scan and call is noticed by the call.

use std::fs;

use mcpd_tests::{Daemon, Sandbox, eventually, output};
use serde_json::{Value, json};

use super::{Server as _, call};

const GREET: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then echo '{"description": "Says hello"}'; exit; fi
echo hello
"#;

fn locked() -> Sandbox {
    let sandbox = Sandbox::new().with_script("greet", GREET);
    let lock = output(sandbox.command(&["lock", "scripts"]), b"");
    assert!(lock.status.success(), "{}", sandbox.transcript(&lock));
    sandbox
}

fn has_greet(daemon: &mut Daemon) -> bool {
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let answer = daemon.exchange(&list);
    answer["result"]["tools"]
        .as_array()
        .is_some_and(|tools| tools.len() == 1)
}

fn greet(daemon: &mut Daemon) -> Value {
    daemon.exchange(&call("greet", json!({})))
}

#[test]
fn changed_tool_is_held_back_until_it_is_as_before() {
    let sandbox = locked();
    let mut daemon = Daemon::start(&sandbox, &["--locked"]);
    assert!(has_greet(&mut daemon));
    assert_eq!(greet(&mut daemon)["result"]["content"][0]["text"], "hello");
    sandbox.write_script("greet", &GREET.replace("echo hello", "echo evil"));
    let line = daemon.wait_for_line("held back");
    assert!(
        line.contains("changed since it was approved: content"),
        "{line}"
    );
    eventually("its end", || (!has_greet(&mut daemon)).then_some(()));
    assert_eq!(greet(&mut daemon)["error"]["code"], -32602);
    sandbox.write_script("greet", GREET);
    eventually("its return", || has_greet(&mut daemon).then_some(()));
    assert_eq!(greet(&mut daemon)["result"]["content"][0]["text"], "hello");
}

#[test]
fn call_notices_a_change_that_no_scan_has_seen() {
    let sandbox = locked();
    let mut daemon = Daemon::start(&sandbox, &["--locked", "--no-watch"]);
    assert!(has_greet(&mut daemon));
    let library = sandbox.path().join("scripts/words.sh");
    let is_refused = |daemon: &mut Daemon| {
        let answer = greet(daemon).to_string();
        assert!(!answer.contains("evil"), "{answer}");
        answer.contains("is not available any more")
    };
    assert!(!is_refused(&mut daemon));
    fs::write(&library, "x").unwrap();
    assert!(is_refused(&mut daemon));
    fs::remove_file(&library).unwrap();
    assert!(!is_refused(&mut daemon));
    sandbox.write_script("greet", &GREET.replace("echo hello", "echo evil"));
    assert!(is_refused(&mut daemon));
}

#[test]
fn reload_takes_an_approval_over() {
    let sandbox = locked();
    sandbox.write_script("greet", &GREET.replace("echo hello", "echo bye"));
    let mut daemon = Daemon::start(&sandbox, &["--locked"]);
    assert!(!has_greet(&mut daemon));
    let approve = ["approve", "--root-directory", "scripts", "--yes"];
    let approve = output(sandbox.command(&approve), b"");
    assert!(approve.status.success(), "{}", sandbox.transcript(&approve));
    daemon.signal(rustix::process::Signal::HUP);
    eventually("the tool", || has_greet(&mut daemon).then_some(()));
    assert_eq!(greet(&mut daemon)["result"]["content"][0]["text"], "bye");
}
