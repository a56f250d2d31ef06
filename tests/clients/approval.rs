//! Approval of calls with the official SDKs on both wires: a person accepts, declines, dismisses
//! the question, or answers too late.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use mcpd_tests::{Daemon, Sandbox, binary, output_within};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities, ClientConfig,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, GetTaskParams,
    Implementation, ProtocolVersion, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::programs::{Family, PYTHON, Program, TYPESCRIPT, installed_programs, skip};

/// Time limit of a program.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(120);
/// Time limit of the records of calls that have ended.
const RECORD_TIMEOUT: Duration = Duration::from_secs(20);
/// Time that a client waits for a call whose question has no answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(3);

/// Revision whose clients repeat a call with the answer.
const STATELESS: &str = "2026-07-28";

/// Script that notes how each of its runs was asked for and approved.
const WIPE: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Wipes.", "annotations": {"destructive": true}, "task": "TASK"}'
  echo '{"way": {"description": "How the call came.", "required": true, "value_type": "string"}, "how": {"description": "How a person answers.", "required": true, "value_type": "string"}}' >&2
  exit 0
fi
echo "$MCPD_OPT_way $MCPD_OPT_how" >>runs
echo wiped
"#;

/// Ways of a call: the tool itself, `call_tool` of a search, and a run in the background.
const WAYS: [&str; 3] = ["call", "search", "run"];

/// Answers of the person, with a part of the result of each.
const ANSWERS: [(&str, &str); 5] = [
    ("accept", "wiped"),
    ("decline", "declined"),
    ("cancel", "dismissed without an answer"),
    ("late", "no answer within 1s"),
    ("never", "no answer within 1s"),
];

/// Steps of the approval in the audit log, by answer.
const STEPS: [&str; 5] = ["granted", "declined", "cancelled", "timed-out", "timed-out"];

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new()
        .with_script("wipe", &WIPE.replace("TASK", "never"))
        .with_script("later", &WIPE.replace("TASK", "required"));
    let config = "[approval]\nask = \"destructive\"\ntimeout = 1\n\
                  [search]\nenabled = true\nalways_listed = [\"wipe\", \"later\"]\n";
    fs::write(sandbox.path().join("approval.toml"), config).unwrap();
    sandbox
}

const ARGUMENTS: [&str; 5] = ["scripts", "--config", "approval.toml", "--enable", "runs"];

/// Checks the results of the calls by way and answer, that only the approved ones ran, and the
/// records of all.
#[track_caller]
fn check_results(sandbox: &Sandbox, is_stateless: bool, results: &Value) {
    for way in WAYS {
        for (answer, text) in ANSWERS {
            let [is_error, result] = [0, 1].map(|part| &results[way][answer][part]);
            assert_eq!(*is_error, answer != "accept", "{way} {answer}: {results}");
            let text = expected_text(is_stateless, answer, text);
            assert!(
                result.as_str().unwrap().contains(text),
                "{way} {answer}: {results}"
            );
        }
    }
    let runs = fs::read_to_string(sandbox.path().join("scripts/runs")).unwrap();
    let expected: String = WAYS.map(|way| format!("{way} accept\n")).concat();
    assert_eq!(runs, expected);
    let steps = steps(is_stateless);
    // A search leaves no record of its own, and a run that begins is recorded as the tool when it
    // has ended.
    let granted = "granted success".to_owned();
    let refused = steps.iter().filter(|step| **step != granted);
    let refused: Vec<_> = refused.cloned().collect();
    check_records(sandbox, "wipe", &[&steps[..], &steps, &[granted]].concat());
    check_records(sandbox, "runs_start", &refused);
    check_records(sandbox, "call_tool", &[]);
}

/// Returns the text of a result: a stateless client that never answers does not call again.
fn expected_text<'a>(is_stateless: bool, answer: &str, text: &'a str) -> &'a str {
    match is_stateless && answer == "never" {
        true => "the client gave up",
        false => text,
    }
}

/// Steps of the approval of one call with each answer, with the outcome of the request.
fn steps(is_stateless: bool) -> Vec<String> {
    let mut steps = Vec::new();
    for ((answer, _), step) in ANSWERS.into_iter().zip(STEPS) {
        if is_stateless {
            steps.push("asked input-required".to_owned());
        }
        match answer {
            "accept" => steps.push("granted success".to_owned()),
            "never" if is_stateless => {}
            _ => steps.push(format!("{step} no-approval")),
        }
    }
    steps
}

