//! Approval of calls: what runs and what does not, by every way to a tool, and its records. The
//! messages of both wires are in `wire/approval`.

#![cfg(all(unix, feature = "database"))]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use mcpd_protocol::method::{CallToolResult, Tool, ToolAnnotations};
use mcpd_server::audit::{Mode, Options};
use mcpd_server::policy::{Approval, AskFor, Remember, ToolPolicy};
use mcpd_server::source::{Publisher, Source};
use mcpd_server::{
    Audit, CallContext, Connection, Database, Policy, Reply, RunCommand, Server, ServerBuilder,
    Settings, ToolNames,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Far longer than any step here; only a hang reaches it.
const HANG_TIMEOUT: Duration = Duration::from_secs(30);

/// Script that leaves a file when it runs.
const WIPE: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Wipes.", "annotations": {"destructive": true}, "task": "TASK"}'
  echo '{"pin": {"description": "A secret.", "value_type": "string", "default_value": "", "secret": true}}' >&2
  exit 0
fi
echo ran >>"$MARKS/wipe"
echo wiped
"#;

/// Server with a tool of each kind, and the marks of their runs.
struct Fixture {
    directory: TempDir,
    server: Server,
}

/// Upstream server with a destructive tool.
struct Far(PathBuf);

impl fmt::Display for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the far server")
    }
}

