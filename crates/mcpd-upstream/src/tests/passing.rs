//! Pass-through: lists, results and notifications of a server arrive unchanged.

use futures_util::FutureExt as _;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use super::server::tool;
use super::{Client, Fixture, REVISIONS, Server, text, upstream};

async fn serve(tools: &[&str]) -> (Server, Fixture) {
    let server = Server::new(ProtocolVersion::V_2026_07_28, tools);
    let fixture = Fixture::of(&server).await;
    (server, fixture)
}

async fn list(client: &Client, method: &str, what: &str) -> Value {
    client.request(method, json!({})).await["result"][what].take()
}

#[tokio::test]
async fn tools_are_listed_under_the_prefix() {
    let (_server, fixture) = serve(&["echo"]).await;
    let client = fixture.client("2025-06-18").await;
    assert_eq!(
        list(&client, "tools/list", "tools").await,
        json!([{
            "name": "ship/echo",
            "title": "ship/echo",
            "description": "Can echo.",
            "inputSchema": {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}},
            "annotations": {"readOnlyHint": true},
            "_meta": {"mcpd/path": "ship/echo", "mcpd/origin": "remote"},
        }])
    );
    assert_eq!(
        list(&client, "prompts/list", "prompts").await,
        json!([{
            "name": "ship/greet",
            "title": "ship/greet",
            "arguments": [{"name": "who", "required": true}],
            "_meta": {"mcpd/path": "ship/greet"},
        }])
    );
    assert_eq!(
        list(&client, "resources/list", "resources").await,
        json!([{"uri": "ship:///log", "name": "the/log", "mimeType": "text/plain"}])
    );
    assert_eq!(
        list(&client, "resources/templates/list", "resourceTemplates").await,
        json!([{"uriTemplate": "ship:///cabin/{number}", "name": "cabins"}])
    );
    fixture.expect_faults(&[]).await;
}

#[tokio::test]
async fn tools_are_filtered_and_placed_as_configured() {
    let server = Server::new(ProtocolVersion::V_2026_07_28, &["echo", "work", "hang"]);
    let wanted = upstream(&server).tools(["e*", "wor?"]).unwrap();
    let fixture = Fixture::new(wanted.clone()).await;
    fixture.expect_tools(&["ship/echo", "ship/work"]).await;
    let fixture = Fixture::new(wanted.clone().prefix("a/b")).await;
    fixture.expect_tools(&["a/b/echo", "a/b/work"]).await;
    let fixture = Fixture::new(wanted.prefix("")).await;
    fixture.expect_tools(&["echo", "work"]).await;
}

#[tokio::test]
async fn result_has_the_revision_of_the_caller() {
    for revision in REVISIONS {
        let server = Server::new(revision, &["echo"]);
        let fixture = Fixture::of(&server).await;
        let arguments = json!({"b": "2", "a": "1"});
        let new = fixture.client("2026-07-28").await;
        let result = new.call("ship/echo", arguments.clone()).await;
        assert_eq!(result["structuredContent"], arguments);
        assert_eq!(result["content"][1]["type"], "audio");
        assert_eq!(result["resultType"], "complete");
        let identity = &result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
        assert_eq!(identity, "mcpd");
        let old = fixture.client("2024-11-05").await;
        let result = old.call("ship/echo", arguments.clone()).await;
        assert_eq!(text(&result), arguments.to_string());
        assert_eq!(result["content"][1]["type"], "text");
        assert_eq!(result.get("resultType"), None);
        assert_eq!(result.get("structuredContent"), None);
    }
}

#[tokio::test]
async fn trace_is_forwarded_without_baggage() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for revision in REVISIONS {
        let server = Server::new(revision.clone(), &["trace"]);
        let fixture = Fixture::of(&server).await;
        let client = fixture.client("2026-07-28").await;
        let traced = json!({
            "name": "ship/trace",
            "_meta": {"traceparent": parent, "tracestate": "a=b", "baggage": "user=ann"},
        });
        for (params, expected) in [
            (
                traced,
                json!({"traceparent": parent, "tracestate": "a=b", "baggage": null}),
            ),
            (
                json!({"name": "ship/trace"}),
                json!({"traceparent": null, "tracestate": null, "baggage": null}),
            ),
        ] {
            let answer = client.request("tools/call", params).await;
            assert_eq!(
                answer["result"]["structuredContent"], expected,
                "{revision}"
            );
        }
    }
}

