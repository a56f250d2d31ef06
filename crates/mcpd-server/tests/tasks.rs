//! Background calls: as tasks for clients that support them, and as runs for models of other
//! clients.

#![cfg(all(unix, feature = "database"))]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use mcpd_server::audit::{Mode, Options};
use mcpd_server::{Audit, Connection, Database, Principal, Reply, Server, ToolNames};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Far longer than any step here; only a hang reaches it.
const HANG_TIMEOUT: Duration = Duration::from_secs(30);

/// Directory with a database, and a gate that scripts wait for.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn database(&self) -> PathBuf {
        self.0.path().join("mcpd.db")
    }

    fn gate(&self) -> Value {
        json!({"gate": self.0.path().join("gate")})
    }

    fn open_gate(&self) {
        fs::write(self.0.path().join("gate"), "").unwrap();
    }

    /// Starts a server with tasks.
    async fn serve(&self) -> Client {
        let server = scripts()
            .tasks(Database::new(self.database()))
            .background_tools();
        Client::of(&server.start().unwrap()).await
    }
}

fn scripts() -> mcpd_server::ServerBuilder {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts-tasks");
    Server::builder().scripts(scripts).watch(false)
}

/// Client that supports tasks.
struct Client {
    server: Server,
    connection: Connection,
    messages: mpsc::Receiver<Bytes>,
}

impl Client {
    async fn of(server: &Server) -> Self {
        server.catalog_ready().await;
        let (connection, messages) = Connection::open(server, ToolNames::Portable);
        Self {
            server: server.clone(),
            connection,
            messages,
        }
    }

    /// Returns the response to a request of a client with these capabilities.
    async fn ask_as(&self, capabilities: Value, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        self.ask(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            .await
    }

    async fn ask(&self, message: Value) -> Value {
        self.ask_raw(&message.to_string()).await
    }

    async fn ask_raw(&self, message: &str) -> Value {
        let answer = match self.connection.receive(message.as_bytes()) {
            Reply::Ready(answer) => Some(answer),
            Reply::Pending(answer) => timeout(HANG_TIMEOUT, answer).await.expect("an answer"),
            Reply::Nothing => None,
        };
        serde_json::from_slice(&answer.expect("an answer")).unwrap()
    }

    #[track_caller]
    fn result(answer: Value) -> Value {
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    async fn request(&self, method: &str, params: Value) -> Value {
        Self::result(self.ask_as(knows_tasks(), method, params).await)
    }

    async fn check_rejected(&self, method: &str, params: Value) -> i64 {
        let answer = self.ask_as(knows_tasks(), method, params).await;
        answer["error"]["code"].as_i64().unwrap_or_default()
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))
            .await
    }

    /// Returns the id of the task that a call becomes.
    async fn begin(&self, tool: &str, arguments: Value) -> String {
        let created = self.call(tool, arguments).await;
        assert_eq!(created["resultType"], "task", "{created}");
        created["taskId"].as_str().unwrap().to_owned()
    }

    async fn get(&self, task: &str) -> Value {
        self.request("tasks/get", json!({"taskId": task})).await
    }

    /// Returns the task once it has this status.
    async fn until(&self, task: &str, status: &str) -> Value {
        let reached = async {
            loop {
                let task = self.get(task).await;
                if task["status"] == status {
                    return task;
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        match timeout(HANG_TIMEOUT, reached).await {
            Ok(task) => task,
            Err(_) => panic!("not {status}: {}", self.get(task).await),
        }
    }

    /// Returns the text of the result of a tool, called under 2025-06-18.
    async fn old_call(&self, tool: &str, arguments: Value) -> String {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        let answer = self.ask(call).await;
        let text = &Self::result(answer)["content"][0]["text"];
        text.as_str().unwrap().to_owned()
    }

    async fn old_json(&self, tool: &str, arguments: Value) -> Value {
        serde_json::from_str(&self.old_call(tool, arguments).await).unwrap()
    }
}

fn knows_tasks() -> Value {
    json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

#[tokio::test]
async fn messages_of_a_call_are_forwarded_without_a_task() {
    let place = Place::new();
    let mut client = place.serve().await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "quick", "_meta": {
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": knows_tasks(),
    }}});
    let result = Client::result(client.ask(call).await);
    assert_eq!(result["content"][0]["text"], "Hello!");
    let heard: Value = serde_json::from_slice(&client.messages.try_recv().unwrap()).unwrap();
    assert_eq!(heard["params"]["message"], "greeting", "{heard}");
}

#[tokio::test]
async fn slow_call_becomes_a_task_and_ends_with_its_result() {
    let place = Place::new();
    let client = place.serve().await;
    let created = client.call("gated", place.gate()).await;
    assert_eq!(created["status"], "working");
    assert_eq!(created["pollIntervalMs"], 1000);
    assert_eq!(created["ttlMs"], 3_660_000);
    for absent in ["result", "error", "inputRequests", "requestState", "task"] {
        assert!(created[absent].is_null(), "{created}");
    }
    let id = created["taskId"].as_str().unwrap();
    let task = client.get(id).await;
    assert_eq!(task["resultType"], "complete");
    assert_eq!(task["createdAt"], created["createdAt"]);
    assert!(task["result"].is_null(), "{task}");

    place.open_gate();
    let task = client.until(id, "completed").await;
    let result = &task["result"];
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["isError"], false);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("\nThe gate is open."), "{text}");
}

