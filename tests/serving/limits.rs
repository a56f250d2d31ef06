//! How much a client may ask for, as the configuration says, and what it is told that asks for more.

use std::fs;

use mcpd_tests::{Daemon, Pipes, Sandbox};
use serde_json::{Value, json};

use crate::call;

fn sandbox(configuration: &str) -> Sandbox {
    let sandbox = Sandbox::new().with_script(
        "hello",
        "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{}'; exit; }\necho hello\n",
    );
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    sandbox
}

/// Calls three times where two are allowed.
#[track_caller]
fn check(mut call: impl FnMut() -> Value) {
    for _ in 0..2 {
        let answer = call();
        assert!(answer["result"].is_object(), "{answer}");
    }
    let answer = call();
    assert_eq!(answer["error"]["code"], 429, "{answer}");
    let wait = answer["error"]["data"]["retryAfterMs"].as_u64();
    assert!(wait.is_some_and(|wait| wait > 1_000), "{answer}");
}

#[test]
fn a_rate_holds_for_every_client() {
    let sandbox = sandbox("[limits]\nrate = 0.01\nburst = 2\n");
    let arguments = ["--config", "mcpd.toml"];
    let message = call("hello", json!({})).to_string();
    let mut client = Pipes::start(&sandbox, &arguments);
    check(|| {
        client.send(message.as_bytes());
        client.receive()
    });
    let daemon = Daemon::start(&sandbox, &arguments);
    let client = daemon.client();
    check(|| {
        let (_, body) = client.post(&message).unwrap();
        serde_json::from_str(&body).unwrap()
    });
    let (status, _) = client.post(&message).unwrap();
    assert_eq!(status, 429);
}

#[test]
fn a_token_has_limits_of_its_own() {
    let sandbox = sandbox("");
    let made = sandbox.command(&["token", "new", "x"]).output().unwrap();
    let secret = String::from_utf8(made.stdout).unwrap();
    let said = String::from_utf8(made.stderr).unwrap();
    let table = &said[said.find("[[token]]").unwrap()..];
    let configuration = format!("[limits]\nrate = inf\n\n{table}rate = 0.01\nburst = 2\n");
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
    let message = call("hello", json!({})).to_string();
    let client = daemon.client().with_token(Some(secret.trim()));
    check(|| {
        let (_, body) = client.post(&message).unwrap();
        serde_json::from_str(&body).unwrap()
    });
    for _ in 0..100 {
        let (status, body) = daemon.client().post(&message).unwrap();
        assert_eq!(status, 200, "{body}");
    }
}
