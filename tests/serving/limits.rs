//! Request limits as configured: rate limits, queue limits, and the `429` answers beyond them.

use std::fs;
use std::thread;

use mcpd_tests::{Client, Daemon, Pipes, Sandbox, eventually};
use serde_json::{Value, json};

use crate::call;

const AUDIT_LOG: &str = "state/mcpd/logs/mcp-audit.jsonl";

fn sandbox(configuration: &str) -> Sandbox {
    let sandbox = Sandbox::new().with_script(
        "hello",
        "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{}'; exit; }\necho hello\n",
    );
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    sandbox
}

/// Calls three times with a burst limit of two.
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
fn rate_limit_applies_to_every_client() {
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
fn token_has_its_own_limits() {
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

/// Checks that a request with this first line and these headers is refused with `Retry-After`.
#[track_caller]
fn check_refused(client: &Client, request: &str, body: &Value) {
    let (head, body) = client.exchange(request, &body.to_string()).unwrap();
    assert!(head.starts_with("HTTP/1.1 429 "), "{head}\n{body}");
    assert!(head.contains("\r\nretry-after: "), "{head}");
    assert!(
        body.contains("is busy: 256 calls of it are already waiting"),
        "{body}"
    );
}

/// Runs one call of `slow` and fills its queue, with not one call more: that one might arrive when
/// there is room again.
fn fill(daemon: &Daemon) -> Vec<thread::JoinHandle<Vec<Value>>> {
    let calls = (1..=257).map(|id| {
        let mut message = call("slow", json!({}));
        message["id"] = id.into();
        message
    });
    let calls: Vec<_> = calls.collect();
    let clients = calls.chunks(50).map(|calls| {
        let client = daemon.client();
        let batch = Value::from(calls).to_string();
        thread::spawn(move || {
            let (_, body) = client.post(&batch).unwrap();
            serde_json::from_str(&body).unwrap()
        })
    });
    let clients = clients.collect();
    eventually("a full queue", || {
        let (_, metrics) = daemon.client().get("/metrics").unwrap();
        metrics.contains("mcpd_runs_queued 256\n").then_some(())
    });
    clients
}

#[test]
fn full_queue_rejects_with_retry_after() {
    let help = r#"{"state": true, "task": "auto", "concurrency": 1}"#;
    let slow = format!(
        "#!/bin/sh\n[ \"$1\" = --help ] && {{ echo '{help}'; exit; }}\nuntil [ -e go ]; do sleep 0.02; done\n"
    );
    let sandbox = sandbox("").with_script("slow", &slow);
    let daemon = Daemon::start(&sandbox, &["--metrics-to-clients"]);
    let waiting = fill(&daemon);

    let client = daemon.client();
    check_refused(&client, "POST /mcp", &call("slow", json!({})));
    check_refused(&client, "POST /events/slow", &json!({}));
    let state = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read",
        "params": {"uri": "mcpd://slow/state"}});
    check_refused(&client, "POST /mcp", &state);
    let mut stateless = call("slow", json!({}));
    for capabilities in [
        json!({}),
        json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}),
    ] {
        stateless["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "progressToken": 1,
        });
        let request = "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\n\
            Mcp-Method: tools/call\r\nMcp-Name: slow\r\nX-Rest: ";
        check_refused(&client, request, &stateless);
    }
    fs::write(sandbox.path().join("scripts/go"), "").unwrap();
    for waiting in waiting {
        for answer in waiting.join().unwrap() {
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
    }
    let (status, body) = client.post(&call("slow", json!({})).to_string()).unwrap();
    assert_eq!(status, 200, "{body}");
    let recorded = || fs::read_to_string(sandbox.path().join(AUDIT_LOG)).unwrap();
    eventually("the records of all that ran", || {
        (recorded().matches(r#""outcome":"success""#).count() == 258).then_some(())
    });
    assert!(!recorded().contains("busy"));
}

#[test]
fn event_stream_beyond_the_rate_limit_is_refused() {
    let sandbox = sandbox("[limits]\nrate = 0.01\nburst = 1\n");
    let daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
    let post = || {
        daemon
            .client()
            .exchange("POST /events/hello", "{}")
            .unwrap()
    };
    let (head, body) = post();
    assert!(body.contains("event: complete"), "{head}\n{body}");
    let (head, body) = post();
    assert!(head.starts_with("HTTP/1.1 429 "), "{head}");
    assert!(head.contains("\r\nretry-after: 1"), "{head}");
    assert!(body.starts_with("too many calls; try again in "), "{body}");
}
