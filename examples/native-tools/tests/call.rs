//! A call of the tool, as a client makes it over stdin and stdout.

#![expect(
    clippy::disallowed_methods,
    reason = "the program is started as a user does"
)]

use std::io::Write as _;
use std::process::{Command, Stdio};

#[test]
fn call_of_a_function_is_answered() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_native-tools"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server runs");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"math/add","arguments":{"a":2,"b":3}}}"#;
    let mut stdin = server.stdin.take().expect("a pipe");
    writeln!(stdin, "{call}").expect("the server reads");
    drop(stdin);
    let output = server.wait_with_output().expect("the server ends");
    let answer = String::from_utf8_lossy(&output.stdout);
    assert!(answer.contains(r#""text":"5""#), "{answer}");
}
