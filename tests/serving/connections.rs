//! Connection limit: surplus clients wait until others leave, and connected clients are
//! unaffected.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use mcpd_tests::{Daemon, Sandbox, eventually};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use serde_json::json;

use crate::{Server as _, call};

const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause of the server when it has no descriptor for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const HEALTH: &str = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Connects a client that sends `request` and keeps its connection.
fn connect(daemon: &Daemon, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(daemon.address()).unwrap();
    stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Reads the beginning of the answer.
fn answer(mut stream: &TcpStream) -> String {
    let mut answer = [0; 4096];
    let length = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

/// Leaves the server no descriptor until it is dropped.
struct Shortage {
    process: Pid,
    before: Rlimit,
}

impl Shortage {
    fn of(daemon: &Daemon) -> Self {
        let process = Pid::from_raw(i32::try_from(daemon.id()).unwrap()).unwrap();
        // A limit just above the highest open descriptor would not do: once any is closed, its
        // lower number is free again.
        let none = Rlimit {
            current: Some(0),
            ..getrlimit(Resource::Nofile)
        };
        let before = prlimit(Some(process), Resource::Nofile, none).unwrap();
        Self { process, before }
    }
}

impl Drop for Shortage {
    fn drop(&mut self) {
        prlimit(Some(self.process), Resource::Nofile, self.before).unwrap();
    }
}

#[test]
fn connection_limit_leaves_descriptors_for_scripts() {
    const CONNECTIONS: usize = 36;
    let script = "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{}'; exit; }\necho done\n";
    let sandbox = Sandbox::new()
        .with_open_files(100)
        .with_script("work", script);
    let daemon = Daemon::start(&sandbox, &["--log", "debug"]);
    daemon.wait_for_line("at most 36 connections, because only 100 files may be open");
    let call = call("work", json!({})).to_string();
    let token = daemon.token().unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{call}",
        call.len()
    );
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| connect(&daemon, HEALTH)).collect();
    for client in &clients {
        assert!(answer(client).starts_with("HTTP/1.1 200"));
    }
    let waiting = connect(&daemon, HEALTH);
    clients[0].write_all(request.as_bytes()).unwrap();
    let answered = answer(&clients[0]);
    assert!(answered.contains(r#""text":"done""#), "{answered}");
    waiting.set_nonblocking(true).unwrap();
    let is_answered = waiting.peek(&mut [0]).is_ok();
    assert!(!is_answered, "there was no room for one more");
    waiting.set_nonblocking(false).unwrap();
    drop(clients.pop());
    assert!(answer(&waiting).starts_with("HTTP/1.1 200"));
}

/// A waiting client is served as soon as a descriptor is free, and the server does not spin
/// meanwhile.
#[test]
fn a_server_without_descriptors_waits_for_one() {
    let daemon = Daemon::start(&Sandbox::new(), &["--log", "mcpd_server=debug"]);
    let shortage = Shortage::of(&daemon);
    let begin = Instant::now();
    let waiting = connect(&daemon, HEALTH);
    daemon.wait_for_line("WARN failed to accept a connection");
    for _ in 0..3 {
        daemon.wait_for_line("failed to accept a connection again");
    }
    drop(shortage);
    assert!(answer(&waiting).starts_with("HTTP/1.1 200"));
    let attempts = begin.elapsed().as_millis() / ACCEPT_PAUSE.as_millis();
    daemon.signal(Signal::TERM);
    let (_, said) = daemon.wait();
    let further = said.matches("to accept a connection").count() as u128;
    assert!(
        4 + further <= attempts + 1,
        "{further} in {attempts} pauses: {said}"
    );
}

#[test]
fn roots_are_watched_again_once_there_are_descriptors() {
    let sandbox = Sandbox::new();
    let at = |name: &str| sandbox.path().join(name);
    fs::rename(at("scripts"), at("one")).unwrap();
    fs::create_dir(at("two")).unwrap();
    symlink("one", at("scripts")).unwrap();
    symlink("two", at("next")).unwrap();
    let mut daemon = Daemon::start(&sandbox, &["--log", "mcpd_server=info"]);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    daemon.exchange(&list);

    let shortage = Shortage::of(&daemon);
    fs::rename(at("next"), at("scripts")).unwrap();
    daemon.wait_for_line("restarting the watch of the roots");
    daemon.wait_for_line("WARN failed to watch the directories");
    drop(shortage);
    daemon.wait_for_line("restarting the watch of the roots");
    sandbox.write_script("late", "#!/bin/sh\necho '{}'\n");
    eventually("the script is served", || {
        let answer = daemon.exchange(&list);
        (answer["result"]["tools"][0]["name"] == "late").then_some(())
    });
}
