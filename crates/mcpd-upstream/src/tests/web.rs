//! Servers over HTTP with arbitrary text as answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, PaginatedRequestParams};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::{Fixture, HANG_TIMEOUT, text};
use crate::connect::{Greeting, StderrTail, connect};
use crate::link::MAX_CONCURRENT_REQUESTS;
use crate::remarks::Remarks;
use crate::{Address, Upstream};

/// Answer of a server to a call.
#[derive(Debug, Clone, Copy)]
enum Answer {
    Never,
    /// No answer at all, not even to requests for lists.
    NothingListed,
    Json(&'static str),
    Event(&'static str),
    Status(&'static str),
    /// Only the beginning of the announced body.
    Cut,
    /// Status 401, also to liveness checks.
    Locked,
    Html,
}

/// Server with one tool.
struct Web {
    url: String,
    /// Methods of the requests it received.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Web {
    async fn new(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let asked = Arc::default();
        let asks = Arc::clone(&asked);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(exchange(stream, answer, Arc::clone(&asks)));
            }
        });
        Self { url, asked }
    }

    /// Returns the number of requests for this method.
    fn request_count(&self, method: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|asked| *asked == method).count()
    }

    /// Waits until this method was requested `times` times.
    async fn expect(&self, method: &str, times: usize) {
        let asked = async {
            while self.request_count(method) < times {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let asked = tokio::time::timeout(HANG_TIMEOUT, asked).await;
        asked.expect("in time");
    }

    fn upstream(&self) -> Upstream {
        Upstream::http("web", Address::new(&self.url).unwrap())
    }
}

const LOCKED: &str = "401 Unauthorized\r\nWWW-Authenticate: Bearer";
const SCOPE: &str =
    "403 Forbidden\r\nWWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"any\"";

/// Answers one request.
async fn exchange(stream: TcpStream, answer: Answer, asked: Arc<Mutex<Vec<String>>>) {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        match line.trim_end().to_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().unwrap(),
            None if line == "\r\n" => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let capabilities = json!({"tools": {}});
    let method = request["method"].as_str();
    asked.lock().unwrap().extend(method.map(ToOwned::to_owned));
    let (kind, result) = match method {
        Some("initialize") => ("application/json", json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "web", "version": "0"}}).to_string()),
        Some("tools/list") if matches!(answer, Answer::NothingListed) => ("", "500 Internal Server Error".to_owned()),
        Some("tools/list") => ("application/json", json!({"tools": [{"name": "any", "inputSchema": {"type": "object"}}]}).to_string()),
        Some("tools/call") => match answer {
            Answer::Never | Answer::NothingListed => return std::future::pending().await,
            Answer::Json(result) => ("application/json", result.to_owned()),
            Answer::Event(result) => ("text/event-stream", result.to_owned()),
            Answer::Status(status) => ("", status.to_owned()),
            Answer::Cut => ("application/json", "{}".to_owned()),
            Answer::Locked => ("", LOCKED.to_owned()),
            Answer::Html => ("text/html", String::new()),
        },
        Some("ping") if matches!(answer, Answer::Locked) => ("", LOCKED.to_owned()),
        Some("ping") => ("application/json", "{}".to_owned()),
        Some("server/discover") => ("", "404 Not Found".to_owned()),
        _ => ("", "202 Accepted".to_owned()),
    };
    let message = format!(
        r#"{{"jsonrpc": "2.0", "id": {}, "result": {result}}}"#,
        request["id"]
    );
    let (status, body) = match kind {
        "" => (result, String::new()),
        "text/event-stream" => ("200 OK".to_owned(), format!("data: {message}\n\n")),
        _ => ("200 OK".to_owned(), message),
    };
    let is_cut = matches!(answer, Answer::Cut) && method == Some("tools/call");
    let length = body.len() + usize::from(is_cut);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all((head + &body).as_bytes()).await.unwrap();
}