#[tokio::test]
async fn fast_call_becomes_no_task() {
    let place = Place::new();
    let client = place.serve().await;
    let result = client.call("quick", json!({})).await;
    assert_eq!(result["content"][0]["text"], "Hello!");
    // A slow call becomes a task.
    let id = client.begin("patient", place.gate()).await;
    place.open_gate();
    client.until(&id, "completed").await;
}

#[tokio::test]
async fn client_without_task_support_waits_or_is_rejected() {
    let place = Place::new();
    let client = place.serve().await;
    place.open_gate();
    let call = |tool: &str| json!({"name": tool, "arguments": place.gate()});
    let answer = client
        .ask_as(json!({}), "tools/call", call("patient"))
        .await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    let required = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let refused = client.ask_as(json!({}), "tools/call", call("gated")).await;
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], required);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({"taskId": "x", "inputResponses": {}});
        let refused = client.ask_as(json!({}), method, params).await;
        assert_eq!(refused["error"]["code"], -32021, "{refused}");
    }
    let listen = json!({"notifications": {"taskIds": ["x"]}});
    let refused = client
        .ask_as(json!({}), "subscriptions/listen", listen)
        .await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    // The older revisions have no such error, and no such methods, whatever their clients
    // declare.
    let told = client.old_call("gated", place.gate()).await;
    assert!(told.contains("runs_start"), "{told}");
    let introduction = json!({"protocolVersion": "2025-11-25", "capabilities": knows_tasks(), "clientInfo": {"name": "test", "version": "0"}});
    let introduction =
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": introduction});
    client.ask(introduction).await;
    let told = client.old_call("gated", place.gate()).await;
    assert!(told.contains("runs_start"), "{told}");
    let get = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": "x"}});
    assert_eq!(client.ask(get).await["error"]["code"], -32601);
}

#[tokio::test]
async fn rejected_call_is_no_task() {
    let place = Place::new();
    let client = place.serve().await;
    let params = json!({"name": "gated", "arguments": place.gate(), "requestState": "forged"});
    assert_eq!(client.check_rejected("tools/call", params).await, -32602);
    let result = client.call("gated", json!({"gate": 1})).await;
    assert_eq!(result["resultType"], "complete", "{result}");
    assert_eq!(result["isError"], true, "{result}");
}

#[tokio::test]
async fn server_without_a_database_has_no_tasks() {
    let place = Place::new();
    let client = Client::of(&scripts().start().unwrap()).await;
    place.open_gate();
    let discovered = client.request("server/discover", json!({})).await;
    assert!(discovered["capabilities"]["extensions"].is_null());
    let call = json!({"name": "gated", "arguments": place.gate()});
    for capabilities in [json!({}), knows_tasks()] {
        let answer = client
            .ask_as(capabilities, "tools/call", call.clone())
            .await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    }
    assert_eq!(
        client
            .check_rejected("tasks/get", json!({"taskId": "x"}))
            .await,
        -32601
    );
}

#[tokio::test]
async fn caller_waits_if_its_task_cannot_be_stored() {
    let place = Place::new();
    fs::create_dir(place.database()).unwrap();
    let client = place.serve().await;
    place.open_gate();
    let result = client.call("gated", place.gate()).await;
    assert_eq!(result["resultType"], "complete", "{result}");
}

