//! Faults of native tools, which affect their own callers only.

use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use mcpd_server::policy::{Access, CallPattern};
use mcpd_server::transport::stdio::{self, Options};
use mcpd_server::{CallContext, Connection, Principal, Reply, Server, ToolNames};
use serde_json::{Value, json};

/// Far longer than any step here; only a hang reaches it.
const HANG_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn call(tool: &str, meta: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": {"name": tool, "_meta": meta}})
}

fn ping() -> Value {
    json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
}

fn panic_on_purpose() {
    panic!("on purpose");
}

/// Checks that a panic of a tool is an internal error of its own request, and that the next
/// request is answered.
#[track_caller]
fn check_panic(tool: &str, meta: &Value) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let _runtime = runtime.enter();
    let server = Server::builder()
        .tool("at_once", "Panics.", |_: Nothing, _: CallContext| {
            panic_on_purpose();
            async { "" }
        })
        .tool("later", "Panics.", async |_: Nothing, _: CallContext| {
            tokio::task::yield_now().await;
            panic_on_purpose();
            ""
        })
        .start()
        .expect("starts");
    let (connection, _messages) = Connection::open(&server, ToolNames::Path);
    for _ in 0..2 {
        let answer = match connection.receive(call(tool, meta.clone()).to_string().as_bytes()) {
            Reply::Ready(answer) => Some(answer),
            Reply::Pending(answer) => {
                let answer = async { tokio::time::timeout(HANG_TIMEOUT, answer).await };
                runtime.block_on(answer).expect("an answer")
            }
            Reply::Nothing => None,
        };
        let answer: Value = serde_json::from_slice(&answer.expect("an answer")).expect("JSON");
        assert_eq!(answer["id"], tool);
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
    }
}

#[test]
fn panic_is_an_internal_error_on_both_wires() {
    let stateless = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for tool in ["at_once", "later"] {
        check_panic(tool, &json!({}));
        check_panic(tool, &stateless);
    }
}

#[tokio::test]
async fn native_tool_and_resource_know_the_caller() {
    let server = Server::builder()
        .tool(
            "who",
            "Says who.",
            async |_: Nothing, context: CallContext| context.principal().name().to_owned(),
        )
        .resource("kit://who", "kit/who", "Says who.", async |context| {
            context.principal().name().to_owned()
        })
        .start()
        .expect("starts");
    let (connection, _messages) =
        Connection::open_for(Principal::new("ada"), &server, ToolNames::Path);
    let read = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "kit://who"}});
    for (request, found) in [
        (call("who", json!({})), "/result/content/0/text"),
        (read, "/result/contents/0/text"),
    ] {
        let Reply::Pending(answer) = connection.receive(request.to_string().as_bytes()) else {
            panic!("it takes a turn of the runtime");
        };
        let answer = tokio::time::timeout(HANG_TIMEOUT, answer).await;
        let answer = answer.expect("an answer").expect("an answer");
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(answer.pointer(found), Some(&json!("ada")), "{answer}");
    }
}

#[tokio::test]
async fn invalid_native_resource_prevents_the_start() {
    for (uri, name, refused) in [
        (
            "state",
            "state",
            "serve the resource `state`: a URI must begin with a scheme",
        ),
        (
            "kit://state",
            "kit//state",
            "serve the resource `kit://state`: its name: the path has an empty segment",
        ),
    ] {
        let server = Server::builder().resource(uri, name, "", async |_| "");
        let error = server.start().expect_err("it can't be served");
        assert_eq!(error.to_string(), refused);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn computing_tool_does_not_delay_other_responses() {
    let (release, released) = mpsc::channel();
    let released = Mutex::new(released);
    let server = Server::builder()
        // Blocks its thread, like a computation.
        .tool("compute", "Computes.", move |_: Nothing, _: CallContext| {
            let released = released.lock().expect("one call");
            let answer = released
                .recv_timeout(HANG_TIMEOUT)
                .map_err(|error| error.to_string());
            async move { answer }
        })
        .start()
        .expect("starts");
    let (server_input, mut input) = std::io::pipe().expect("a pipe");
    let (output, server_output) = std::io::pipe().expect("a pipe");
    server.catalog_ready().await;
    let serving = tokio::spawn(async move {
        stdio::serve(&server, server_input, server_output, Options::default()).await
    });
    let client = tokio::task::spawn_blocking(move || {
        let messages = format!("{}\n{}\n", call("compute", json!({})), ping());
        input
            .write_all(messages.as_bytes())
            .expect("the server reads");
        let mut lines = BufReader::new(output).lines();
        let mut receive = || -> Value {
            let line = lines.next().expect("an answer").expect("readable");
            serde_json::from_str(&line).expect("JSON")
        };
        assert_eq!(receive()["id"], "ping");
        release.send("computed").expect("it waits");
        assert_eq!(receive()["result"]["content"][0]["text"], "computed");
    });
    tokio::time::timeout(HANG_TIMEOUT, client)
        .await
        .expect("both are answered")
        .expect("no panic");
    serving.await.expect("no panic").expect("no error");
}

/// Checks a client that subscribes to two resources, one of which it may read.
async fn check_hidden(meta: Value, method: &str, params: impl Fn(&str) -> Value) {
    let server = Server::builder()
        .resource("lamp://hall", "lamp/hall", "A lamp.", async |_| "on")
        .resource("lamp://vault", "lamp/vault", "A lamp.", async |_| "on")
        .start()
        .expect("starts");
    server.catalog_ready().await;
    let hall = CallPattern::default().tool("lamp/hall").expect("a pattern");
    let principal = Principal::new("ada").with_access(Access::default().allow_only([hall]));
    let (connection, mut messages) = Connection::open_for(principal, &server, ToolNames::Path);
    let mut heard = async || {
        let message = tokio::time::timeout(HANG_TIMEOUT, messages.recv()).await;
        String::from_utf8_lossy(&message.expect("a message").expect("a message")).into_owned()
    };
    // The last does not exist, so it is no secret.
    for uri in ["lamp://hall", "lamp://vault", "lamp://yard"] {
        let mut params = params(uri);
        params["_meta"] = meta.clone();
        let request = json!({"jsonrpc": "2.0", "id": uri, "method": method, "params": params});
        match connection.receive(request.to_string().as_bytes()) {
            Reply::Pending(listening) => {
                tokio::spawn(listening);
                assert!(heard().await.contains("acknowledged"));
            }
            Reply::Ready(_) | Reply::Nothing => {}
        }
    }
    for uri in ["lamp://vault", "lamp://hall"] {
        server.notify_resource_updated(uri);
    }
    assert!(heard().await.contains("lamp://hall"));
    for uri in ["lamp://vault", "lamp://yard"] {
        server.notify_resource_updated(uri);
    }
    assert!(heard().await.contains("lamp://yard"));
}

#[tokio::test]
async fn subscription_to_a_denied_resource_stays_silent() {
    let stateless = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let listen = |uri: &str| json!({"notifications": {"resourceSubscriptions": [uri]}});
    check_hidden(stateless, "subscriptions/listen", listen).await;
    let subscribe = |uri: &str| json!({"uri": uri});
    check_hidden(json!({}), "resources/subscribe", subscribe).await;
}
