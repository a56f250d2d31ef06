//! OpenTelemetry spans and their traces: what a collector receives, what it must not receive, and
//! that a dead collector delays nothing.

use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use mcpd_tests::{Daemon, Pipes, Sandbox, binary, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{Server as _, call, text};

mod collector;

use collector::{Collector, Span};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
/// Text that no span may contain.
const SECRET: &str = "hunter2";
/// Script that prints its trace, fails on demand, and logs a private text.
const SCRIPT: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
    echo '{}'
    echo '{"with": {"description": "Anything.", "required": true, "value_type": "string"}}' >&2
    exit
fi
echo "hunter2" >&2
echo "$TRACEPARENT $TRACESTATE $BAGGAGE"
[ "$MCPD_OPT_with" != failure-hunter2 ] || exit 4
[ "$MCPD_OPT_with" != patience ] || { touch "${0%/*}/../../started"; sleep 1000; }
"#;

fn sandbox() -> Sandbox {
    Sandbox::new().with_script("math/add", SCRIPT)
}

/// Returns the sandbox of the script with spans enabled, which are exported at once.
fn sandbox_with_spans(collector: &Collector) -> Sandbox {
    sandbox()
        .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)
        .with_variable("OTEL_BSP_SCHEDULE_DELAY", "50")
}

/// Returns the `traceparent` of the caller, sampled or not.
fn parent(flags: &str) -> String {
    format!("00-{TRACE}-{CALLER}-{flags}")
}

/// Builds a call whose metadata make it part of the caller's trace.
fn traced_call(with: &str, flags: &str) -> Value {
    let mut message = call("math_add", json!({"with": with}));
    message["params"]["_meta"] =
        json!({"traceparent": parent(flags), "tracestate": "a=b", "baggage": "user=ann"});
    message
}

/// Checks the attributes of a span and its status. Times may have any value.
#[track_caller]
fn check(span: &Span, attributes: &[(&str, &str)]) {
    let has_failed = attributes.iter().any(|(name, _)| *name == "error.type");
    assert_eq!(span.has_failed, has_failed, "{span:?}");
    let mut found = span.attributes.clone();
    found.retain(|name, value| {
        let is_time = name.ends_with("_seconds");
        assert!(!is_time || value.parse::<f64>().unwrap() >= 0.0, "{span:?}");
        !is_time
    });
    let found: Vec<_> = found
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    assert_eq!(found, attributes, "{}", span.name);
}

#[test]
fn a_call_over_http_is_part_of_its_callers_trace() {
    let collector = Collector::start();
    let sandbox = sandbox_with_spans(&collector)
        .with_variable("OTEL_EXPORTER_OTLP_HEADERS", "x-team=tools")
        .with_variable(
            "OTEL_RESOURCE_ATTRIBUTES",
            "deployment.environment.name=test",
        );
    let daemon = Daemon::start(&sandbox, &[]);
    let client = daemon.client().with_header("traceparent", &parent("01"));
    let client = client
        .with_header("tracestate", "a=b")
        .with_header("baggage", "user=ann");
    let message = call("math/add", json!({"with": SECRET})).to_string();
    let (_, answer) = client.post(&message).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let request = collector.span("tools/call math/add");
    let run = collector.span("run math/add");
    assert_eq!((&*request.trace, &*request.parent), (TRACE, CALLER));
    assert_eq!((&*run.trace, &run.parent), (TRACE, &request.id));
    assert!(request.is_of_server && !run.is_of_server);
    let told = format!("00-{TRACE}-{}-01 a=b user=ann", run.id);
    assert_eq!(text(&answer["result"]), told);
    check(
        &request,
        &[
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "math/add"),
            ("jsonrpc.request.id", "1"),
            ("mcp.method.name", "tools/call"),
            ("mcp.protocol.version", "2025-03-26"),
            ("network.protocol.name", "http"),
            ("network.transport", "tcp"),
        ],
    );
    check(&run, &[("process.exit.code", "0")]);
    assert_eq!(run.resource["service.name"], "mcpd");
    assert_eq!(run.resource["deployment.environment.name"], "test");
    let everything = collector.text();
    assert!(everything.starts_with("POST /v1/traces ") && everything.contains("x-team: tools"));
    assert!(!everything.contains(SECRET), "{everything}");
}

