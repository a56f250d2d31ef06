//! Request events: start, lines and end of each call for an observer in the same process.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpd_server::{Connection, Principal, Reply, RequestEvent, Server, ToolNames};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Far longer than any step here; only a hang reaches it.
const HANG_TIMEOUT: Duration = Duration::from_secs(20);

const LOGIN: &str = r#"#!/bin/sh
# /// mcpd
# description = "Logs in"
# [options.user]
# required = true
# value_type = "string"
# [options.password]
# value_type = "string"
# secret = true
# ///
echo "info: checking" >&2
[ "$MCPD_OPT_user" = slow ] && { echo waiting >&2; exec sleep 600; }
echo "hello $MCPD_OPT_user"
"#;

/// Server that writes down its events, one line each.
struct Observed {
    events: Arc<Mutex<Vec<String>>>,
    connection: Connection,
    _root: TempDir,
}

impl Observed {
    async fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        let script = root.path().join("login");
        fs::write(&script, LOGIN).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&events);
        let server = Server::builder()
            .scripts(root.path())
            .watch(false)
            .observe_requests(move |number, event| {
                written
                    .lock()
                    .unwrap()
                    .push(format!("{number} {}", describe(&event)));
            });
        let server = server.start().unwrap();
        server.catalog_ready().await;
        let connection =
            Connection::open_with(Principal::local(), &server, ToolNames::Path, |_| {});
        Self {
            events,
            connection,
            _root: root,
        }
    }

    fn request(&self, method: &str, params: &Value) -> Reply {
        let params = {
            let mut params = params.clone();
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            });
            params
        };
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.connection.receive(request.to_string().as_bytes())
    }

    async fn call(&self, arguments: Value) {
        let params = json!({"name": "login", "arguments": arguments});
        if let Reply::Pending(answer) = self.request("tools/call", &params) {
            tokio::time::timeout(HANG_TIMEOUT, answer).await.unwrap();
        }
    }

    fn events(&self) -> Vec<String> {
        std::mem::take(&mut *self.events.lock().unwrap())
    }
}

fn describe(event: &RequestEvent<'_>) -> String {
    match event {
        RequestEvent::Started {
            method,
            path,
            params,
            client,
            ..
        } => {
            let client = client.map(|client| &*client.name);
            format!("started {method} {path:?} {params} {client:?}")
        }
        RequestEvent::Line(line) => format!("line {}", String::from_utf8_lossy(line)),
        RequestEvent::Finished { outcome, .. } => match outcome {
            Ok(result) => {
                let result: Value = serde_json::from_slice(result).unwrap();
                format!("finished {}", result["content"][0]["text"])
            }
            Err(error) => format!("failed {}", error.message),
        },
        RequestEvent::Cancelled => "cancelled".to_owned(),
        _ => "another event".to_owned(),
    }
}

#[tokio::test]
async fn call_is_observed_from_its_start_to_its_result() {
    let observed = Observed::start().await;
    observed
        .call(json!({"user": "ann", "password": "hunter2"}))
        .await;
    observed.call(json!({})).await;
    insta::assert_debug_snapshot!(observed.events());
}

#[tokio::test]
async fn request_without_a_run_is_not_observed() {
    let observed = Observed::start().await;
    observed.request("tools/list", &json!({}));
    assert_eq!(observed.events(), Vec::<String>::new());
}

#[tokio::test]
async fn dropped_request_is_cancelled() {
    let observed = Observed::start().await;
    let params = json!({"name": "login", "arguments": {"user": "slow"}});
    let Reply::Pending(mut answer) = observed.request("tools/call", &params) else {
        panic!("the call has ended");
    };
    let has_begun = || {
        let events = observed.events.lock().unwrap();
        events.iter().any(|event| event == "1 line waiting")
    };
    let waited = async {
        while !has_begun() {
            tokio::time::timeout(Duration::from_millis(5), &mut answer)
                .await
                .ok();
        }
    };
    tokio::time::timeout(HANG_TIMEOUT, waited).await.unwrap();
    drop(answer);
    assert_eq!(observed.events().last().unwrap(), "1 cancelled");
}
