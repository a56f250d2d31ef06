//! Warm starts as an operator configures them: the same answers, the audit log with the start of
//! each call, approvals that hold, and nothing left at the end.

use std::fs;

use mcpd_tests::{Daemon, Sandbox, eventually, output, skip};
use serde_json::{Value, json};

use super::{Server as _, call, text};

/// Default path of the audit log.
const LOG: &str = "state/mcpd/logs/mcp-audit.jsonl";

/// Path of Python itself: a launcher in its place may change the environment.
const PYTHON: &str = "/usr/bin/python3";

fn greet(word: &str) -> String {
    format!(
        "#!{PYTHON}\nimport json, os, sys\n\
         if sys.argv[1:] == ['--help']:\n\
         \x20 print(json.dumps(dict(description='Greets')))\n\
         \x20 print(json.dumps(dict(name=dict(required=True))), file=sys.stderr)\n\
         \x20 sys.exit()\n\
         print('{word},', json.load(sys.stdin)['name'], os.environ['MCPD_OPT_name'], os.environ['MCPD_CALL_ID'] != '')\n"
    )
}

/// Returns a sandbox with the script, or `None` on a machine without Python.
fn sandbox(level: &str) -> Option<Sandbox> {
    if !fs::exists(PYTHON).unwrap() {
        skip("no Python at /usr/bin/python3");
        return None;
    }
    let sandbox = Sandbox::new().with_script("greet", &greet("Hello"));
    let configuration =
        format!("floor = \"{level}\"\n[[tool]]\nmatch = \"greet\"\nwarm = [\"json\"]\n");
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    Some(sandbox)
}

/// Starts of the calls so far, by the audit log.
fn starts(sandbox: &Sandbox) -> Vec<String> {
    let log = fs::read_to_string(sandbox.path().join(LOG)).unwrap_or_default();
    let records = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    records
        .filter_map(|record| Some(record["start"].as_str()?.to_owned()))
        .collect()
}

/// Calls the tool until a start was warm.
fn call_until_warm(sandbox: &Sandbox, daemon: &mut Daemon) {
    eventually("a warm start", || {
        assert_eq!(
            text(&daemon.call("greet", json!({"name": "Ada"}))),
            "Hello, Ada Ada True"
        );
        starts(sandbox)
            .iter()
            .any(|start| start == "warm")
            .then_some(())
    });
}

#[test]
fn warm_tool_answers_as_a_cold_one_and_the_log_says_which() {
    for level in ["none", "guarded"] {
        let Some(sandbox) = sandbox(level) else {
            return;
        };
        let mut daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
        call_until_warm(&sandbox, &mut daemon);
        assert_eq!(
            starts(&sandbox)[0],
            "cold",
            "the first call waits for nothing"
        );
    }
}

#[test]
fn changed_script_is_not_run_warm_without_approval() {
    let Some(sandbox) = sandbox("none") else {
        return;
    };
    let lock = output(sandbox.command(&["lock", "scripts"]), b"");
    assert!(lock.status.success(), "{}", sandbox.transcript(&lock));
    let arguments = ["--config", "mcpd.toml", "--locked", "--no-watch"];
    let mut daemon = Daemon::start(&sandbox, &arguments);
    call_until_warm(&sandbox, &mut daemon);
    sandbox.write_script("greet", &greet("Evil"));
    let answer = daemon
        .exchange(&call("greet", json!({"name": "Ada"})))
        .to_string();
    assert!(answer.contains("is not available any more"), "{answer}");
}

#[test]
fn script_can_not_ask_for_a_warm_start() {
    let Some(sandbox) = sandbox("none") else {
        return;
    };
    fs::write(sandbox.path().join("mcpd.toml"), "").unwrap();
    let asking = greet("Hello").replace("description='Greets'", "description='Greets', warm=True");
    sandbox.write_script("greet", &asking);
    let mut daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
    for _ in 0..3 {
        daemon.exchange(&call("greet", json!({"name": "Ada"})));
    }
    assert!(starts(&sandbox).is_empty());
}

#[test]
fn description_says_that_a_tool_is_warm() {
    let Some(sandbox) = sandbox("none") else {
        return;
    };
    let described = output(
        sandbox.command(&["describe", "scripts", "greet", "--config", "mcpd.toml"]),
        b"",
    );
    let described = sandbox.transcript(&described);
    assert!(described.contains("Start: warm, with json"), "{described}");
    let broken = "[[tool]]\nmatch = \"greet\"\nwarm = [\"os; evil\"]\n";
    fs::write(sandbox.path().join("mcpd.toml"), broken).unwrap();
    let refused = output(sandbox.command(&["config", "check", "mcpd.toml"]), b"");
    let refused = sandbox.transcript(&refused);
    assert!(refused.contains("modules of Python such as"), "{refused}");
}
