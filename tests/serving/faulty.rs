//! Scripts that fail to describe themselves: they are left out, and the others are served.

use std::time::{Duration, Instant};

use mcpd_tests::{Daemon, Pipes, Sandbox};
use serde_json::json;

use crate::{Server, scripts, wait_until_nothing_left};

/// Default time limit of a probe.
const PROBE_LIMIT: Duration = Duration::from_secs(5);

#[track_caller]
fn check(start: impl FnOnce(&Sandbox, &[&str]) -> Box<dyn Server>) {
    let sandbox = Sandbox::new();
    let begun = Instant::now();
    let mut server = start(&sandbox, &[&scripts("faulty"), &scripts("ok")]);
    let answer = server.exchange(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let took = begun.elapsed();
    let tools = answer["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["echo", "exit", "variables", "wait"]);
    // One script hangs until its limit; the rest of the list must be quick.
    assert!(took < 2 * PROBE_LIMIT, "the list took {took:?}");
    wait_until_nothing_left(&sandbox, &[server.id()]);
}

#[test]
fn good_scripts_are_served_over_stdio_beside_faulty_ones() {
    check(|sandbox, arguments| Box::new(Pipes::start(sandbox, arguments)));
}

#[test]
fn good_scripts_are_served_over_http_beside_faulty_ones() {
    check(|sandbox, arguments| Box::new(Daemon::start(sandbox, arguments)));
}
