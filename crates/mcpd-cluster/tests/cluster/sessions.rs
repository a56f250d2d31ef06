//! Sessions of an older revision over HTTP, at several fronts: begun at one, continued at another.

use mcpd_server::Principal;
use mcpd_server::transport::http::{self, Auth, Options, Token};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::fixture::{ASKS, EVENT_TIMEOUT, Front, LocalWorker, Scripts, settings, wait_until};
use crate::nats::Nats;

/// Front with its address.
struct HttpFront {
    _front: Front,
    port: u16,
}

impl HttpFront {
    async fn start(nats: &Nats, node: &str) -> Self {
        let front = Front::with_tasks(settings(&nats.url(), node));
        front.wait_for(&["again", "ask", "change", "look"]).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let tokens = ["ada", "bob"].map(|name| Token::new(name, Principal::new(name)));
        let mut options = Options::new(Auth::tokens(tokens));
        options.session_prefix = Some(node.to_owned());
        let server = front.server.clone();
        tokio::spawn(async move { http::serve(&server, listener, options).await });
        Self {
            _front: front,
            port,
        }
    }

    /// Sends a request, and returns the connection that its response comes on.
    async fn send(
        &self,
        method: &str,
        caller: &str,
        session: Option<&str>,
        body: &str,
    ) -> Response {
        let port = self.port;
        let session = session
            .map(|id| format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n"));
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {caller}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Connection: close\r\nContent-Length: {}\r\n{}\r\n",
            body.len(),
            session.unwrap_or_default(),
        );
        let mut stream = TcpStream::connect(("127.0.0.1", port))
            .await
            .expect("a front");
        stream.write_all(head.as_bytes()).await.expect("a front");
        stream.write_all(body.as_bytes()).await.expect("a front");
        Response {
            stream,
            text: String::new(),
        }
    }

    /// Sends a message, and returns the whole response.
    async fn post(&self, caller: &str, session: Option<&str>, message: &Value) -> String {
        let body = message.to_string();
        self.send("POST", caller, session, &body)
            .await
            .whole()
            .await
    }

    /// Begins a session, and returns its id.
    async fn initialize(&self, caller: &str) -> String {
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {"form": {}}},
            "clientInfo": {"name": "test", "version": "1"},
        }});
        let answer = self.post(caller, None, &message).await;
        let head = answer.to_lowercase();
        let start = head.find("mcp-session-id: ").expect("a session") + "mcp-session-id: ".len();
        let id = answer[start..].lines().next().expect("a line");
        id.to_owned()
    }
}

/// Response that comes.
struct Response {
    stream: TcpStream,
    text: String,
}

impl Response {
    async fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let read = timeout(EVENT_TIMEOUT, self.stream.read(&mut bytes)).await;
        let count = read.expect("in time").unwrap_or_default();
        self.text += &String::from_utf8_lossy(&bytes[..count]);
        count > 0
    }

    async fn whole(mut self) -> String {
        while self.read().await {}
        self.text
    }

    /// Reads until the text is there.
    async fn until(&mut self, part: &str) {
        while !self.text.contains(part) {
            assert!(self.read().await, "{}", self.text);
        }
    }
}

fn call(name: &str, id: &str, seconds: &str) -> Value {
    let arguments = json!({"id": id, "seconds": seconds});
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

async fn fronts() -> Option<(Nats, Scripts, LocalWorker, HttpFront, HttpFront)> {
    let nats = Nats::with_jetstream("")?;
    let scripts = Scripts::new();
    scripts.add("ask", r#"{}, "output": "mcp""#, ASKS);
    let worker = LocalWorker::start(&scripts, &nats.url(), "w1");
    let first = HttpFront::start(&nats, "f1").await;
    let second = HttpFront::start(&nats, "f2").await;
    Some((nats, scripts, worker, first, second))
}

#[tokio::test(flavor = "multi_thread")]
async fn session_continues_at_another_front_for_its_owner_alone() {
    let Some((_nats, scripts, _worker, first, second)) = fronts().await else {
        return;
    };
    let id = first.initialize("ada").await;
    assert!(id.starts_with("f1-"), "{id}");
    let done = second
        .post("ada", Some(&id), &call("change", "one", "0"))
        .await;
    assert!(done.contains("did one"), "{done}");
    assert_eq!(scripts.counts("one"), (1, 1));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let mut altered = id.clone();
    let last = altered.pop().expect("an id");
    altered.push(if last == 'A' { 'B' } else { 'A' });
    let renamed = id.replacen("f1-", "f2-", 1);
    for (caller, id) in [
        ("bob", &*id),
        ("ada", &*altered),
        ("ada", &*renamed),
        ("ada", "f1-~AAAA"),
        ("ada", "f1-00000000000000000000000000000000"),
    ] {
        let answer = second.post(caller, Some(id), &list).await;
        assert!(
            answer.starts_with("HTTP/1.1 404"),
            "{caller} {id}: {answer}"
        );
    }
    let ended = second
        .send("DELETE", "ada", Some(&id), "")
        .await
        .whole()
        .await;
    assert!(ended.starts_with("HTTP/1.1 204"), "{ended}");
    let mut answer = String::new();
    for _ in 0..100 {
        answer = first.post("ada", Some(&id), &list).await;
        if answer.starts_with("HTTP/1.1 404") {
            return;
        }
    }
    panic!("{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_and_cancellation_reach_the_front_that_waits() {
    let Some((_nats, scripts, _worker, first, second)) = fronts().await else {
        return;
    };
    let id = first.initialize("ada").await;
    let question = call("ask", "one", "0").to_string();
    let mut asked = first.send("POST", "ada", Some(&id), &question).await;
    asked.until("elicitation/create").await;
    let start = asked.text.find("{\"jsonrpc").expect("a message");
    let line = asked.text[start..].lines().next().expect("a line");
    let question: Value = serde_json::from_str(line).expect("JSON");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"],
        "result": {"action": "accept", "content": {"sure": true}}});
    let accepted = second.post("ada", Some(&id), &answer).await;
    assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
    asked.until("was sure").await;

    let long = call("change", "two", "30").to_string();
    let running = first.send("POST", "ada", Some(&id), &long).await;
    wait_until("it runs", || scripts.counts("two").0 == 1).await;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    let accepted = second.post("ada", Some(&id), &cancel).await;
    assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
    let rest = running.whole().await;
    assert!(!rest.contains("did two"), "{rest}");
    assert_eq!(scripts.counts("two"), (1, 0));
}
