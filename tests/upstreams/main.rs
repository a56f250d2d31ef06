//! The binary in front of other MCP servers: foreign ones, and itself.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod itself;
mod others;

use std::fs;

use mcpd_tests::{Pipes, Sandbox, eventually};
use serde_json::{Value, json};

/// Protocol revisions of clients, one for each wire.
const REVISIONS: [&str; 2] = ["2025-06-18", "2026-07-28"];

/// mcpd with an upstream server, and a client that speaks one revision.
struct Front {
    pipes: Pipes,
    revision: &'static str,
    /// Id of the last request.
    last: u64,
}

impl Front {
    /// Starts `mcpd stdio` with this configuration.
    fn start(sandbox: &Sandbox, configuration: &str, revision: &'static str) -> Self {
        fs::write(sandbox.path().join("front.toml"), configuration).unwrap();
        let mut front = Self {
            pipes: Pipes::start(sandbox, &["--config", "front.toml"]),
            revision,
            last: 0,
        };
        if !front.is_stateless() {
            let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}});
            front.result("initialize", params);
        }
        front.wait_for_tools();
        front
    }

    /// Waits until the tools of the upstream server are listed: on a busy machine the first list
    /// does not wait for them.
    #[track_caller]
    fn wait_for_tools(&mut self) {
        eventually("the upstream server is listed", || {
            (!self.tools().is_empty()).then_some(())
        });
    }

    fn is_stateless(&self) -> bool {
        self.revision >= "2026-07-28"
    }

    /// Sends a request and returns its id.
    fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.last += 1;
        if self.is_stateless() {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(self.revision);
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let message =
            json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        self.pipes.send(message.to_string().as_bytes());
        self.last
    }

    /// Sends a request, and returns its answer and the messages before it.
    #[track_caller]
    fn answer(&mut self, method: &str, params: Value) -> (Value, Vec<Value>) {
        let number = self.send(method, params);
        let mut before = Vec::new();
        loop {
            let message = self.pipes.receive();
            if message["id"] == number {
                return (message, before);
            }
            before.push(message);
        }
    }

    #[track_caller]
    fn result(&mut self, method: &str, params: Value) -> Value {
        let (mut answer, _) = self.answer(method, params);
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].take()
    }

    /// Returns the names in a list.
    #[track_caller]
    fn names(&mut self, method: &str, what: &str, key: &str) -> Vec<String> {
        let list = self.result(method, json!({}));
        let entries = list[what].as_array().unwrap().iter();
        entries
            .map(|entry| entry[key].as_str().unwrap().to_owned())
            .collect()
    }

    #[track_caller]
    fn tools(&mut self) -> Vec<String> {
        self.names("tools/list", "tools", "name")
    }

    #[track_caller]
    fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": name, "arguments": arguments}))
    }
}

/// Returns the first text of a result.
#[track_caller]
fn text(result: &Value) -> &str {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text in {result}"))
}
