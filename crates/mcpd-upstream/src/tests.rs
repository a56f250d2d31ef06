//! Tests against servers in this process, and against odd programs.

mod odd_programs;
mod odd_web;
mod passing;
mod programs;
mod server;
mod trouble;
mod web;

use std::time::Duration;

use mcpd_server::{Connection, Reply, ToolNames};
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};
use tokio::sync::mpsc;

pub(crate) use self::server::Server;
use crate::upstream::{Reach, Upstream};

/// Time limit that only a hang exceeds.
const HANG_TIMEOUT: Duration = Duration::from_secs(20);

/// Upper bound for an immediate message, also on a busy machine, and well below any timeout.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(15);

/// One revision of each wire.
const REVISIONS: [ProtocolVersion; 2] =
    [ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// Upstream server behind an mcpd server, and the clients of that.
struct Fixture {
    server: mcpd_server::Server,
}

impl Fixture {
    async fn of(server: &Server) -> Self {
        let fixture = Self::new(upstream(server)).await;
        fixture.expect_faults(&[]).await;
        fixture
    }

    async fn new(upstream: Upstream) -> Self {
        let server = mcpd_server::Server::builder().source(upstream).start();
        let server = server.unwrap();
        server.catalog_ready().await;
        Self { server }
    }

    /// Connects a client that speaks `revision`.
    async fn client(&self, revision: &'static str) -> Client {
        let (connection, messages) = Connection::open(&self.server, ToolNames::Path);
        let client = Client {
            revision,
            connection,
            messages,
        };
        if revision < "2026-07-28" {
            let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}});
            client.request("initialize", params).await;
        }
        client
    }

    /// Waits until exactly these faults are reported.
    async fn expect_faults(&self, faults: &[&str]) {
        let known = async {
            while self.server.catalog().offers()[0].faults() != faults {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let known = tokio::time::timeout(HANG_TIMEOUT, known).await;
        let offers = self.server.catalog().offers().to_vec();
        assert!(known.is_ok(), "{:?}", offers[0].faults());
    }

    /// Waits until exactly these tools are listed.
    async fn expect_tools(&self, names: &[&str]) {
        let listed = || -> Vec<String> {
            let catalog = self.server.catalog();
            let tools = catalog.tools().iter();
            tools.map(|tool| tool.path().to_string()).collect()
        };
        let known = async {
            while listed() != names {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let known = tokio::time::timeout(HANG_TIMEOUT, known).await;
        assert!(known.is_ok(), "{:?}", listed());
    }
}

struct Client {
    revision: &'static str,
    connection: Connection,
    messages: mpsc::Receiver<bytes::Bytes>,
}

impl Client {
    async fn request(&self, method: &str, params: Value) -> Value {
        let answer = self.send(1, method, params);
        tokio::time::timeout(HANG_TIMEOUT, answer)
            .await
            .expect("an answer in time")
            .expect("an answer")
    }

    /// Returns the answer to a request, unless it is cancelled. The request is sent when the
    /// future is first polled.
    async fn send(&self, id: u32, method: &str, mut params: Value) -> Option<Value> {
        if self.revision >= "2026-07-28" {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(self.revision);
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
            params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        }
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answer = match self.connection.receive(request.to_string().as_bytes()) {
            Reply::Ready(answer) => answer,
            Reply::Pending(answer) => answer.await?,
            Reply::Nothing => panic!("no answer to {request}"),
        };
        Some(serde_json::from_slice(&answer).unwrap())
    }

    /// Returns the result of a call.
    async fn call(&self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": 7}});
        self.request("tools/call", params).await["result"].take()
    }

    /// Returns the messages received so far.
    fn messages(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Ok(message) = self.messages.try_recv() {
            messages.push(serde_json::from_slice(&message).unwrap());
        }
        messages
    }
}

fn upstream(server: &Server) -> Upstream {
    Upstream::new("ship".to_owned(), Reach::Memory(server.clone()))
}

/// Returns the first text of a result.
#[track_caller]
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}