#[tokio::test]
async fn lists_are_fetched_from_a_busy_server() {
    let web = Web::new(Answer::Never).await;
    let upstream = web.upstream();
    let (remarks, stderr_tail) = (Remarks::default(), StderrTail::new());
    let mut greeting = Greeting::default();
    let connection = connect(&upstream, &remarks, &stderr_tail, &mut greeting).await;
    let connection = connection.unwrap();
    for _ in 0..MAX_CONCURRENT_REQUESTS {
        let peer = connection.peer().clone();
        tokio::spawn(async move { peer.call_tool(CallToolRequestParams::new("any")).await });
    }
    web.expect("tools/call", MAX_CONCURRENT_REQUESTS).await;
    let listed = connection
        .peer()
        .list_tools(Some(PaginatedRequestParams::default()));
    let listed = tokio::time::timeout(Duration::from_secs(5), listed);
    assert_eq!(listed.await.expect("in time").unwrap().tools.len(), 1);
}

#[tokio::test]
async fn credentials_are_redacted_from_answers() {
    let answer = Answer::Json(
        r#"{"content": [{"type": "text", "text": "t0ken-0001, c2VjcmV0cw== and k3y-of-web"}]}"#,
    );
    let web = Web::new(answer).await;
    let address = Address::new(&web.url).unwrap();
    let address = address.header("X-Key", "k3y-of-web").unwrap();
    let address = address
        .header("Proxy-Authorization", "Basic c2VjcmV0cw==")
        .unwrap();
    let fixture = Fixture::new(Upstream::http("web", address.token("t0ken-0001"))).await;
    let client = fixture.client("2026-07-28").await;
    let result = client.call("web/any", json!({})).await;
    assert_eq!(
        text(&result),
        "[redacted token], [redacted proxy-authorization] and [redacted x-key]"
    );
}

#[tokio::test]
async fn unreadable_answer_ends_only_its_call() {
    let endless = r#"{"content": [], "structuredContent": {"n": 1e400}}"#;
    let long = r#"{"content": [], "structuredContent": {"n": 18446744073709551616}}"#;
    for answer in [
        Answer::Event(long),
        Answer::Json(long),
        Answer::Event(endless),
        Answer::Json(endless),
    ] {
        let web = Web::new(answer).await;
        let fixture = Fixture::new(web.upstream()).await;
        let client = fixture.client("2026-07-28").await;
        let result = client.call("web/any", json!({})).await;
        let told = "The upstream server `web` gave no valid response.";
        assert_eq!(text(&result), told);
        fixture.expect_faults(&[]).await;
    }
}

#[tokio::test]
async fn error_status_or_page_ends_only_its_call() {
    for answer in [
        Answer::Status("500 Internal Server Error"),
        Answer::Status("502 Bad Gateway"),
        Answer::Status("413 Content Too Large"),
        Answer::Status("403 Forbidden"),
        Answer::Status(SCOPE),
        Answer::Cut,
        Answer::Html,
    ] {
        let web = Web::new(answer).await;
        let fixture = Fixture::new(web.upstream()).await;
        let client = fixture.client("2026-07-28").await;
        for _ in 0..5 {
            let result = client.call("web/any", json!({})).await;
            assert_eq!(
                text(&result),
                "The upstream server `web` gave no valid response."
            );
        }
        fixture.expect_faults(&[]).await;
        assert_eq!(web.request_count("initialize"), 1, "{answer:?}");
    }
}

#[tokio::test]
async fn unauthorized_call_triggers_a_liveness_check() {
    let web = Web::new(Answer::Status("401 Unauthorized")).await;
    let fixture = Fixture::new(web.upstream()).await;
    let client = fixture.client("2026-07-28").await;
    for times in 1..=2 {
        let result = client.call("web/any", json!({})).await;
        assert_eq!(text(&result), "The upstream server `web` is unreachable.");
        web.expect("ping", times).await;
    }
    fixture.expect_faults(&[]).await;
    assert_eq!(web.request_count("initialize"), 1);
}

#[tokio::test]
async fn lost_authorization_is_a_fault_of_the_server() {
    let web = Web::new(Answer::Locked).await;
    let fixture = Fixture::new(web.upstream()).await;
    let client = fixture.client("2026-07-28").await;
    let result = client.call("web/any", json!({})).await;
    assert_eq!(text(&result), "The upstream server `web` is unreachable.");
    fixture
        .expect_faults(&["is unreachable: it wants a token, or another one (HTTP 401)"])
        .await;
}

#[tokio::test]
async fn caller_learns_only_the_kind_of_failure() {
    let web = Web::new(Answer::NothingListed).await;
    let fixture = Fixture::new(web.upstream()).await;
    fixture
        .expect_faults(&["failed to list its tools: HTTP 500"])
        .await;
}
