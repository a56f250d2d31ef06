//! rmcp, the official Rust SDK.

#![expect(
    deprecated,
    reason = "rmcp marks so what 2026-07-28 has no longer, and logs"
)]

mod listener;

use std::time::Duration;

use mcpd_tests::{Daemon, Sandbox, eventually};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, GetPromptRequestParams, JsonObject, LoggingLevel,
    ProtocolVersion, ReadResourceRequestParams, RequestMetaObject, ServerNotification,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use self::listener::{Arrivals, Listener};
use crate::roots;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Time limit for a script to end after its call was cancelled; by itself it runs longer.
const SCRIPT_END_TIMEOUT: Duration = Duration::from_secs(20);

const HOSTILE_NAME: &str = "O'Brien \"x\" $(id) \\ `id` é\u{2028} \n";

/// Script that keeps a text between calls.
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
const STATE: &str = "mcpd://remember/state";

/// Script that tidies up slowly when it is told to end.
const TIDY: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Runs until it is asked to end."}'
  exit 0
fi
trap 'sleep 0.3; : > tidied; exit' TERM
: > started
while :; do sleep 0.02; done
"#;

type RmcpClient = RunningService<RoleClient, Listener>;

/// The two generations of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    /// Has a handshake.
    Stateful,
    /// Has `server/discover`, and carries everything else in every request.
    Stateless,
}

impl Wire {
    fn revision(self) -> ProtocolVersion {
        match self {
            Self::Stateful => ProtocolVersion::V_2025_11_25,
            Self::Stateless => ProtocolVersion::V_2026_07_28,
        }
    }

    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Stateful => ClientLifecycleMode::Initialize,
            Self::Stateless => ClientLifecycleMode::Discover {
                preferred_versions: vec![self.revision()],
            },
        }
    }
}

/// Client with a server, and the messages that arrived from there.
struct Session {
    wire: Wire,
    client: RmcpClient,
    arrivals: Arrivals,
}

async fn run_over_stdio(wire: Wire) {
    let sandbox = Sandbox::new().with_script("remember", REMEMBER);
    let [examples, scripts] = roots();
    let command = sandbox.command(&["stdio", "scripts", &examples, &scripts]);
    let transport = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
    let (listener, arrivals) = Listener::new();
    let client = listener.serve_with_lifecycle(transport, wire.lifecycle());
    check(wire, client, arrivals).await;
}

async fn run_over_http(wire: Wire) {
    let sandbox = Sandbox::new().with_script("remember", REMEMBER);
    let daemon = Daemon::start(&sandbox, &roots().each_ref().map(String::as_str));
    let config = StreamableHttpClientTransportConfig::with_uri(daemon.url())
        .auth_header(daemon.token().unwrap());
    // rmcp's HTTP client requires a provider of cryptography even for plain HTTP.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let transport = StreamableHttpClientTransport::from_config(config);
    let (listener, arrivals) = Listener::new();
    let client = listener.serve_with_lifecycle(transport, wire.lifecycle());
    check(wire, client, arrivals).await;
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(ANSWER_TIMEOUT, future)
        .await
        .expect("an answer before the deadline")
}

/// Exercises every feature of the client.
async fn check(
    wire: Wire,
    client: impl Future<Output = Result<RmcpClient, ClientInitializeError>>,
    arrivals: Arrivals,
) {
    let client = within(client).await.expect("the server agrees");
    let server = client
        .peer_info()
        .expect("the server has introduced itself");
    assert_eq!(server.protocol_version, wire.revision());
    let mut session = Session {
        wire,
        client,
        arrivals,
    };
    session.calls().await;
    session.errors().await;
    session.reports().await;
    session.state().await;
    session.question().await;
    session.prompt().await;
    session.cancellation().await;
    within(session.client.cancel()).await.expect("the end");
}

impl Session {
    async fn calls(&self) {
        let tools = within(self.client.list_all_tools()).await.expect("a list");
        assert!(
            tools.iter().any(|tool| tool.name == "math_calc"),
            "{tools:?}"
        );
        let greeting = self.call("greet", json!({"name": HOSTILE_NAME})).await;
        assert_eq!(text(&greeting), format!("Hello, {HOSTILE_NAME}!"));
        assert_ne!(greeting.is_error, Some(true));
    }

    async fn errors(&self) {
        let arguments = json!({"path": "/nonexistent/file"});
        let failed = self.call("files_read", arguments).await;
        assert_eq!(failed.is_error, Some(true));
        let meta = failed.meta.as_ref().expect("it says how the script ended");
        assert_eq!(meta.0["mcpd/exit"]["code"], 4);

        let arguments = json!({"operation": "power", "a": 1, "b": 2});
        let refused = self.call("math_calc", arguments).await;
        assert_eq!(refused.is_error, Some(true));
        assert!(text(&refused).contains("operation"), "{refused:?}");
    }

