//! Servers that fail, hang, refuse, are rate-limited, or are lost and come back.

use std::time::Duration;

use mcpd_server::source::Secrets;
use rmcp::model::ProtocolVersion;
use serde_json::json;
use tokio::time::Instant;

use super::server::{Stuck, tool};
use super::{Fixture, HANG_TIMEOUT, REVISIONS, Server, text, upstream};

#[tokio::test]
async fn lost_server_is_reconnected() {
    for revision in REVISIONS {
        let server = Server::new(revision, &["echo", "wait"]);
        let fixture = Fixture::of(&server).await;
        let client = fixture.client("2026-07-28").await;
        let call = client.send(1, "tools/call", json!({"name": "ship/wait"}));
        let lose = async {
            server.wait_for_hang().await;
            server.restart();
        };
        let (answer, ()) = tokio::time::timeout(HANG_TIMEOUT, async { tokio::join!(call, lose) })
            .await
            .expect("it is told at once");
        let result = &answer.unwrap()["result"];
        assert_eq!(result["isError"], true);
        assert_eq!(
            text(result),
            "The upstream server `ship` exited before it responded."
        );
        let result = client.call("ship/echo", json!({})).await;
        assert_eq!(result["structuredContent"], json!({}));
        fixture.expect_faults(&[]).await;
    }
}

#[tokio::test]
async fn lost_server_stays_listed_and_is_reported() {
    let server = Server::new(ProtocolVersion::V_2026_07_28, &["echo"]);
    let fixture = Fixture::of(&server).await;
    server.go_down();
    fixture
        .expect_faults(&["exited before `initialize` was complete"])
        .await;
    fixture.expect_tools(&["ship/echo"]).await;
    let client = fixture.client("2026-07-28").await;
    let result = client.call("ship/echo", json!({})).await;
    assert_eq!(
        text(&result),
        "The upstream server `ship` is not connected."
    );
}

#[tokio::test(start_paused = true)]
async fn hanging_server_is_retried_with_backoff() {
    for (stuck, patience) in [(Stuck::Greeting, 60), (Stuck::List, 30)] {
        let server = Server::hanging(stuck);
        let _fixture = Fixture::new(upstream(&server)).await;
        tokio::time::sleep(Duration::from_secs(1200)).await;
        let connected = server.connection_times();
        let pause = |pair: &[Instant]| (pair[1] - pair[0]).as_secs() - patience;
        let pauses: Vec<_> = connected.windows(2).map(pause).collect();
        assert_eq!(pauses[..8], [0, 1, 2, 4, 8, 16, 32, 60], "{stuck:?}");
    }
}

#[tokio::test]
async fn call_timeout_cancels_the_call() {
    let server = Server::new(ProtocolVersion::V_2025_11_25, &["hang"]);
    let upstream = upstream(&server).timeout(Duration::from_millis(300));
    let fixture = Fixture::new(upstream).await;
    let client = fixture.client("2025-06-18").await;
    let result = client.call("ship/hang", json!({})).await;
    assert_eq!(result["isError"], true);
    assert_eq!(
        text(&result),
        "The upstream server `ship` did not respond within 300ms."
    );
    let cancelled = tokio::time::timeout(HANG_TIMEOUT, server.wait_for_cancel());
    cancelled.await.expect("cancelled");
}

#[tokio::test]
async fn refused_call_is_an_error_result() {
    let server = Server::new(ProtocolVersion::V_2026_07_28, &["unheard-of"]);
    let fixture = Fixture::of(&server).await;
    let client = fixture.client("2026-07-28").await;
    let result = client.call("ship/unheard-of", json!({})).await;
    assert_eq!(result["isError"], true);
    assert_eq!(text(&result), "no `unheard-of` here");
}

#[tokio::test]
async fn refusal_and_notifications_are_redacted() {
    let server = Server::new(ProtocolVersion::V_2025_11_25, &["unheard-of", "work"]);
    let mut upstream = upstream(&server);
    upstream.secrets = Secrets::new([
        ("NAME", "unheard-of"),
        ("STEP", "step 2"),
        ("WORD", "worked"),
    ]);
    let fixture = Fixture::new(upstream).await;
    let mut client = fixture.client("2026-07-28").await;
    let result = client.call("ship/[redacted NAME]", json!({})).await;
    assert_eq!(text(&result), "no `[redacted NAME]` here");
    client.call("ship/work", json!({})).await;
    let messages = json!(client.messages()).to_string();
    for (name, secret) in [("STEP", "step 2"), ("WORD", "worked")] {
        let name = format!("[redacted {name}]");
        assert!(messages.contains(&name), "{messages}");
        assert!(!messages.contains(secret), "{messages}");
    }
}

#[tokio::test]
async fn rate_limited_call_is_an_error_with_retry_after() {
    let server = Server::new(ProtocolVersion::V_2026_07_28, &["limit"]);
    let fixture = Fixture::of(&server).await;
    let client = fixture.client("2026-07-28").await;
    let params = json!({"name": "ship/limit", "arguments": {}});
    let answer = client.request("tools/call", params).await;
    let error = json!({"code": 429, "message": "not so fast", "data": {"retryAfterMs": 1500}});
    assert_eq!(answer["error"], error);
}

#[tokio::test]
async fn unservable_entries_are_reported() {
    let server = Server::new(ProtocolVersion::V_2026_07_28, &["echo"]);
    let fixture = Fixture::of(&server).await;
    let mut formless = tool("formless");
    formless["inputSchema"] = json!({});
    server
        .change(vec![tool("a//b"), formless, tool("echo")])
        .await;
    fixture
        .expect_faults(&[
            "has the tool `ship/a//b`, which cannot be served: the path has an empty segment",
            "has the tool `ship/formless`, which cannot be served: its input schema lacks `\"type\": \"object\"`",
        ])
        .await;
    fixture.expect_tools(&["ship/echo"]).await;
}

#[tokio::test]
async fn tools_beyond_the_limit_are_left_out() {
    let server = Server::new(ProtocolVersion::V_2025_11_25, &["echo"]);
    let fixture = Fixture::of(&server).await;
    let many = (0..1500).map(|number| tool(&format!("tool-{number}")));
    server.change(many.collect()).await;
    fixture
        .expect_faults(&["has more than 1000 tools; the rest is not served"])
        .await;
    assert_eq!(fixture.server.catalog().tools().len(), 1000);
}
