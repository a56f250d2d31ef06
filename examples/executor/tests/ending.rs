//! Ending of a command that takes too long.

#![expect(
    clippy::disallowed_methods,
    reason = "the program is started as a user does"
)]

use std::process::Command;

#[test]
fn slow_command_is_ended() {
    let output = Command::new(env!("CARGO_BIN_EXE_executor"))
        .args(["sh", "-c", "echo begun; sleep 60"])
        .output()
        .expect("the program runs");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.starts_with("Stdout: begun\nTimedOut"), "{shown}");
}