    /// Checks progress and log notifications.
    async fn reports(&mut self) {
        if self.wire == Wire::Stateful {
            let level = SetLevelRequestParams::new(LoggingLevel::Debug);
            within(self.client.set_level(level)).await.expect("consent");
        }
        let worked = self.call("work", json!({})).await;
        assert_eq!(text(&worked), "Worked.");
        for arrival in [
            json!({"progress": [1.0, 2.0, "begun"]}),
            json!({"progress": [2.0, 2.0, "done"]}),
            json!({"log": ["warning", "it takes two steps"]}),
        ] {
            within(self.arrivals.expect(arrival)).await;
        }
    }

    /// Reads, subscribes to and changes a resource.
    async fn state(&mut self) {
        self.call("remember", json!({"text": "a note"})).await;
        let read = self
            .client
            .read_resource(ReadResourceRequestParams::new(STATE));
        let state = json!(within(read).await.expect("a state"));
        assert_eq!(state["contents"][0]["text"], "a note");

        match self.wire {
            Wire::Stateful => {
                let subscribed = self.client.subscribe(SubscribeRequestParams::new(STATE));
                within(subscribed).await.expect("consent");
                self.call("remember", json!({"text": "another"})).await;
                within(self.arrivals.expect(json!({"updated": STATE}))).await;
            }
            Wire::Stateless => {
                let filter = SubscriptionFilter::builder().resource_subscription(STATE);
                let listening = self.client.listen(filter.build());
                let mut updates = within(listening).await.expect("a subscription");
                self.call("remember", json!({"text": "another"})).await;
                let update = within(updates.next()).await.expect("an update");
                let Some(ServerNotification::ResourceUpdatedNotification(update)) = update else {
                    panic!("{update:?}")
                };
                assert_eq!(update.params.uri, STATE);
            }
        }
    }

    /// Calls a script that asks a question, and answers it.
    async fn question(&self) {
        let booked = self.call("book", json!({})).await;
        assert_eq!(text(&booked), "Booked for Ada.");
    }

    /// Lists, completes and gets a prompt.
    async fn prompt(&self) {
        let prompts = within(self.client.list_all_prompts())
            .await
            .expect("a list");
        assert_eq!(prompts[0].name, "review");
        let completion = self.client.complete_prompt_simple("review", "tone", "f");
        let tones = within(completion).await.expect("a completion");
        assert_eq!(tones, ["friendly", "formal"]);
        let params =
            GetPromptRequestParams::new("review").with_arguments(object(json!({"tone": "formal"})));
        let prompt = json!(within(self.client.get_prompt(params)).await.expect("it"));
        let content = &prompt["messages"][0]["content"];
        assert_eq!(content["text"], "Write a formal review.");
    }

    /// Cancels a call, which ends its script.
    async fn cancellation(&mut self) {
        let number = |arrival: &Value| arrival["log"][1].as_str()?.parse().ok();
        let number = tokio::select! {
            result = self.client.call_tool(self.params("linger", json!({}))) => panic!("{result:?}"),
            number = within(self.arrivals.first(number)) => number,
        };
        let process = Pid::from_raw(number).expect("a number");
        let end = async {
            while test_kill_process(process).is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let end = tokio::time::timeout(SCRIPT_END_TIMEOUT, end).await;
        end.expect("the script has ended before its time");
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let params = self.params(tool, arguments);
        let result = within(self.client.call_tool(params)).await;
        result.expect("a result")
    }

    fn params(&self, tool: &'static str, arguments: Value) -> CallToolRequestParams {
        let mut params = CallToolRequestParams::new(tool).with_arguments(object(arguments));
        if self.wire == Wire::Stateless {
            // A stateless request sets its own log level.
            let mut meta = RequestMetaObject::default();
            meta.set_log_level(LoggingLevel::Debug);
            params.meta = Some(meta);
        }
        params
    }
}

fn object(value: Value) -> JsonObject {
    serde_json::from_value(value).expect("it is an object")
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().expect("it is text").text
}

#[tokio::test]
async fn the_stateful_wire_over_stdio() {
    run_over_stdio(Wire::Stateful).await;
}

#[tokio::test]
async fn the_stateful_wire_over_http() {
    run_over_http(Wire::Stateful).await;
}

#[tokio::test]
async fn the_stateless_wire_over_stdio() {
    run_over_stdio(Wire::Stateless).await;
}

#[tokio::test]
async fn the_stateless_wire_over_http() {
    run_over_http(Wire::Stateless).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn client_exit_lets_the_script_tidy_up() {
    for wire in [Wire::Stateful, Wire::Stateless] {
        let sandbox = Sandbox::new().with_script("tidy", TIDY);
        let command = sandbox.command(&["stdio", "scripts"]);
        let transport = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
        let (listener, _arrivals) = Listener::new();
        let client = within(listener.serve_with_lifecycle(transport, wire.lifecycle()));
        let client = client.await.expect("the server agrees");
        let peer = client.peer().clone();
        let call = tokio::spawn(async move {
            let params = CallToolRequestParams::new("tidy");
            peer.call_tool(params).await
        });
        let exists = |name: &str| sandbox.path().join("scripts").join(name).exists();
        eventually("the start", || exists("started").then_some(()));
        within(client.cancel()).await.expect("no panic");
        eventually("tidied up", || exists("tidied").then_some(()));
        assert!(within(call).await.expect("no panic").is_err());
    }
}
