//! rmcp, the official Rust SDK.

use std::time::Duration;

use mcpd_tests::{Daemon, Sandbox};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, JsonObject, ProtocolVersion, ReadResourceRequestParams,
};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde_json::{Value, json};

use crate::roots;

const PATIENCE: Duration = Duration::from_secs(60);
const HOSTILE_NAME: &str = "O'Brien \"x\" $(id) \\ `id` é\u{2028} \n";

/// Keeps a text between calls.
const REMEMBER: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Remembers a text.", "state": true}'
  echo '{"text": {"description": "The text.", "required": true, "value_type": "string"}}' >&2
  exit 0
fi
if [ "$1" = --state ]; then
  exec cat text
fi
printf %s "$MCPD_OPT_text" >text
"#;

type Client = RunningService<RoleClient, ()>;

/// One way to begin a conversation, and the revision it must come to.
type Beginning = (ClientLifecycleMode, ProtocolVersion);

/// With a handshake.
fn stateful() -> Beginning {
    (
        ClientLifecycleMode::Initialize,
        ProtocolVersion::V_2025_11_25,
    )
}

/// With `server/discover`, and everything else in every request.
fn stateless() -> Beginning {
    let revision = ProtocolVersion::V_2026_07_28;
    let preferred_versions = vec![revision.clone()];
    (
        ClientLifecycleMode::Discover { preferred_versions },
        revision,
    )
}

async fn over_stdio((lifecycle, revision): Beginning) {
    let sandbox = Sandbox::new().with_script("remember", REMEMBER);
    let [examples, scripts] = roots();
    let command = sandbox.command(&["stdio", "scripts", &examples, &scripts]);
    let transport = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
    check(().serve_with_lifecycle(transport, lifecycle), revision).await;
}

async fn over_http((lifecycle, revision): Beginning) {
    let sandbox = Sandbox::new().with_script("remember", REMEMBER);
    let daemon = Daemon::start(&sandbox, &roots().each_ref().map(String::as_str));
    let config = StreamableHttpClientTransportConfig::with_uri(daemon.url())
        .auth_header(daemon.token().unwrap());
    let transport = StreamableHttpClientTransport::from_config(config);
    check(().serve_with_lifecycle(transport, lifecycle), revision).await;
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("an answer before the deadline")
}

/// Lists, calls, reads state and provokes errors.
async fn check(
    client: impl Future<Output = Result<Client, ClientInitializeError>>,
    revision: ProtocolVersion,
) {
    let client = within(client).await.expect("the server agrees");
    let server = client
        .peer_info()
        .expect("the server has introduced itself");
    assert_eq!(server.protocol_version, revision);

    let tools = within(client.list_all_tools()).await.expect("a list");
    assert!(
        tools.iter().any(|tool| tool.name == "math_calc"),
        "{tools:?}"
    );

    let greeting = call(&client, "greet", json!({"name": HOSTILE_NAME})).await;
    assert_eq!(text(&greeting), format!("Hello, {HOSTILE_NAME}!"));
    assert_ne!(greeting.is_error, Some(true));

    call(&client, "remember", json!({"text": "a note"})).await;
    let read = client.read_resource(ReadResourceRequestParams::new("mcpd://remember/state"));
    let state = serde_json::to_value(within(read).await.expect("a state")).unwrap();
    assert_eq!(state["contents"][0]["text"], "a note");

    let failed = call(&client, "files_read", json!({"path": "/nonexistent/file"})).await;
    assert_eq!(failed.is_error, Some(true));
    let meta = failed.meta.as_ref().expect("it says how the script ended");
    assert_eq!(meta.0["mcpd/exit"]["code"], 4);

    let refused = call(
        &client,
        "math_calc",
        json!({"operation": "power", "a": 1, "b": 2}),
    )
    .await;
    assert_eq!(refused.is_error, Some(true));
    assert!(text(&refused).contains("operation"), "{refused:?}");

    within(client.cancel()).await.expect("the end");
}

async fn call(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    let arguments: JsonObject = serde_json::from_value(arguments).unwrap();
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    within(client.call_tool(params)).await.expect("a result")
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().expect("it is text").text
}

#[tokio::test]
async fn the_stateful_wire_over_stdio() {
    over_stdio(stateful()).await;
}

#[tokio::test]
async fn the_stateful_wire_over_http() {
    over_http(stateful()).await;
}

#[tokio::test]
async fn the_stateless_wire_over_stdio() {
    over_stdio(stateless()).await;
}

#[tokio::test]
async fn the_stateless_wire_over_http() {
    over_http(stateless()).await;
}
