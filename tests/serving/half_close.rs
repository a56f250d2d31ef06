//! HTTP clients that close their sending side and still read: over TCP they look like clients that
//! are gone.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use mcpd_tests::{Daemon, Sandbox, eventually};
use serde_json::json;

use crate::wait_until_nothing_left;

const QUICK: &str =
    "#!/bin/sh\n[ \"$1\" = --help ] && echo '{\"description\": \"Quick.\"}' && exit\necho done\n";

/// Script that ends once the file `go` exists.
const HELD: &str = "#!/bin/sh\n[ \"$1\" = --help ] && echo '{\"description\": \"Held.\"}' && exit\n: > started\nuntil [ -e go ]; do sleep 0.02; done\necho done\n";

const BOTH: &str = "application/json, text/event-stream";

/// Connects a client that sends a call of the tool and closes its sending side.
fn half_closed(daemon: &Daemon, tool: &str, accept: &str, is_stateless: bool) -> TcpStream {
    let stream = call(daemon, tool, accept, is_stateless);
    stream.shutdown(Shutdown::Write).unwrap();
    stream
}

fn call(daemon: &Daemon, tool: &str, accept: &str, is_stateless: bool) -> TcpStream {
    let mut params = json!({"name": tool});
    let mut headers = String::new();
    if is_stateless {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        headers = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        );
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let body = body.to_string();
    let mut stream = TcpStream::connect(daemon.address()).unwrap();
    let limit = Duration::from_secs(60);
    stream.set_read_timeout(Some(limit)).unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: Application/JSON; Charset=\"UTF-8\"\r\nAccept: {accept}\r\n{headers}\
         Content-Length: {}\r\n\r\n{body}",
        daemon.address(),
        daemon.token().unwrap(),
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Reads until the server closes the connection, or until `end` arrives.
fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut read = Vec::new();
    loop {
        let mut part = [0; 4096];
        let length = stream.read(&mut part).unwrap();
        read.extend_from_slice(&part[..length]);
        let text = String::from_utf8_lossy(&read);
        if length == 0 || !end.is_empty() && text.contains(end) {
            return text.into_owned();
        }
    }
}

#[test]
fn half_closed_client_gets_its_answer() {
    let sandbox = Sandbox::new().with_script("quick", QUICK);
    let daemon = Daemon::start(&sandbox, &[]);
    for is_stateless in [false, true] {
        for accept in [BOTH, "application/json"] {
            let mut client = half_closed(&daemon, "quick", accept, is_stateless);
            let answer = read_until(&mut client, "");
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
            assert!(answer.contains(r#""text":"done""#), "{answer}");
        }
    }
}

#[test]
fn half_closed_client_gets_a_slow_answer() {
    for (accept, is_stateless) in [(BOTH, false), (BOTH, true), ("application/json", false)] {
        let sandbox = Sandbox::new().with_script("held", HELD);
        let daemon = Daemon::start(&sandbox, &[]);
        let mut client = half_closed(&daemon, "held", accept, is_stateless);
        let started = sandbox.path().join("scripts/started");
        eventually("the start", || started.exists().then_some(()));
        // The comment by which the server probes whether the client still reads.
        let begun = match accept {
            BOTH => read_until(&mut client, "\r\n:\r\n"),
            _ => String::new(),
        };
        fs::write(sandbox.path().join("scripts/go"), "").unwrap();
        let answer = begun + &read_until(&mut client, "");
        assert!(answer.contains(r#""text":"done""#), "{answer}");
    }
}

#[test]
fn lost_client_ends_its_stateless_call() {
    for accept in [BOTH, "application/json"] {
        let sandbox = Sandbox::new().with_script("held", HELD);
        let daemon = Daemon::start(&sandbox, &[]);
        let client = call(&daemon, "held", accept, true);
        let started = sandbox.path().join("scripts/started");
        eventually("the start", || started.exists().then_some(()));
        drop(client);
        wait_until_nothing_left(&sandbox, &[daemon.id()]);
    }
}
