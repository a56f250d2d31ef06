//! Audit log of a server that is killed: records of answered calls survive, and no other is
//! damaged.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use mcpd_tests::{Daemon, Sandbox, eventually, output};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{Server as _, call, scripts};

/// Default path of the log.
const LOG: &str = "state/mcpd/logs/mcp-audit.jsonl";

fn start(sandbox: &Sandbox) -> Daemon {
    fs::write(
        sandbox.path().join("mcpd.toml"),
        "[audit]\nmode = \"require\"\nmax_size = \"8 KiB\"\nkeep = 999\n",
    )
    .unwrap();
    Daemon::start(sandbox, &[&scripts("ok")])
}

/// Returns the number of records that begin a call, in all files.
fn begun_calls(sandbox: &Sandbox) -> usize {
    let arguments = ["audit", "grep", r#""event":"begin""#, "--json"];
    let found = output(sandbox.command(&arguments), b"").stdout;
    String::from_utf8(found).unwrap().lines().count()
}

fn verify_log(sandbox: &Sandbox) -> Value {
    let arguments = ["audit", "verify", "--json"];
    let report = output(sandbox.command(&arguments), b"").stdout;
    serde_json::from_slice(&report).unwrap()
}

#[test]
fn caller_over_http_has_the_name_of_its_token() {
    let sandbox = Sandbox::new();
    let mut daemon = start(&sandbox);
    daemon.call("echo", json!({"value": "a"}));
    let record = eventually("the end of the call", || {
        let log = fs::read_to_string(sandbox.path().join(LOG)).unwrap();
        let line = log.lines().find(|line| line.contains(r#""event":"end""#))?;
        Some(serde_json::from_str::<Value>(line).unwrap())
    });
    assert_eq!(record["principal"], "agent");
    assert_eq!(record["transport"], "http");
}

#[test]
fn reload_applies_to_the_log() {
    let sandbox = Sandbox::new();
    let mut daemon = start(&sandbox);
    daemon.call("echo", json!({"value": "the first"}));
    fs::write(
        sandbox.path().join("mcpd.toml"),
        "[audit]\nmode = \"require\"\npath = \"other.jsonl\"\nargs = \"names\"\n",
    )
    .unwrap();
    daemon.signal(Signal::HUP);
    daemon.wait_for_line("configuration reloaded");
    daemon.call("echo", json!({"value": "the second"}));
    let text = |path| fs::read_to_string(sandbox.path().join(path)).unwrap();
    let (before, after) = (text(LOG), text("other.jsonl"));
    assert!(before.contains("the first"), "{before}");
    assert!(after.contains(r#""event":"begin""#), "{after}");
    assert!(!(before + &after).contains("the second"));
    assert_eq!(verify_log(&sandbox)["faults"], json!([]));
}

#[test]
fn answered_call_survives_a_killed_server() {
    let sandbox = Sandbox::new();
    let answered = AtomicUsize::new(0);
    for round in 1..=4 {
        let daemon = start(&sandbox);
        let client = daemon.client();
        let message = call("echo", json!({"value": "a"})).to_string();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while client.post(&message).is_ok_and(|(status, _)| status == 200) {
                        answered.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            eventually("some calls", || {
                (answered.load(Ordering::SeqCst) >= round * 20).then_some(())
            });
            daemon.signal(Signal::KILL);
        });
        drop(daemon);
        let faults = verify_log(&sandbox)["faults"].take();
        let faults = faults.as_array().unwrap();
        let is_torn = |fault: &Value| fault["fault"].to_string().contains("torn");
        assert!(
            faults.len() <= 1 && faults.iter().all(is_torn),
            "{faults:?}"
        );
        assert!(begun_calls(&sandbox) >= answered.load(Ordering::SeqCst));
    }
    // The next server repairs a torn record, if there is one.
    start(&sandbox).call("echo", json!({"value": "a"}));
    assert_eq!(verify_log(&sandbox)["faults"], json!([]));
}