#[tokio::test]
async fn prompts_and_resources_are_fetched() {
    let (_server, fixture) = serve(&[]).await;
    let client = fixture.client("2026-07-28").await;
    let params = json!({"name": "ship_greet", "arguments": {"who": "you"}});
    let prompt = client.request("prompts/get", params).await;
    let message = &prompt["result"]["messages"][0]["content"]["text"];
    assert_eq!(message, r#"greet: {"who":"you"}"#);
    for uri in ["ship:///log", "ship:///cabin/7"] {
        let read = client.request("resources/read", json!({"uri": uri})).await;
        let contents = &read["result"]["contents"];
        assert_eq!(*contents, json!([{"uri": uri, "text": "read"}]));
    }
}

#[tokio::test]
async fn unknown_resource_has_the_code_of_the_callers_wire() {
    let (_server, fixture) = serve(&[]).await;
    for (revision, code) in [("2025-11-25", -32002), ("2026-07-28", -32602)] {
        let client = fixture.client(revision).await;
        let params = json!({"uri": "ship:///cabin/13"});
        let read = client.request("resources/read", params).await;
        assert_eq!(read["error"]["code"], code, "{revision}");
    }
}

#[tokio::test]
async fn notifications_precede_the_result() {
    for revision in REVISIONS {
        let server = Server::new(revision, &["work"]);
        let fixture = Fixture::of(&server).await;
        let mut client = fixture.client("2026-07-28").await;
        let result = client.call("ship/work", json!({})).await;
        assert_eq!(text(&result), "done");
        let said: Vec<Value> = client
            .messages()
            .iter_mut()
            .map(|m| m["params"].take())
            .collect();
        let step = |step: u8| json!({"progressToken": 7, "progress": step, "total": 3, "message": format!("step {step}")});
        let log = json!({"level": "warning", "logger": "ship/work", "data": "worked"});
        assert_eq!(said, [step(1), step(2), step(3), log]);
    }
}

#[tokio::test]
async fn notifications_reach_no_other_caller() {
    let (server, fixture) = serve(&["hang", "wait"]).await;
    let mut first = fixture.client("2026-07-28").await;
    let mut second = fixture.client("2026-07-28").await;
    let params = |name: &str| json!({"name": name});
    let hang = first.send(1, "tools/call", params("ship/hang"));
    let wait = second.send(1, "tools/call", params("ship/wait"));
    let both = async {
        server.wait_for_hang().await;
        server.wait_for_hang().await;
        server.release();
    };
    let (result, ()) = tokio::select! {
        _ = hang => panic!("it hangs"),
        ended = async { tokio::join!(wait, both) } => ended,
    };
    assert_eq!(text(&result.unwrap()["result"]), "done");
    assert!(first.messages().is_empty() && second.messages().is_empty());
}

#[tokio::test]
async fn dropped_call_is_cancelled() {
    for revision in REVISIONS {
        let server = Server::new(revision, &["hang"]);
        let fixture = Fixture::of(&server).await;
        let client = fixture.client("2026-07-28").await;
        let call = client.send(1, "tools/call", json!({"name": "ship/hang"}));
        tokio::select! {
            _ = call => panic!("it hangs"),
            () = server.wait_for_hang() => {}
        }
        let cancelled = tokio::time::timeout(super::HANG_TIMEOUT, server.wait_for_cancel());
        cancelled.await.expect("cancelled");
    }
}

#[tokio::test]
async fn list_change_is_announced() {
    for revision in REVISIONS {
        let server = Server::new(revision, &["echo"]);
        let fixture = Fixture::of(&server).await;
        let mut client = fixture.client("2025-11-25").await;
        server.change(vec![tool("echo"), tool("work")]).await;
        let told = tokio::time::timeout(super::HANG_TIMEOUT, client.messages.recv());
        let told: Value = serde_json::from_slice(&told.await.unwrap().unwrap()).unwrap();
        assert_eq!(told["method"], "notifications/tools/list_changed");
        fixture.expect_tools(&["ship/echo", "ship/work"]).await;
        assert!(client.messages.recv().now_or_never().is_none(), "told once");
    }
}