impl Source for Far {
    async fn run(self, publisher: Publisher) {
        let schema = RawValue::from_string(r#"{"type": "object"}"#.to_owned()).unwrap();
        let mut wipe = Tool::new("wipe", schema);
        let mut annotations = ToolAnnotations::default();
        annotations.destructive_hint = Some(true);
        wipe.annotations = Some(annotations);
        let mut offer = publisher.offer();
        // It begins its work before its future is polled.
        offer.tool("far/wipe", wipe, move |_, _| {
            fs::write(self.0.join("far"), "ran").unwrap();
            async { Ok(CallToolResult::text("wiped")) }
        });
        publisher.publish(offer);
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Lamp {
    name: String,
}

fn approval(ask: AskFor) -> Approval {
    let mut approval = Approval::default();
    approval.ask = ask;
    approval
}

fn policy(approval: Approval, marks: &str) -> Policy {
    let marks = ToolPolicy::new("**").unwrap().variable("MARKS", marks);
    Policy::default().tool(marks).approval(approval)
}

impl Fixture {
    async fn new(settings: Approval) -> Self {
        Self::with(settings, |server| server).await
    }

    async fn with(settings: Approval, build: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let scripts = directory.path().join("scripts");
        fs::create_dir(&scripts).unwrap();
        for (name, task) in [("wipe", "auto"), ("later", "required")] {
            let script = scripts.join(name);
            fs::write(&script, WIPE.replace("TASK", task)).unwrap();
            fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let marks = directory.path().join("marks");
        fs::create_dir(&marks).unwrap();
        let lamp = marks.clone();
        let smash = move |smash: Lamp, _: CallContext| {
            fs::write(lamp.join("lamp"), smash.name).unwrap();
            async { "smashed" }
        };
        let server = Server::builder()
            .scripts(&scripts)
            .policy(policy(settings, marks.to_str().unwrap()))
            .run_command(RunCommand::default().directory(&marks))
            .tool("lamp/smash", "Smashes the lamp.", smash)
            .source(Far(marks))
            .tasks(Database::new(directory.path().join("mcpd.db")))
            .background_tools()
            .watch(false);
        let server = build(server).start().unwrap();
        server.catalog_ready().await;
        Self { directory, server }
    }

    /// Names of the tools that ran.
    fn marks(&self) -> Vec<String> {
        let marks = fs::read_dir(self.directory.path().join("marks")).unwrap();
        let mut marks: Vec<_> = marks
            .map(|mark| mark.unwrap().file_name().into_string().unwrap())
            .collect();
        marks.sort();
        marks
    }

    /// Response to a request on the stateless wire.
    async fn request(&self, method: &str, mut params: Value, capabilities: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (connection, _messages) = Connection::open(&self.server, ToolNames::Path);
        let answer = match connection.receive(message.to_string().as_bytes()) {
            Reply::Ready(answer) => Some(answer),
            Reply::Pending(answer) => timeout(HANG_TIMEOUT, answer).await.unwrap(),
            Reply::Nothing => None,
        };
        let answer: Value = serde_json::from_slice(&answer.unwrap()).unwrap();
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    async fn call(&self, tool: &str, arguments: Value, capabilities: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.request("tools/call", params, capabilities).await
    }

    /// Calls a tool, which must ask, and returns the question and the result after `action`.
    async fn answer(&self, tool: &str, arguments: Value, action: &str) -> (Value, Value) {
        let asked = self.call(tool, arguments.clone(), elicits()).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let params = json!({
            "name": tool,
            "arguments": arguments,
            "inputResponses": {"mcpd/approval": {"action": action}},
            "requestState": asked["requestState"],
        });
        let question = asked["inputRequests"]["mcpd/approval"]["params"]["message"].clone();
        (
            question,
            self.request("tools/call", params, elicits()).await,
        )
    }
}

fn elicits() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn approval_gates_tools_of_every_kind() {
    let tools = [
        ("wipe", json!({"pin": "1234567"}), "wipe"),
        ("lamp/smash", json!({"name": "red"}), "lamp"),
        ("far/wipe", json!({}), "far"),
        (
            "run_command",
            json!({"command": "touch command"}),
            "command",
        ),
    ];
    for (tool, arguments, mark) in tools {
        let fixture = Fixture::new(approval(AskFor::Always)).await;
        let refused = fixture.call(tool, arguments.clone(), json!({})).await;
        assert_eq!(refused["isError"], true);
        assert!(
            text(&refused).contains("`approval = \"never\"`"),
            "{refused}"
        );
        for action in ["decline", "cancel"] {
            let (question, result) = fixture.answer(tool, arguments.clone(), action).await;
            assert!(question.as_str().unwrap().contains(tool), "{question}");
            assert!(!question.to_string().contains("1234567"), "{question}");
            assert_eq!(result["isError"], true);
            assert!(text(&result).contains("was not called"), "{result}");
        }
        assert_eq!(fixture.marks(), [""; 0], "{tool}");
        let (_, result) = fixture.answer(tool, arguments, "accept").await;
        assert_ne!(result["isError"], true, "{result}");
        assert_eq!(fixture.marks(), [mark]);
    }
}

#[tokio::test]
async fn only_destructive_tools_and_commands_ask_by_annotation() {
    let fixture = Fixture::new(approval(AskFor::Destructive)).await;
    let smashed = fixture
        .call("lamp/smash", json!({"name": "red"}), elicits())
        .await;
    assert_eq!(text(&smashed), "smashed");
    for (tool, arguments) in [
        ("wipe", json!({})),
        ("far/wipe", json!({})),
        ("run_command", json!({"command": "touch command"})),
    ] {
        let asked = fixture.call(tool, arguments, elicits()).await;
        assert_eq!(asked["resultType"], "input_required", "{tool}: {asked}");
    }
    // Faulty arguments reach no person.
    for (tool, arguments) in [
        ("wipe", json!({"pin": []})),
        ("run_command", json!({"command": " "})),
        ("lamp/smash", json!({})),
    ] {
        let refused = fixture.call(tool, arguments, elicits()).await;
        assert!(text(&refused).starts_with("Invalid arguments"), "{refused}");
    }
    assert_eq!(fixture.marks(), ["lamp"]);
}

#[tokio::test]
async fn background_run_is_asked_about_as_the_tool_it_starts() {
    let fixture = Fixture::new(approval(AskFor::Destructive)).await;
    let start = json!({"tool": "wipe", "arguments": {"pin": "1234567"}});
    let refused = fixture.call("runs_start", start.clone(), json!({})).await;
    assert!(
        text(&refused).starts_with("`wipe` was not called"),
        "{refused}"
    );
    let (question, declined) = fixture.answer("runs_start", start.clone(), "decline").await;
    assert_eq!(
        question,
        "May the tool `wipe` run with these arguments?\n- pin: (secret, not shown)"
    );
    assert_eq!(declined["isError"], true);
    assert_eq!(fixture.marks(), [""; 0]);
    let (_, started) = fixture.answer("runs_start", start, "accept").await;
    let run = &started["structuredContent"]["run"];
    assert!(run.is_string(), "{started}");
    let output = async {
        loop {
            let output = fixture
                .call("runs_output", json!({"run": run}), json!({}))
                .await;
            if text(&output) == "wiped" {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(HANG_TIMEOUT, output).await.expect("it runs");
    assert_eq!(fixture.marks(), ["wipe"]);
}

#[tokio::test]
async fn task_asks_before_it_runs() {
    let fixture = Fixture::new(approval(AskFor::Destructive)).await;
    let capabilities = json!({
        "elicitation": {"form": {}},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    });
    for (action, text_of_result) in [("decline", "declined"), ("accept", "wiped")] {
        let created = fixture.call("later", json!({}), capabilities.clone()).await;
        assert_eq!(created["resultType"], "task", "{created}");
        let id = &created["taskId"];
        let until = async |status: &str| loop {
            let params = json!({"taskId": id});
            let task = fixture
                .request("tasks/get", params, capabilities.clone())
                .await;
            if task["status"] == status {
                return task;
            }
            sleep(Duration::from_millis(10)).await;
        };
        let asked = timeout(HANG_TIMEOUT, until("input_required"))
            .await
            .unwrap();
        assert!(
            asked["inputRequests"]["mcpd/approval"].is_object(),
            "{asked}"
        );
        assert_eq!(fixture.marks(), [""; 0]);
        let answers =
            json!({"taskId": id, "inputResponses": {"mcpd/approval": {"action": action}}});
        fixture
            .request("tasks/update", answers, capabilities.clone())
            .await;
        let ended = timeout(HANG_TIMEOUT, until("completed")).await.unwrap();
        let result = text(&ended["result"]);
        assert!(result.contains(text_of_result), "{ended}");
    }
    assert_eq!(fixture.marks(), ["wipe"]);
}

/// Client on the stateful wire that has been asked about a call.
struct Asked {
    connection: Connection,
    messages: mpsc::Receiver<Bytes>,
    answer: tokio::task::JoinHandle<Option<Bytes>>,
}

async fn ask(server: &Server) -> Asked {
    let (connection, mut messages) = Connection::open(server, ToolNames::Path);
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "0"},
    }});
    assert!(matches!(
        connection.receive(initialize.to_string().as_bytes()),
        Reply::Ready(_)
    ));
    let call =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wipe"}});
    let Reply::Pending(answer) = connection.receive(call.to_string().as_bytes()) else {
        panic!("it waits for the person");
    };
    let answer = tokio::spawn(answer);
    let question = timeout(HANG_TIMEOUT, messages.recv())
        .await
        .unwrap()
        .unwrap();
    let question: Value = serde_json::from_slice(&question).unwrap();
    assert_eq!(question["method"], "elicitation/create");
    Asked {
        connection,
        messages,
        answer,
    }
}

#[tokio::test]
async fn late_answer_runs_nothing() {
    let mut settings = approval(AskFor::Destructive);
    settings.timeout = Duration::from_millis(50);
    let fixture = Fixture::new(settings).await;
    let mut asked = ask(&fixture.server).await;
    let answer = timeout(HANG_TIMEOUT, asked.answer).await.unwrap().unwrap();
    let answer: Value = serde_json::from_slice(&answer.unwrap()).unwrap();
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(
        text(&answer["result"]),
        "`wipe` was not called: a person was asked to approve it, and there was no answer within 50ms."
    );
    let withdrawn = timeout(HANG_TIMEOUT, asked.messages.recv()).await.unwrap();
    let withdrawn: Value = serde_json::from_slice(&withdrawn.unwrap()).unwrap();
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    let late = r#"{"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}}"#;
    asked.connection.receive(late.as_bytes());
    // On the stateless wire the limit is whole seconds.
    let question = fixture.call("wipe", json!({}), elicits()).await;
    sleep(Duration::from_millis(2100)).await;
    let params = json!({
        "name": "wipe",
        "arguments": {},
        "inputResponses": {"mcpd/approval": {"action": "accept"}},
        "requestState": question["requestState"],
    });
    let refused = fixture.request("tools/call", params, elicits()).await;
    assert!(text(&refused).contains("no answer within"), "{refused}");
    assert_eq!(fixture.marks(), [""; 0]);
}

#[tokio::test]
async fn disconnected_client_runs_nothing() {
    let fixture = Fixture::new(approval(AskFor::Destructive)).await;
    let asked = ask(&fixture.server).await;
    asked.connection.close();
    let answer = timeout(HANG_TIMEOUT, asked.answer).await.unwrap().unwrap();
    let answer: Value = serde_json::from_slice(&answer.unwrap()).unwrap();
    assert!(text(&answer["result"]).ends_with("the client is disconnected."));
    // One that drops the connection reads nothing more.
    let asked = ask(&fixture.server).await;
    drop(asked.connection);
    let answer = timeout(HANG_TIMEOUT, asked.answer).await.unwrap();
    assert!(answer.unwrap().is_none());
    assert_eq!(fixture.marks(), [""; 0]);
}

#[tokio::test]
async fn reload_changes_approval_and_forgets_what_may_not_be_remembered() {
    let mut settings = approval(AskFor::Destructive);
    settings.remember = Remember::For(Duration::from_secs(900));
    let fixture = Fixture::new(settings.clone()).await;
    let asked = fixture.call("wipe", json!({}), elicits()).await;
    let params = json!({
        "name": "wipe",
        "arguments": {},
        "inputResponses": {"mcpd/approval": {"action": "accept", "content": {"remember": "tool"}}},
        "requestState": asked["requestState"],
    });
    fixture.request("tools/call", params, elicits()).await;
    let again = fixture.call("wipe", json!({}), json!({})).await;
    assert_eq!(text(&again), "wiped");
    let marks = fixture.directory.path().join("marks");
    let reload = |approval: Approval| {
        let policy = policy(approval, marks.to_str().unwrap());
        fixture
            .server
            .reload(Settings::default().policy(policy))
            .unwrap();
    };
    settings.remember = Remember::Never;
    reload(settings);
    let refused = fixture.call("wipe", json!({}), json!({})).await;
    assert_eq!(refused["isError"], true, "{refused}");
    reload(approval(AskFor::Never));
    let wiped = fixture.call("wipe", json!({}), json!({})).await;
    assert_eq!(text(&wiped), "wiped");
}

#[tokio::test]
async fn audit_log_records_each_step() {
    let logs = tempfile::tempdir().unwrap();
    let file = logs.path().join("audit.jsonl");
    let mut options = Options::default();
    options.mode = Mode::Require;
    let audit = Audit::new(&file, options).unwrap();
    let mut settings = approval(AskFor::Destructive);
    settings.remember = Remember::For(Duration::from_secs(900));
    let fixture = Fixture::with(settings, |server| server.audit(audit.clone())).await;
    fixture.call("wipe", json!({}), json!({})).await;
    fixture.answer("wipe", json!({}), "decline").await;
    fixture.answer("wipe", json!({}), "accept").await;
    fixture.server.shutdown().await;
    drop((fixture, audit));
    let records = fs::read_to_string(file).unwrap();
    let records = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let steps: Vec<_> = records
        .filter(|record: &Value| record["event"] == "end")
        .map(|record| format!("{} {}", record["approval"], record["outcome"]))
        .collect();
    assert_eq!(
        steps[..5],
        [
            r#""refused" "no-approval""#,
            r#""asked" "input-required""#,
            r#""declined" "no-approval""#,
            r#""asked" "input-required""#,
            r#""granted" "success""#,
        ]
    );
}
