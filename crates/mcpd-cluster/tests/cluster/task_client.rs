//! Clients with tasks: of a front in this process, and of a front in a process of its own, which
//! can be killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::sync::Mutex;

use bytes::Bytes;
use mcpd_server::{Connection, Principal, Reply, Server, ToolNames};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, sleep, timeout};

use crate::fixture::{EVENT_TIMEOUT, NodeProcess};

/// Returns a request of a client that supports tasks and answers questions.
fn request(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {"form": {}},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        },
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// Client of a front.
pub(crate) trait TaskClient {
    /// Returns the response to a request.
    async fn ask(&self, method: &str, params: Value) -> Value;

    async fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Returns the id of the task that a call of a script with the journal becomes.
    async fn begin(&self, tool: &str, id: &str, seconds: &str) -> String {
        let arguments = json!({"id": id, "seconds": seconds});
        let params = json!({"name": tool, "arguments": arguments});
        let created = self.result("tools/call", params).await;
        assert_eq!(created["resultType"], "task", "{created}");
        created["taskId"].as_str().expect("an id").to_owned()
    }

    async fn get(&self, task: &str) -> Value {
        self.result("tasks/get", json!({"taskId": task})).await
    }

    async fn cancel(&self, task: &str) -> Value {
        self.ask("tasks/cancel", json!({"taskId": task})).await
    }

    /// Answers the only question of a task.
    async fn answer(&self, task: &str, key: &str) -> Value {
        let answer = json!({key: {"action": "accept", "content": {"sure": true}}});
        let params = json!({"taskId": task, "inputResponses": answer});
        self.ask("tasks/update", params).await
    }

    /// Returns a task once it has this status.
    async fn until(&self, task: &str, status: &str) -> Value {
        let start = Instant::now();
        loop {
            let now = self.get(task).await;
            if now["status"] == status {
                return now;
            }
            assert!(start.elapsed() < EVENT_TIMEOUT, "{now}");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Client of a front in this process.
pub(crate) struct LocalClient {
    connection: Connection,
}

impl LocalClient {
    pub(crate) fn of(server: &Server, principal: &str) -> Self {
        let principal = Principal::new(principal);
        let (connection, mut messages) =
            Connection::open_for(principal, server, ToolNames::Portable);
        tokio::spawn(async move { while messages.recv().await.is_some() {} });
        Self { connection }
    }
}

impl TaskClient for LocalClient {
    async fn ask(&self, method: &str, params: Value) -> Value {
        let message = request(method, params).to_string();
        let answer = match self.connection.receive(message.as_bytes()) {
            Reply::Ready(answer) => Some(answer),
            Reply::Pending(answer) => timeout(EVENT_TIMEOUT, answer).await.expect("in time"),
            Reply::Nothing => None,
        };
        serde_json::from_slice(&answer.expect("an answer")).expect("JSON")
    }
}

/// Client of `ada` that listens to a task.
pub(crate) struct Listener {
    messages: mpsc::Receiver<Bytes>,
    listening: tokio::task::JoinHandle<()>,
    _connection: Connection,
}

impl Listener {
    pub(crate) async fn of(server: &Server, task: &str) -> Self {
        let principal = Principal::new("ada");
        let (connection, messages) = Connection::open_for(principal, server, ToolNames::Portable);
        let params = json!({"notifications": {"taskIds": [task]}});
        let listen = request("subscriptions/listen", params).to_string();
        let Reply::Pending(listening) = connection.receive(listen.as_bytes()) else {
            panic!("it goes on");
        };
        let listening = tokio::spawn(async move {
            listening.await;
        });
        let mut listener = Self {
            messages,
            listening,
            _connection: connection,
        };
        let acknowledged = listener.next().await;
        let heard = &acknowledged["params"]["notifications"]["taskIds"];
        assert_eq!(*heard, json!([task]), "{acknowledged}");
        listener
    }

    async fn next(&mut self) -> Value {
        let message = timeout(EVENT_TIMEOUT, self.messages.recv()).await;
        serde_json::from_slice(&message.expect("in time").expect("open")).expect("JSON")
    }

    /// Returns the states of the task until it has this status, with the last of them.
    pub(crate) async fn until(&mut self, status: &str) -> (Vec<String>, Value) {
        let mut all = Vec::new();
        loop {
            let heard = self.next().await;
            assert_eq!(heard["method"], "notifications/tasks", "{heard}");
            let now = heard["params"]["status"].as_str().expect("a status");
            all.push(now.to_owned());
            if now == status {
                return (all, heard["params"].clone());
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Front in a process of its own, with its client, who is `ada`.
pub(crate) struct ProcessFront {
    pub(crate) process: NodeProcess,
    streams: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl ProcessFront {
    pub(crate) fn start(url: &str, node: &str) -> Self {
        let mut command = NodeProcess::command(&[], "front");
        command.args([url, node]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = NodeProcess::start(&mut command);
        let input = process.0.stdin.take().expect("a pipe");
        let output = BufReader::new(process.0.stdout.take().expect("a pipe"));
        Self {
            process,
            streams: Mutex::new((input, output)),
        }
    }

    /// Waits until a tool is listed.
    pub(crate) async fn wait_for(&self, tool: &str) {
        let start = Instant::now();
        loop {
            let listed = self.result("tools/list", json!({})).await;
            let tools = listed["tools"].as_array().expect("a list").clone();
            if tools.iter().any(|one| one["name"] == tool) {
                return;
            }
            assert!(start.elapsed() < EVENT_TIMEOUT, "{listed}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Returns the response to the request that was [sent](Self::send) last.
    pub(crate) async fn answer_of_last(&self) -> Value {
        tokio::task::block_in_place(|| self.read_answer())
    }

    fn read_answer(&self) -> Value {
        let mut streams = self.streams.lock().expect("no panic");
        loop {
            let mut line = String::new();
            streams.1.read_line(&mut line).expect("a line");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == 1 {
                return message;
            }
        }
    }

    /// Sends a request without waiting for its answer.
    pub(crate) fn send(&self, method: &str, params: Value) {
        let mut streams = self.streams.lock().expect("no panic");
        writeln!(streams.0, "{}", request(method, params)).expect("a front that reads");
    }
}

impl TaskClient for ProcessFront {
    async fn ask(&self, method: &str, params: Value) -> Value {
        tokio::task::block_in_place(|| {
            self.send(method, params);
            self.read_answer()
        })
    }
}