/// Checks the records of the calls of `tool` in the audit log.
#[track_caller]
fn check_records(sandbox: &Sandbox, tool: &str, expected: &[String]) {
    let log = sandbox.path().join("state/mcpd/logs/mcp-audit.jsonl");
    let words = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        let word = |name: &str| record[name].as_str().unwrap_or("-").to_owned();
        let is_call = record["event"] == "end" && record["tool"] == tool;
        is_call.then(|| format!("{} {}", word("approval"), word("outcome")))
    };
    let deadline = Instant::now() + RECORD_TIMEOUT;
    loop {
        let log = fs::read_to_string(&log).unwrap_or_default();
        let records: Vec<_> = log.lines().filter_map(words).collect();
        if records.len() >= expected.len() || Instant::now() > deadline {
            return assert_eq!(records, expected);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Runs `file` of the programs of a family with each revision of its newest SDK.
#[track_caller]
fn check_family(family: Family, file: &str) {
    let programs = match installed_programs(family) {
        Ok(programs) => programs,
        Err(reason) => return skip(family, &reason),
    };
    // The first is on the older line of the SDK.
    for program in &programs[1..] {
        for over_http in [false, true] {
            run(program, file, over_http);
        }
    }
}

fn run(program: &Program, file: &str, over_http: bool) {
    let sandbox = sandbox();
    let mut command = sandbox.program(&program.interpreter);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg(Path::new(&program.file).with_file_name(file));
    command.arg(&program.revision);
    let output = match over_http {
        true => {
            let daemon = Daemon::start(&sandbox, &ARGUMENTS);
            command.args(["http", &daemon.url(), daemon.token().unwrap()]);
            output_within(PROGRAM_TIMEOUT, command, b"")
        }
        false => {
            command
                .arg("stdio")
                .arg(binary())
                .arg("stdio")
                .args(ARGUMENTS);
            output_within(PROGRAM_TIMEOUT, command, b"")
        }
    };
    assert!(output.status.success(), "{}", sandbox.transcript(&output));
    let seen: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    check_results(&sandbox, program.revision == STATELESS, &seen["results"]);
}

/// Returns the request of a call in one of the [`WAYS`].
fn request(way: &str, how: &str) -> CallToolRequestParams {
    let arguments = json!({"way": way, "how": how});
    let (tool, arguments) = match way {
        "search" => ("call_tool", json!({"name": "wipe", "arguments": arguments})),
        "run" => (
            "runs_start",
            json!({"tool": "wipe", "arguments": arguments}),
        ),
        _ => ("wipe", arguments),
    };
    let arguments = serde_json::from_value(arguments).unwrap();
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

/// Client whose person answers as the argument in the question says.
struct Person {
    capabilities: ClientCapabilities,
}

impl Person {
    fn new() -> Self {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        Self { capabilities }
    }

    /// Answer to a question, which may take its time.
    async fn answer(question: &str) -> ElicitResult {
        let is_asked = |answer: &str| question.contains(&format!("\"{answer}\""));
        if is_asked("never") {
            std::future::pending::<()>().await;
        }
        if is_asked("late") {
            sleep(Duration::from_millis(2500)).await;
        }
        match () {
            () if is_asked("decline") => ElicitResult::new(ElicitationAction::Decline),
            () if is_asked("cancel") => ElicitResult::new(ElicitationAction::Cancel),
            () => ElicitResult::new(ElicitationAction::Accept).with_content(json!({})),
        }
    }
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(self.capabilities.clone(), Implementation::from_build_env())
    }

    async fn create_elicitation(
        &self,
        question: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let question = json!(question)["message"].as_str().unwrap().to_owned();
        Ok(Self::answer(&question).await)
    }
}

type Connected = RunningService<RoleClient, Person>;

async fn connect(sandbox: &Sandbox, person: Person, lifecycle: ClientLifecycleMode) -> Connected {
    let arguments: Vec<_> = ["stdio"].into_iter().chain(ARGUMENTS).collect();
    let command = sandbox.command(&arguments);
    let transport = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
    let client = person.serve_with_lifecycle(transport, lifecycle).await;
    client.expect("the server agrees")
}

/// Calls a tool, and returns whether the result is an error, and its text.
async fn call(client: &Connected, params: CallToolRequestParams) -> (bool, String) {
    let result = client.call_tool(params).await.expect("a result");
    let text = &result.content[0].as_text().expect("a text").text;
    (result.is_error.unwrap_or_default(), text.clone())
}

/// Returns the result of the tool, which a run has later.
async fn result_of(client: &Connected, way: &str, how: &str) -> (bool, String) {
    let result = timeout(CLIENT_TIMEOUT, call(client, request(way, how))).await;
    let Ok((is_error, text)) = result else {
        return (true, "the client gave up".to_owned());
    };
    if way != "run" || is_error {
        return (is_error, text);
    }
    let started: Value = serde_json::from_str(&text).unwrap();
    let run = async |tool: &'static str| {
        let arguments = serde_json::from_value(json!({"run": started["run"]})).unwrap();
        call(
            client,
            CallToolRequestParams::new(tool).with_arguments(arguments),
        )
        .await
    };
    while run("runs_status").await.1.contains("\"working\"") {
        sleep(Duration::from_millis(100)).await;
    }
    run("runs_output").await
}

async fn check_rmcp(lifecycle: ClientLifecycleMode) {
    let sandbox = sandbox();
    let is_stateless = matches!(lifecycle, ClientLifecycleMode::Discover { .. });
    let client = connect(&sandbox, Person::new(), lifecycle).await;
    let mut results = json!({});
    for way in WAYS {
        for (answer, _) in ANSWERS {
            results[way][answer] = json!(result_of(&client, way, answer).await);
        }
    }
    check_results(&sandbox, is_stateless, &results);
    client.cancel().await.expect("the end");
}

#[tokio::test]
async fn rmcp_on_the_stateful_wire() {
    check_rmcp(ClientLifecycleMode::Initialize).await;
}

fn stateless() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    }
}

