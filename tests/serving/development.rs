//! `mcpd dev`: changes, faults, calls and their output as its author sees them, and the call that
//! is made again.

use std::fs;

use mcpd_tests::{Daemon, Sandbox};
use rustix::process::Signal;
use serde_json::json;

use super::{Server as _, call};

const GREET: &str = r#"#!/bin/sh
# /// mcpd
# description = "Greet someone"
# [options.name]
# description = "Whom to greet"
# value_type = "string"
# [options.key]
# description = "Key of the door"
# value_type = "string"
# secret = true
# ///
echo "looking for $MCPD_OPT_name" >&2
echo "Hello, $MCPD_OPT_name!"
"#;

#[test]
fn calls_and_changes_are_shown() {
    let sandbox = Sandbox::new().with_script("greet", GREET);
    let mut daemon = Daemon::developing(&sandbox);
    daemon.exchange(&call("greet", json!({"name": "World", "key": "hunter2"})));
    let called = daemon.wait_for_line("> greet");
    assert!(
        called.contains(r#"{"name":"World","key":"[redacted]"}"#),
        "{called}"
    );
    daemon.wait_for_line("| greet: looking for World");
    daemon.wait_for_line("ms: Hello, World!");

    // The script is saved: it is called as before, and its change is shown.
    sandbox.write_script("greet", &GREET.replace("Hello", "Howdy"));
    daemon.wait_for_line("ms: Howdy, World!");
    sandbox.write_script("greet", &GREET.replace("Greet someone", "Greet a person"));
    daemon.wait_for_line("~ tool greet: description");

    let faulty = GREET.replace("value_type = \"string\"\n# [", "value_type = \"text\"\n# [");
    sandbox.write_script("greet", &faulty);
    daemon.wait_for_line("error[");
    sandbox.write_script("greet", GREET);
    daemon.wait_for_line("2 faults are left");

    sandbox.write_script("other", GREET);
    daemon.wait_for_line("+ tool other");
    fs::remove_file(sandbox.path().join("scripts/other")).unwrap();
    daemon.wait_for_line("- tool other");
    daemon.signal(Signal::TERM);
    let (code, _) = daemon.wait();
    assert_eq!(code, 0);
}