#[tokio::test]
async fn questions_are_asked_and_answered_through_the_task() {
    let place = Place::new();
    let client = place.serve().await;
    let id = client.begin("asking", json!({})).await;
    let answer = |key: &str| json!({key: {"action": "accept", "content": {"x": key}}});
    let update = |responses: Value| json!({"taskId": id, "inputResponses": responses});
    let keys = |task: &Value| {
        let questions = task["inputRequests"].as_object().unwrap();
        questions.keys().cloned().collect::<Vec<_>>()
    };
    let task = client.until(&id, "input_required").await;
    assert_eq!(keys(&task), ["a", "b"]);

    for malformed in [json!({"x": 1}), json!({"roots": []})] {
        let malformed = update(json!({"a": malformed}));
        assert_eq!(
            client.check_rejected("tasks/update", malformed).await,
            -32602
        );
    }
    let stranger = update(json!({"c": {"x": 1}}));
    assert_eq!(
        client.request("tasks/update", stranger).await["resultType"],
        "complete"
    );
    client.request("tasks/update", update(answer("a"))).await;
    let task = client.get(&id).await;
    assert_eq!(task["status"], "input_required");
    assert_eq!(keys(&task), ["b"]);
    client.request("tasks/update", update(answer("b"))).await;

    // Keys are never reused.
    let again = async {
        loop {
            let task = client.until(&id, "input_required").await;
            if keys(&task) == ["a#2"] {
                return;
            }
        }
    };
    timeout(HANG_TIMEOUT, again)
        .await
        .expect("the second question");
    client.request("tasks/update", update(answer("a#2"))).await;
    let task = client.until(&id, "completed").await;
    let text = task["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "a:action:accept,content:x:a#2");
}

#[tokio::test]
async fn input_rounds_of_a_task_are_bounded() {
    let place = Place::new();
    let client = place.serve().await;
    let id = client.begin("restless", json!({})).await;
    let task = client.until(&id, "failed").await;
    let message = "the tool asked for input more than 32 times";
    assert_eq!(task["error"]["message"], message);
}

#[tokio::test]
async fn immediate_questions_need_no_task() {
    let place = Place::new();
    let client = place.serve().await;
    let asked = client.call("early", place.gate()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let answered = json!({
        "name": "early",
        "arguments": place.gate(),
        "inputResponses": {"name": {"action": "accept", "content": {"x": "y"}}},
    });
    let created = client.request("tools/call", answered).await;
    assert_eq!(created["resultType"], "task", "{created}");
    place.open_gate();
    let id = created["taskId"].as_str().unwrap();
    client.until(id, "completed").await;
}

#[tokio::test]
async fn cancelled_task_ends_and_stays_cancelled() {
    let place = Place::new();
    let client = place.serve().await;
    for (tool, arguments, status) in [
        ("gated", place.gate(), "working"),
        ("asking", json!({}), "input_required"),
    ] {
        let id = client.begin(tool, arguments).await;
        client.until(&id, status).await;
        for _ in 0..2 {
            let acknowledged = client.request("tasks/cancel", json!({"taskId": id})).await;
            assert_eq!(acknowledged["resultType"], "complete");
            assert!(acknowledged["status"].is_null());
            client.until(&id, "cancelled").await;
        }
    }
    // Nothing is running any more.
    timeout(HANG_TIMEOUT, client.server.shutdown())
        .await
        .unwrap();
}

#[tokio::test]
async fn tool_failure_is_a_result_and_protocol_error_a_failed_task() {
    let place = Place::new();
    let client = place.serve().await;
    let id = client.begin("failing", json!({})).await;
    let task = client.until(&id, "completed").await;
    assert_eq!(task["result"]["isError"], true, "{task}");
    let id = client.begin("refused", json!({})).await;
    let task = client.until(&id, "failed").await;
    assert_eq!(task["error"], json!({"code": 7, "message": "not today"}));
    assert_eq!(task["statusMessage"], "not today");
    assert!(task["result"].is_null(), "{task}");
}

#[tokio::test]
async fn result_too_large_to_store_is_reported() {
    let place = Place::new();
    let client = place.serve().await;
    let id = client.begin("huge", json!({})).await;
    let task = client.until(&id, "completed").await;
    assert_eq!(task["result"]["isError"], true);
    let text = task["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("exceeds the limit of 4194304 bytes"),
        "{text}"
    );
}

#[tokio::test]
async fn task_is_visible_to_its_owner_only() {
    let place = Place::new();
    let client = place.serve().await;
    let id = client.begin("gated", place.gate()).await;
    let (connection, messages) =
        Connection::open_for(Principal::new("other"), &client.server, ToolNames::Portable);
    let other = Client {
        server: client.server.clone(),
        connection,
        messages,
    };
    for (method, id) in [
        ("tasks/get", &*id),
        ("tasks/update", &*id),
        ("tasks/cancel", &*id),
    ] {
        let params = json!({"taskId": id, "inputResponses": {}});
        assert_eq!(other.check_rejected(method, params.clone()).await, -32602);
        let params = json!({"taskId": "nobody's", "inputResponses": {}});
        assert_eq!(client.check_rejected(method, params).await, -32602);
    }
    assert_eq!(
        other.old_json("runs_list", json!({})).await["runs"],
        json!([])
    );
    assert_eq!(client.get(&id).await["status"], "working");
}

#[tokio::test]
async fn restart_keeps_finished_tasks_and_fails_lost_ones() {
    let place = Place::new();
    let first = place.serve().await;
    let over = first.begin("failing", json!({})).await;
    first.until(&over, "completed").await;
    let lost = first.begin("gated", place.gate()).await;
    let server = first.server.clone();
    server.shutdown().await;
    drop((first, server));

    let second = place.serve().await;
    assert_eq!(second.get(&over).await["status"], "completed");
    let task = second.until(&lost, "failed").await;
    assert_eq!(task["error"]["code"], -32603);
    let message = "the server stopped before the run ended";
    assert_eq!(task["error"]["message"], message);
}

#[tokio::test]
async fn servers_with_one_database_leave_each_others_tasks_alone() {
    let place = Place::new();
    let (first, second) = (place.serve().await, place.serve().await);
    let id = first.begin("asking", json!({})).await;
    second.begin("gated", place.gate()).await;
    second.until(&id, "input_required").await;
    // Either server accepts requests for a task.
    let responses = json!({
        "a": {"action": "decline"},
        "b": {"action": "decline"},
    });
    let update = json!({"taskId": id, "inputResponses": responses});
    second.request("tasks/update", update).await;
    let again = async {
        while second.get(&id).await["inputRequests"]["a#2"].is_null() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(HANG_TIMEOUT, again).await.expect("it goes on");
    second.request("tasks/cancel", json!({"taskId": id})).await;
    first.until(&id, "cancelled").await;
}

#[tokio::test]
async fn listener_is_notified_of_its_own_tasks_only() {
    let place = Place::new();
    let mut client = place.serve().await;
    let id = client.begin("gated", place.gate()).await;
    let other = client.begin("gated", place.gate()).await;
    let params = json!({
        "notifications": {"taskIds": [id, "nobody's"]},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": knows_tasks(),
        },
    });
    let listen =
        json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params});
    let Reply::Pending(listening) = client.connection.receive(listen.to_string().as_bytes()) else {
        panic!("it goes on");
    };
    let listening = tokio::spawn(listening);
    let mut heard = async || -> Value {
        let message = timeout(HANG_TIMEOUT, client.messages.recv()).await;
        serde_json::from_slice(&message.expect("in time").expect("open")).unwrap()
    };
    let acknowledged = heard().await;
    assert_eq!(
        acknowledged["params"]["notifications"]["taskIds"],
        json!([id])
    );
    let begun = heard().await;
    assert_eq!(begun["method"], "notifications/tasks");
    assert_eq!(begun["params"]["taskId"], *id);
    assert_eq!(begun["params"]["status"], "working");
    assert_eq!(
        begun["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        "l"
    );
    place.open_gate();
    let ended = heard().await;
    assert_eq!(ended["params"]["taskId"], *id);
    assert_eq!(ended["params"]["status"], "completed");
    assert_eq!(ended["params"]["result"]["isError"], false);
    assert!(ended["params"]["resultType"].is_null(), "{ended}");
    listening.abort();
    client.until(&other, "completed").await;
}

#[tokio::test]
async fn background_run_gets_its_arguments_as_sent() {
    let place = Place::new();
    let client = place.serve().await;
    let arguments = r#"{"numbers":[12345678901234567890.12345,1.10,1e2],"note":"\u0061"}"#;
    let start = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"runs_start","arguments":{{"tool":"exact","arguments":{arguments}}}}}}}"#
    );
    let started = Client::result(client.ask_raw(&start).await);
    let id = &started["structuredContent"]["run"];
    client.until(id.as_str().unwrap(), "completed").await;
    let output = client.old_call("runs_output", json!({"run": id})).await;
    assert_eq!(output, arguments);

    let tools = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let tools = Client::result(client.ask(tools).await)["tools"].take();
    let is_start = |tool: &&Value| tool["name"] == "runs_start";
    let start = tools.as_array().unwrap().iter().find(is_start).unwrap();
    assert_eq!(
        start["inputSchema"]["properties"]["arguments"],
        json!({"description": "The arguments of the tool.", "type": "object", "additionalProperties": true, "default": {}, "properties": {}})
    );
}

