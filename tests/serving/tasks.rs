//! Tasks and the end of mcpd: every acknowledged task is found again, once, and no task runs
//! twice.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::thread;
use std::time::Duration;

use mcpd_tests::{Pipes, Sandbox, eventually};
use serde_json::{Value, json};

use crate::{Server as _, text};

/// Number of times that mcpd is killed.
const ROUNDS: usize = 50;
/// Upper bound of the time between a call and the kill, in milliseconds.
const MAX_DELAY_MS: u64 = 120;

/// Script that runs in the background for a given time, and appends a line to a log on each run.
const JOB: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Works.", "task": "required"}'
  echo '{"seconds": {"value_type": "string", "required": true}, "log": {"value_type": "string", "required": true}}' >&2
  exit
fi
echo "$MCPD_CALL_ID" >>"$MCPD_OPT_log"
sleep "$MCPD_OPT_seconds"
echo done
"#;

/// Builds a request of a client that supports tasks.
fn request(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// Returns a random moment.
fn random(below: u64) -> u64 {
    RandomState::new().hash_one(()) % below
}

/// Checks that a task of an earlier server has ended.
#[track_caller]
fn check_is_over(server: &mut Pipes, task: &str) {
    let answer = server.exchange(&request("tasks/get", json!({"taskId": task})));
    let task = &answer["result"];
    match task["status"].as_str() {
        Some("completed") => assert_eq!(text(&task["result"]), "done"),
        Some("failed") => assert!(task["error"]["code"].is_i64(), "{task}"),
        _ => panic!("{answer}"),
    }
}

#[test]
fn tasks_survive_a_killed_server_exactly_once() {
    let sandbox = Sandbox::new().with_script("job", JOB);
    let log = sandbox.path().join("log");
    let mut promised: Vec<String> = Vec::new();
    for _ in 0..ROUNDS {
        let mut server = Pipes::start(&sandbox, &[]);
        if let Some(last) = promised.last() {
            check_is_over(&mut server, last);
        }
        server.exchange(&request("tools/list", json!({})));
        let seconds = format!("0.{:03}", random(MAX_DELAY_MS));
        let arguments = json!({"seconds": seconds, "log": log});
        let call = request("tools/call", json!({"name": "job", "arguments": arguments}));
        server.send(call.to_string().as_bytes());
        thread::sleep(Duration::from_millis(random(MAX_DELAY_MS)));
        let answers = server.kill();
        promised.extend(answers.iter().map(|answer| {
            let task = answer["result"]["taskId"].as_str();
            task.unwrap_or_else(|| panic!("{answer}")).to_owned()
        }));
    }

    let mut server = Pipes::start(&sandbox, &["--enable", "runs"]);
    for task in &promised {
        check_is_over(&mut server, task);
    }
    let runs: Value = serde_json::from_str(text(&server.call("runs_list", json!({})))).unwrap();
    let listed = runs["runs"].as_array().unwrap();
    let known: BTreeSet<_> = listed
        .iter()
        .map(|run| run["run"].as_str().unwrap())
        .collect();
    assert_eq!(known.len(), listed.len(), "none is listed twice");
    assert!(promised.iter().all(|task| known.contains(&**task)));
    assert!(known.len() <= ROUNDS, "{runs}");
    // A stored task may not have been acknowledged before the kill; it has ended all the same.
    for task in &known {
        check_is_over(&mut server, task);
    }
    let log = fs::read_to_string(log).unwrap_or_default();
    let ran: BTreeSet<_> = log.lines().collect();
    assert_eq!(ran.len(), log.lines().count(), "none runs twice");
    // A task killed right after its start may not be stored; it was never acknowledged.
    assert!(ran.len() <= ROUNDS);
    assert!(!promised.is_empty() && !ran.is_empty());
}

#[test]
fn shutdown_leaves_no_task_that_seems_to_run() {
    let sandbox = Sandbox::new().with_script("job", JOB);
    let mut first = Pipes::start(&sandbox, &[]);
    let log = sandbox.path().join("log");
    let arguments = json!({"seconds": "1000", "log": log});
    let call = request("tools/call", json!({"name": "job", "arguments": arguments}));
    let created = first.exchange(&call);
    eventually("the job to run", || fs::read_to_string(&log).ok());
    first.close_input();
    assert_eq!(first.wait(), 0);
    let task = created["result"]["taskId"].as_str().unwrap();
    let mut second = Pipes::start(&sandbox, &[]);
    let answer = second.exchange(&request("tasks/get", json!({"taskId": task})));
    assert_eq!(answer["result"]["status"], "failed", "{answer}");
}

#[test]
fn background_calls_are_configurable() {
    let sandbox = Sandbox::new().with_script("job", JOB);
    let settings = "[[tool]]\nmatch = 'run_command'\ntask = 'required'\n[[tool]]\nmatch = 'job'\ntask = 'never'\n";
    fs::write(sandbox.path().join("mcpd.toml"), settings).unwrap();
    let arguments = ["--enable", "run_command", "--config", "mcpd.toml"];
    let mut server = Pipes::start(&sandbox, &arguments);
    let call =
        |tool, arguments| request("tools/call", json!({"name": tool, "arguments": arguments}));
    let log = sandbox.path().join("log");
    let waited = server.exchange(&call("job", json!({"seconds": "0", "log": log})));
    assert_eq!(text(&waited["result"]), "done");
    let created = server.exchange(&call("run_command", json!({"command": "echo done"})));
    assert_eq!(created["result"]["resultType"], "task", "{created}");
    let get = request("tasks/get", json!({"taskId": created["result"]["taskId"]}));
    let task = eventually("the end of the command", || {
        let answer = server.exchange(&get);
        (answer["result"]["status"] == "completed").then(|| answer["result"].clone())
    });
    assert_eq!(text(&task["result"]), "done");
}

#[test]
fn command_line_waits_for_every_tool() {
    let sandbox = Sandbox::new().with_script("job", JOB);
    let called = sandbox.run(&["call", "scripts", "job", "seconds=0", "log=/dev/null"]);
    assert!(called.contains("done"), "{called}");
}
