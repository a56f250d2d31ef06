//! Log that is not read: it delays neither an answer nor the end.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use mcpd_tests::{Client, Pipes, Sandbox, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{Server as _, call, text};

const GREET: &str =
    "#!/bin/sh\n[ \"$1\" = --help ] && echo '{\"description\": \"Greets.\"}' && exit\necho hi\n";

/// Number of faulty tools beside a sound one. One log line for each exceeds what a pipe holds.
const FAULTY_TOOLS: usize = 300;

/// Time limit of the shutdown.
const END_LIMIT: Duration = Duration::from_secs(2);

/// Returns a sandbox with one tool and many faulty ones.
fn crowded_sandbox() -> Sandbox {
    let sandbox = Sandbox::new().with_script("greet", GREET);
    for number in 0..FAULTY_TOOLS {
        let name = format!("scripts/tool-with-a-name-of-ordinary-length-{number:03}");
        let file = sandbox.path().join(name);
        fs::write(
            &file,
            "#!/no/such/interpreter\n# Reads MCPD_OPTIONS_JSON.\n",
        )
        .unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    sandbox
}

/// Calls the tool, several at a time, until the log of the calls fills the pipe.
fn call_often(client: &mut Pipes) {
    const AT_A_TIME: usize = 20;
    for _ in 0..25 {
        for id in 0..AT_A_TIME {
            let mut message = call("greet", json!({}));
            message["id"] = json!(id);
            client.send(message.to_string().as_bytes());
        }
        for _ in 0..AT_A_TIME {
            assert_eq!(text(&client.receive()["result"]), "hi");
        }
    }
}

#[test]
fn unread_log_does_not_delay_the_end_of_input() {
    let sandbox = crowded_sandbox();
    let mut client = Pipes::start_with_unread_log(&sandbox, &["-vv"]);
    call_often(&mut client);
    client.close_input();
    let begun = Instant::now();
    assert_eq!(client.wait(), 0);
    assert!(begun.elapsed() < END_LIMIT, "{:?}", begun.elapsed());
}

#[test]
fn unread_log_does_not_delay_sigterm() {
    let sandbox = crowded_sandbox();
    let mut client = Pipes::start_with_unread_log(&sandbox, &["-vv"]);
    call_often(&mut client);
    client.signal(Signal::TERM);
    let begun = Instant::now();
    assert_eq!(client.wait(), 0);
    assert!(begun.elapsed() < END_LIMIT, "{:?}", begun.elapsed());
}

#[test]
fn faulty_files_have_ten_lines_and_a_number() {
    let sandbox = crowded_sandbox();
    let mut client = Pipes::start_with_unread_log(&sandbox, &[]);
    client.exchange(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let log = client.take_log();
    client.close_input();
    assert_eq!(client.wait(), 0);
    let lines: Vec<_> = BufReader::new(log).lines().map(Result::unwrap).collect();
    let count = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
    assert_eq!(count("not served:"), 10, "{lines:#?}");
    assert_eq!(count("290 more faults not logged"), 1, "{lines:#?}");
    assert_eq!(count("300 "), 1, "{lines:#?}");
}

#[test]
fn dropped_records_are_counted_once_the_log_is_read() {
    let sandbox = Sandbox::new().with_script("greet", GREET);
    let mut client = Pipes::start_with_unread_log(&sandbox, &["-vv"]);
    // Each record contains the client's name, so that these exceed the pipe and the queue
    // together.
    let name = "x".repeat(16_000);
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": name, "version": "1"}}});
    for _ in 0..100 {
        client.exchange(&hello);
    }
    let (sender, told) = mpsc::channel();
    let lines = BufReader::new(client.take_log()).lines();
    thread::spawn(move || {
        let lines = lines.map_while(Result::ok);
        for line in lines.filter(|line| line.contains("log records dropped")) {
            sender.send(line).ok();
        }
    });
    let told = told.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(told.contains("dropped="), "{told}");
}

#[test]
fn unread_log_does_not_delay_http() {
    let sandbox = crowded_sandbox();
    let mut command = sandbox.command(&["serve", "scripts", "--port", "0", "-vv"]);
    let server = command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut server = server.spawn().unwrap();
    let found = sandbox.path().join("state/mcpd/server.json");
    let url = eventually("the address", || {
        let found: serde_json::Value = serde_json::from_slice(&fs::read(&found).ok()?).ok()?;
        Some(found["url"].as_str()?.to_owned())
    });
    let token = fs::read_to_string(sandbox.path().join("state/mcpd/agent-token")).unwrap();
    let client = Client::new(url.split('/').nth(2).unwrap(), Some(token.trim()));
    for _ in 0..200 {
        let (status, body) = client.post(&call("greet", json!({})).to_string()).unwrap();
        assert_eq!(status, 200, "{body}");
    }
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    let begun = Instant::now();
    let status = eventually("the end of mcpd", || server.try_wait().unwrap());
    assert!(
        status.success() && begun.elapsed() < END_LIMIT,
        "{:?}",
        begun.elapsed()
    );
}