#[tokio::test]
async fn background_tools_serve_clients_without_task_support() {
    let place = Place::new();
    let client = place.serve().await;
    let start = json!({"tool": "gated", "arguments": place.gate()});
    let started = client.old_json("runs_start", start).await;
    assert_eq!(started["tool"], "gated");
    let run = json!({"run": started["run"]});
    let printed = async {
        loop {
            let output = client.old_call("runs_output", run.clone()).await;
            if output.contains("run of") {
                return output;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let printed = timeout(HANG_TIMEOUT, printed)
        .await
        .expect("what it has printed");
    assert!(printed.starts_with("The run is still going."), "{printed}");
    let status = client.old_json("runs_status", run.clone()).await;
    assert_eq!(status["status"], "working");
    assert_eq!(status["message"], "waiting");

    place.open_gate();
    let id = started["run"].as_str().unwrap();
    client.until(id, "completed").await;
    let output = client.old_call("runs_output", run.clone()).await;
    assert!(output.ends_with("\nThe gate is open."), "{output}");
    let listed = client.old_json("runs_list", json!({})).await;
    assert_eq!(listed["runs"][0]["run"], started["run"]);
    client.old_call("runs_stop", run).await;

    for tool in ["runs_status", "runs_output", "runs_stop"] {
        let unknown = client.old_call(tool, json!({"run": "x"})).await;
        let expected = "There is no run `x`, or it has expired; runs_list lists the current runs.";
        assert_eq!(unknown, expected, "{tool}");
    }
    let unknown = client.old_call("runs_start", json!({"tool": "x"})).await;
    assert_eq!(unknown, "There is no tool `x`.");
}

#[tokio::test]
async fn background_run_that_asks_fails() {
    let place = Place::new();
    let client = place.serve().await;
    let started = client
        .old_json("runs_start", json!({"tool": "asking"}))
        .await;
    client
        .until(started["run"].as_str().unwrap(), "failed")
        .await;
    let output = client
        .old_call("runs_output", json!({"run": started["run"]}))
        .await;
    let expected = "It failed: the tool asks for input, which this caller cannot give.";
    assert_eq!(output, expected);
}

#[tokio::test]
async fn audit_log_records_finished_tasks_without_secrets() {
    let place = Place::new();
    let log = place.0.path().join("audit.jsonl");
    let mut options = Options::default();
    options.mode = Mode::Require;
    let audit = Audit::new(&log, options).unwrap();
    let server = scripts()
        .tasks(Database::new(place.database()))
        .background_tools();
    let client = Client::of(&server.audit(audit).start().unwrap()).await;
    let secret = json!({"password": "hunter2"});
    let failed = client.begin("login", secret.clone()).await;
    client.until(&failed, "completed").await;
    let cancelled = client.begin("gated", place.gate()).await;
    client
        .request("tasks/cancel", json!({"taskId": cancelled}))
        .await;
    client.until(&cancelled, "cancelled").await;
    let start = json!({"tool": "login", "arguments": secret});
    let run = client.old_json("runs_start", start).await;
    client
        .until(run["run"].as_str().unwrap(), "completed")
        .await;
    let log = async {
        loop {
            let log = fs::read_to_string(&log).unwrap_or_default();
            if log.matches(r#""event":"end""#).count() == 3 {
                return log;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let log = timeout(HANG_TIMEOUT, log)
        .await
        .expect("the records of three ends");
    // Neither before a run nor after it.
    assert!(!log.contains("hunter2"), "{log}");
    let records = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ends = records.filter(|record| record["event"] == "end");
    let mut records: Vec<_> = ends
        .map(|end| format!("{} {}", end["tool"], end["outcome"]))
        .collect();
    records.sort();
    let expected = [
        r#""gated" "cancelled""#,
        r#""login" "forbidden""#,
        r#""login" "forbidden""#,
    ];
    assert_eq!(records, expected);
}
