//! The end of mcpd, however it comes: no script outlives it that a process group can reach.

use mcpd_tests::{Pipes, Sandbox};
use rustix::process::Signal;
use serde_json::json;

use crate::{call, nothing_left};

/// Ignores SIGTERM, with a child that does too, and says when it is there.
const STUBBORN: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Runs on."}'
  exit 0
fi
trap '' TERM
sleep 1000 &
echo 'PROGRESS 1' >&2
wait
"#;

/// A client whose call of a stubborn script runs.
fn calling(sandbox: &Sandbox) -> Pipes {
    let mut client = Pipes::start(sandbox, &[]);
    let mut message = call("stubborn", json!({}));
    message["params"]["_meta"] = json!({"progressToken": 1});
    client.send(message.to_string().as_bytes());
    assert_eq!(client.receive()["method"], "notifications/progress");
    client
}

#[test]
fn when_the_client_hangs_up_scripts_end_and_the_exit_code_is_0() {
    let sandbox = Sandbox::new().with_script("stubborn", STUBBORN);
    let mut client = calling(&sandbox);
    client.close_input();
    assert_eq!(client.wait(), 0);
    nothing_left(&sandbox, &[]);
}

#[test]
fn when_asked_to_end_scripts_end_and_the_exit_code_is_0() {
    let sandbox = Sandbox::new().with_script("stubborn", STUBBORN);
    let client = calling(&sandbox);
    client.signal(Signal::TERM);
    assert_eq!(client.wait(), 0);
    nothing_left(&sandbox, &[]);
}

#[test]
fn when_mcpd_is_killed_scripts_end() {
    let sandbox = Sandbox::new().with_script("stubborn", STUBBORN);
    let client = calling(&sandbox);
    client.signal(Signal::KILL);
    nothing_left(&sandbox, &[]);
}