#[test]
fn a_request_of_a_session_names_it() {
    let collector = Collector::start();
    let daemon = Daemon::start(&sandbox_with_spans(&collector), &[]);
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let opened = daemon
        .client()
        .exchange("POST /mcp", &initialize.to_string());
    let (head, _) = opened.unwrap();
    let session = head.split("mcp-session-id: ").nth(1).unwrap();
    let session = session.split("\r\n").next().unwrap();
    let client = daemon.client().with_header("mcp-session-id", session);
    let list = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"});
    assert_eq!(client.post(&list.to_string()).unwrap().0, 200);
    check(
        &collector.span("tools/list"),
        &[
            ("jsonrpc.request.id", "7"),
            ("mcp.method.name", "tools/list"),
            ("mcp.protocol.version", "2025-11-25"),
            ("mcp.session.id", session),
            ("network.protocol.name", "http"),
            ("network.transport", "tcp"),
        ],
    );
}

#[test]
fn span_of_a_failure_has_its_kind_without_details() {
    let collector = Collector::start();
    let sandbox = sandbox_with_spans(&collector).with_variable("OTEL_SERVICE_NAME", "calculator");
    let mut pipes = Pipes::start(&sandbox, &[]);
    let answer = pipes.exchange(&traced_call("failure-hunter2", "01"));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let run = collector.span("run math/add");
    check(
        &run,
        &[("error.type", "not-found"), ("process.exit.code", "4")],
    );
    assert_eq!(run.resource["service.name"], "calculator");
    let request = collector.span("tools/call math/add");
    assert_eq!((&*request.trace, &*request.parent), (TRACE, CALLER));
    assert_eq!(request.attributes["error.type"], "tool_error");
    assert_eq!(request.attributes["network.transport"], "pipe");
    // A span name contains neither an unknown tool nor an unknown method.
    let invalid = json!({"jsonrpc": "2.0", "id": 1, "method": SECRET});
    for message in [&call(SECRET, json!({})), &invalid] {
        assert!(pipes.exchange(message)["error"].is_object());
    }
    let unknown = collector.span("tools/call");
    assert_eq!((unknown.parent.as_str(), unknown.trace.len()), ("", 32));
    check(
        &unknown,
        &[
            ("error.type", "-32602"),
            ("gen_ai.operation.name", "execute_tool"),
            ("jsonrpc.request.id", "1"),
            ("mcp.method.name", "tools/call"),
            ("mcp.protocol.version", "2025-11-25"),
            ("network.transport", "pipe"),
            ("rpc.response.status_code", "-32602"),
        ],
    );
    assert_eq!(collector.span("_OTHER").attributes["error.type"], "-32601");
    assert!(!collector.text().contains(SECRET), "{}", collector.text());
}

#[test]
fn calls_cancelled_by_the_shutdown_are_exported() {
    let collector = Collector::start();
    let sandbox =
        sandbox_with_spans(&collector).with_variable("OTEL_BSP_SCHEDULE_DELAY", "1000000");
    let mut pipes = Pipes::start(&sandbox, &[]);
    pipes.send(traced_call("patience", "01").to_string().as_bytes());
    eventually("the start of the script", || {
        sandbox.path().join("started").exists().then_some(())
    });
    assert_eq!(collector.spans().len(), 0);
    pipes.close_input();
    assert_eq!(pipes.wait(), 0);
    let mut spans = collector.spans();
    spans.sort_by(|a, b| a.name.cmp(&b.name));
    let kinds = spans
        .iter()
        .map(|span| (&*span.name, &*span.attributes["error.type"]));
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        [
            ("run math/add", "cancelled"),
            ("tools/call math/add", "cancelled")
        ]
    );
}

#[test]
fn unsampled_trace_is_forwarded_without_export() {
    let collector = Collector::start();
    let sandbox = sandbox_with_spans(&collector);
    let mut pipes = Pipes::start(&sandbox, &[]);
    let answer = pipes.exchange(&traced_call("", "00"));
    let told = text(&answer["result"]);
    assert!(told.starts_with(&format!("00-{TRACE}-")), "{told}");
    assert!(
        told.ends_with("-00 a=b user=ann") && !told.contains(CALLER),
        "{told}"
    );
    pipes.close_input();
    assert_eq!(pipes.wait(), 0);
    assert_eq!(collector.spans().len(), 0);
}

#[test]
fn endpoint_receives_the_trace() {
    let collector = Collector::start();
    let sandbox = sandbox_with_spans(&collector);
    let config = r#"[[endpoint]]
command = ["sh", "-c", '''read -r request
case $request in
*list_tools*) echo '{"type": "result", "tools": [{"name": "one"}]}' ;;
*) printf '{"type": "result", "result": {"stdout": "%s", "exit_code": 0}}' "$TRACEPARENT" ;;
esac''']
prefix = "far"
"#;
    fs::write(sandbox.path().join("mcpd.toml"), config).unwrap();
    let mut pipes = Pipes::start(&sandbox, &["--config", "mcpd.toml"]);
    let told = pipes.call("far/one", json!({}));
    let run = collector.span("run far/one");
    assert_eq!(text(&told), format!("00-{}-{}-01", run.trace, run.id));
    assert_eq!(run.parent, collector.span("tools/call far/one").id);
}

