//! Approval of calls with the official SDKs on both wires: a person accepts, declines, dismisses
//! the question, or answers too late.

use std::fs;
use std::path::Path;
use std::time::Duration;

use mcpd_tests::{Daemon, Sandbox, binary, output_within};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, Implementation, ProtocolVersion,
};
use rmcp::service::RequestContext;
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, ErrorData, RoleClient};
use serde_json::{Map, Value, json};

use crate::programs::{Family, PYTHON, Program, TYPESCRIPT, installed_programs, skip};

/// Time limit of a program.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(120);

/// Script that notes how each of its runs was approved.
const WIPE: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Wipes.", "annotations": {"destructive": true}}'
  echo '{"how": {"description": "How a person answers.", "required": true, "value_type": "string"}}' >&2
  exit 0
fi
echo "$MCPD_OPT_how" >>runs
echo wiped
"#;

/// Answers of the person, with a part of the result of each.
const ANSWERS: [(&str, &str); 4] = [
    ("accept", "wiped"),
    ("decline", "declined"),
    ("cancel", "dismissed without an answer"),
    ("late", "no answer within 1s"),
];

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new().with_script("wipe", WIPE);
    let config = "[approval]\nask = \"destructive\"\ntimeout = 1\n";
    fs::write(sandbox.path().join("approval.toml"), config).unwrap();
    sandbox
}

const ARGUMENTS: [&str; 3] = ["scripts", "--config", "approval.toml"];

/// Checks the results of the calls, by answer, and that only the approved one ran.
#[track_caller]
fn check_results(sandbox: &Sandbox, results: &Value) {
    for (answer, text) in ANSWERS {
        let [is_error, result] = [0, 1].map(|part| &results[answer][part]);
        assert_eq!(*is_error, answer != "accept", "{answer}: {results}");
        assert!(
            result.as_str().unwrap().contains(text),
            "{answer}: {results}"
        );
    }
    let runs = fs::read_to_string(sandbox.path().join("scripts/runs")).unwrap();
    assert_eq!(runs, "accept\n");
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
    check_results(&sandbox, &seen["results"]);
}

/// Client whose person answers as the argument in the question says.
struct Person;

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::from_build_env())
    }

    async fn create_elicitation(
        &self,
        question: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let question = json!(question)["message"].to_string();
        let is_asked = |answer: &str| question.contains(&format!("\\\"{answer}\\\""));
        if is_asked("late") {
            tokio::time::sleep(Duration::from_millis(2500)).await;
        }
        let accepted = ElicitResult::new(ElicitationAction::Accept).with_content(json!({}));
        Ok(match () {
            () if is_asked("decline") => ElicitResult::new(ElicitationAction::Decline),
            () if is_asked("cancel") => ElicitResult::new(ElicitationAction::Cancel),
            () => accepted,
        })
    }
}

async fn check_rmcp(lifecycle: ClientLifecycleMode) {
    let sandbox = sandbox();
    let arguments: Vec<_> = ["stdio"].into_iter().chain(ARGUMENTS).collect();
    let command = sandbox.command(&arguments);
    let transport = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
    let client = Person.serve_with_lifecycle(transport, lifecycle).await;
    let client = client.expect("the server agrees");
    let mut results = Map::new();
    for (answer, _) in ANSWERS {
        let arguments = serde_json::from_value(json!({"how": answer})).unwrap();
        let params = CallToolRequestParams::new("wipe").with_arguments(arguments);
        let result = client.call_tool(params).await.expect("a result");
        let text = &result.content[0].as_text().expect("a text").text;
        let is_error = result.is_error.unwrap_or_default();
        results.insert(answer.to_owned(), json!([is_error, text]));
    }
    check_results(&sandbox, &results.into());
    client.cancel().await.expect("the end");
}

#[tokio::test]
async fn rmcp_on_the_stateful_wire() {
    check_rmcp(ClientLifecycleMode::Initialize).await;
}

#[tokio::test]
async fn rmcp_on_the_stateless_wire() {
    check_rmcp(ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    })
    .await;
}

#[test]
fn python() {
    check_family(PYTHON, "approval.py");
}

#[test]
fn typescript() {
    check_family(TYPESCRIPT, "approval.mjs");
}