#[tokio::test]
async fn rmcp_on_the_stateless_wire() {
    check_rmcp(stateless()).await;
}

/// Returns the task as it is once its state is one of the wanted.
async fn wait_for_task(client: &Connected, id: &str, wanted: &[&str]) -> Value {
    let poll = async {
        loop {
            let task = client.get_task(GetTaskParams::new(id)).await;
            let task = json!(task.expect("the task is known"));
            if wanted.iter().any(|status| task["status"] == *status) {
                return task;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PROGRAM_TIMEOUT, poll).await.expect("it gets there")
}

/// Returns the result of a task that asks, after the answer.
async fn result_of_task(client: &Connected, how: &str) -> (bool, String) {
    let arguments = serde_json::from_value(json!({"way": "task", "how": how})).unwrap();
    let params = CallToolRequestParams::new("later").with_arguments(arguments);
    let created = client.call_tool_once(params).await.expect("a task");
    let CallToolResponse::Task(created) = created else {
        panic!("a task, not {created:?}");
    };
    let id = created.task.task_id;
    let asked = wait_for_task(client, &id, &["input_required"]).await;
    let question = &asked["inputRequests"]["mcpd/approval"]["params"]["message"];
    let answer = Person::answer(question.as_str().expect("a question"));
    let Ok(answer) = timeout(CLIENT_TIMEOUT, answer).await else {
        // It waits, as the client may still answer that the call is declined.
        wait_for_task(client, &id, &["input_required"]).await;
        let cancelled = client.cancel_task(CancelTaskParams::new(&id)).await;
        cancelled.expect("an acknowledgement");
        wait_for_task(client, &id, &["cancelled"]).await;
        return (true, "the client gave up".to_owned());
    };
    let answers = [("mcpd/approval".to_owned(), json!(answer))].into();
    let answered = client.update_task(UpdateTaskParams::new(&id, answers));
    answered.await.expect("an acknowledgement");
    let ended = wait_for_task(client, &id, &["completed", "failed", "cancelled"]).await;
    let result = &ended["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    (result["isError"] == true, text.to_owned())
}

#[tokio::test]
async fn rmcp_with_tasks() {
    let sandbox = sandbox();
    let mut person = Person::new();
    let tasks = ClientCapabilities::builder().enable_tasks().build();
    person.capabilities.extensions = tasks.extensions;
    let client = connect(&sandbox, person, stateless()).await;
    for (answer, text) in ANSWERS {
        let (is_error, result) = result_of_task(&client, answer).await;
        assert_eq!(is_error, answer != "accept", "{answer}: {result}");
        let text = expected_text(true, answer, text);
        assert!(result.contains(text), "{answer}: {result}");
    }
    let runs = fs::read_to_string(sandbox.path().join("scripts/runs")).unwrap();
    assert_eq!(runs, "task accept\n");
    let ends = STEPS[..4]
        .iter()
        .zip(["success", "no-approval", "no-approval", "no-approval"]);
    let mut ends: Vec<_> = ends.map(|(step, end)| format!("{step} {end}")).collect();
    ends.push("asked cancelled".to_owned());
    check_records(&sandbox, "later", &ends);
    client.cancel().await.expect("the end");
}

#[test]
fn python() {
    check_family(PYTHON, "approval.py");
}

#[test]
fn typescript() {
    check_family(TYPESCRIPT, "approval.mjs");
}