#[test]
fn a_call_of_an_upstream_server_goes_on_in_its_spans() {
    let collector = Collector::start();
    let sandbox = sandbox_with_spans(&collector);
    let command = json!([binary(), "stdio", sandbox.path().join("scripts")]);
    let config = format!("[[upstream]]\nname = \"far\"\ncommand = {command}\n");
    fs::write(sandbox.path().join("mcpd.toml"), config).unwrap();
    let mut pipes = Pipes::start(&sandbox, &["--config", "mcpd.toml"]);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    eventually("the upstream server is listed", || {
        let listed = pipes.exchange(&list).to_string();
        listed.contains("far_math_add").then_some(())
    });
    let result = pipes.call("far/math_add", json!({"with": "failure-hunter2"}));
    assert_eq!(result["isError"], true);

    let in_front = collector.span("tools/call far/math_add");
    let outgoing = collector.span("tools/call math_add");
    let behind = collector.span("tools/call math/add");
    let run = collector.span("run math/add");
    assert!(outgoing.is_of_client && in_front.is_of_server && behind.is_of_server);
    assert_eq!(outgoing.parent, in_front.id);
    assert_eq!(behind.parent, outgoing.id);
    assert_eq!(run.trace, in_front.trace);
    check(
        &outgoing,
        &[
            ("error.type", "tool_error"),
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "math_add"),
            ("mcp.method.name", "tools/call"),
        ],
    );
    assert!(!collector.text().contains(SECRET));
}

/// Returns whether this process has an exporter thread.
fn has_exporter(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let mut names =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.any(|name| name.starts_with("OpenTelemetry"))
}

#[test]
fn trace_is_forwarded_unchanged_without_an_exporter() {
    let collector = Collector::start();
    let everywhere = sandbox_with_spans(&collector);
    assert!(has_exporter(Daemon::start(&everywhere, &[]).id()));
    let disabled = sandbox_with_spans(&collector).with_variable("OTEL_SDK_DISABLED", "true");
    for sandbox in [sandbox(), disabled] {
        let daemon = Daemon::start(&sandbox, &[]);
        let client = daemon.client().with_header("traceparent", &parent("01"));
        let message = call("math/add", json!({"with": ""})).to_string();
        let (_, answer) = client.post(&message).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(text(&answer["result"]).trim(), parent("01"));
        assert!(!has_exporter(daemon.id()));
    }
    assert_eq!(collector.spans().len(), 0);
}

#[test]
fn lost_collector_delays_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = listener.local_addr().unwrap().to_string();
    // No collector listens at the second address.
    for address in [&silent, "127.0.0.1:1"] {
        let sandbox = sandbox()
            .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{address}"))
            .with_variable("OTEL_EXPORTER_OTLP_TIMEOUT", "2000")
            .with_variable("OTEL_BSP_SCHEDULE_DELAY", "10")
            .with_variable("OTEL_BSP_MAX_QUEUE_SIZE", "4");
        let mut daemon = Daemon::start(&sandbox, &[]);
        // These exceed the queue. If only every second call waited for the collector, the time
        // limit would be exceeded.
        let since = Instant::now();
        for _ in 0..40 {
            daemon.call("math_add", json!({"with": ""}));
        }
        assert!(since.elapsed() < Duration::from_secs(40));
        let told = daemon.wait_for_line("span collector is unreachable");
        assert!(told.contains("spans are lost"), "{told}");
        daemon.signal(Signal::TERM);
        let since = Instant::now();
        let (code, log) = daemon.wait();
        assert_eq!(code, 0, "{log}");
        assert!(since.elapsed() < Duration::from_secs(20), "{log}");
        assert!(!log.contains("collector"), "told more than once: {log}");
    }
}

#[test]
fn unusable_exporter_is_reported_and_mcpd_serves() {
    let sandbox = sandbox()
        .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317")
        .with_variable("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let mut daemon = Daemon::start(&sandbox, &[]);
    let told = daemon.announcement();
    assert!(
        told.contains(
            "span export is disabled: failed to use the protocol `grpc`: only `http/protobuf`"
        ),
        "{told}"
    );
    daemon.call("math_add", json!({"with": ""}));
}
