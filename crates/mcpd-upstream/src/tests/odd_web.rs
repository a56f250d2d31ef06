//! Servers over HTTP with odd responses, which are accepted where they can mean only one thing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::{Fixture, PROMPT_TIMEOUT, text};
use crate::{Address, Upstream};

/// Answer of an HTTP server to a method, as status line and headers without the length, and body.
/// `ID` stands for the id of the request.
type Responder = fn(&str, &Request) -> Option<(String, String)>;

/// Request to such a server.
struct Request {
    path: String,
    session: Option<String>,
    body: Value,
}

const JSON: &str = "200 OK\r\nContent-Type: application/json";
const REFUSAL: &str = r#"{"jsonrpc": "2.0", "error": {"code": -32000, "message": "No valid session ID"}, "id": null}"#;

fn respond(head: &str, body: &str) -> Option<(String, String)> {
    Some((head.to_owned(), body.to_owned()))
}

/// Runs a server that answers properly except where `answer` gives something else.
async fn web(answer: Responder) -> Fixture {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let sessions = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(exchange(stream, answer, Arc::clone(&sessions)));
        }
    });
    Fixture::new(Upstream::http("web", Address::new(&url).unwrap())).await
}

async fn exchange(stream: TcpStream, answer: Responder, sessions: Arc<AtomicUsize>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.unwrap() == 0 {
            return;
        }
    }
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned())
    };
    let length = header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let request = Request {
        path: head.split(' ').nth(1).unwrap().to_owned(),
        session: header("mcp-session-id"),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let method = request.body["method"].as_str().unwrap_or_default();
    let result = |result: Value| {
        let answer = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result});
        respond(JSON, &answer.to_string())
    };
    let answered = answer(method, &request).or_else(|| match method {
        "server/discover" => respond("400 Bad Request\r\nContent-Type: application/json", REFUSAL),
        "initialize" => {
            let answer = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "web", "version": "0"}});
            let session = sessions.fetch_add(1, Relaxed) + 1;
            result(answer).map(|(head, body)| (format!("{head}\r\nMcp-Session-Id: {session}"), body))
        }
        "tools/list" => result(json!({"tools": [{"name": "any", "inputSchema": {"type": "object"}}]})),
        "tools/call" => result(json!({"content": [{"type": "text", "text": "ok"}]})),
        "ping" => result(json!({})),
        "" => respond("405 Method Not Allowed", ""),
        _ => respond("202 Accepted", ""),
    });
    let (head, body) = answered.unwrap();
    let body = body.replace("\"id\": ID", &format!("\"id\": {}", request.body["id"]));
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(answer.as_bytes()).await.unwrap();
}

/// Calls the tool of a server; checks that no fault of the server is reported.
async fn call_web(answer: Responder) -> Value {
    let fixture = web(answer).await;
    fixture.expect_tools(&["web/any"]).await;
    fixture.expect_faults(&[]).await;
    let client = fixture.client("2026-07-28").await;
    let begun = Instant::now();
    let result = client.call("web/any", json!({})).await;
    assert!(begun.elapsed() < PROMPT_TIMEOUT);
    result
}

#[tokio::test]
async fn discover_refused_in_any_way_leads_to_a_handshake() {
    let answers: [Responder; 7] = [
        |method, _| (method == "server/discover").then(|| ("500 Oh".into(), String::new())),
        |method, _| (method == "server/discover").then(|| ("202 Accepted".into(), String::new())),
        |method, _| (method == "server/discover").then(|| ("403 Forbidden".into(), "no".into())),
        |method, _| (method == "server/discover").then(|| ("200 OK".into(), "<html>".into())),
        |method, _| (method == "server/discover").then(|| (JSON.into(), "{}".into())),
        |method, _| {
            let head = "200 OK\r\nContent-Type: text/event-stream";
            (method == "server/discover").then(|| (head.into(), "event: ping\ndata: {}\n\n".into()))
        },
        |method, _| {
            let head = "403 Forbidden\r\nWWW-Authenticate: Bearer error=\"insufficient_scope\"";
            (method == "server/discover").then(|| (head.into(), String::new()))
        },
    ];
    for answer in answers {
        assert_eq!(text(&call_web(answer).await), "ok");
    }
}

#[tokio::test]
async fn error_in_a_response_is_the_answer() {
    let answers: [Responder; 3] = [
        |method, _| {
            let head = "400 Bad Request\r\nContent-Type: application/json";
            let body =
                r#"{"jsonrpc": "2.0", "error": {"code": -32000, "message": "locked"}, "id": null}"#;
            (method == "tools/call").then(|| (head.into(), body.into()))
        },
        |method, _| {
            let body = r#"{"jsonrpc": "2.0", "error": {"code": -32000, "message": "locked"}, "id": "server-error"}"#;
            (method == "tools/call").then(|| (JSON.into(), body.into()))
        },
        |method, _| {
            let head = "200 OK\r\nContent-Type: text/event-stream";
            let body = "data: {\"jsonrpc\": \"2.0\", \"error\": {\"code\": -32000, \"message\": \"locked\"}}\n\n";
            (method == "tools/call").then(|| (head.into(), body.into()))
        },
    ];
    for answer in answers {
        assert_eq!(text(&call_web(answer).await), "locked");
    }
}

#[tokio::test]
async fn repeated_refusal_is_reported() {
    let result = call_web(|method, _| {
        let head = "400 Bad Request\r\nContent-Type: application/json";
        (method == "tools/call").then(|| (head.into(), REFUSAL.into()))
    });
    assert_eq!(text(&result.await), "No valid session ID");
}

#[tokio::test]
async fn lost_session_is_opened_again() {
    let answers: [Responder; 4] = [
        |method, request| lose_session(method, request, "404 Not Found", ""),
        |method, request| lose_session(method, request, "410 Gone", ""),
        |method, request| {
            let head = "400 Bad Request\r\nContent-Type: application/json";
            lose_session(method, request, head, REFUSAL)
        },
        |method, request| {
            lose_session(
                method,
                request,
                "500 Oh\r\nContent-Type: text/plain",
                "Unknown session",
            )
        },
    ];
    for answer in answers {
        assert_eq!(text(&call_web(answer).await), "ok");
    }
}

/// Answers the calls of the first session like this.
fn lose_session(
    method: &str,
    request: &Request,
    head: &str,
    body: &str,
) -> Option<(String, String)> {
    let is_first = request.session.as_deref() == Some("1");
    (method == "tools/call" && is_first).then(|| (head.to_owned(), body.to_owned()))
}

#[tokio::test]
async fn success_of_any_kind_accepts_a_notification() {
    let answers: [Responder; 3] = [
        |method, _| (method == "notifications/initialized").then(|| ("200 OK".into(), "ok".into())),
        |method, _| {
            (method == "notifications/initialized")
                .then(|| ("204 No Content".into(), String::new()))
        },
        |method, _| {
            let head = "200 OK\r\nContent-Type: text/event-stream";
            (method == "notifications/initialized").then(|| (head.into(), ": hello\n\n".into()))
        },
    ];
    for answer in answers {
        assert_eq!(text(&call_web(answer).await), "ok");
    }
}

#[tokio::test]
async fn redirect_on_the_same_origin_is_followed() {
    let answers: [Responder; 2] = [
        |_, request| {
            let head = "307 Temporary Redirect\r\nLocation: /mcp/";
            (request.path == "/mcp").then(|| (head.into(), String::new()))
        },
        |_, request| {
            let head = "301 Moved Permanently\r\nLocation: /mcp/";
            (request.path == "/mcp").then(|| (head.into(), String::new()))
        },
    ];
    for answer in answers {
        assert_eq!(text(&call_web(answer).await), "ok");
    }
}

#[tokio::test]
async fn redirect_to_another_origin_is_a_named_fault() {
    let fixture = web(|_, _| {
        let head = "302 Found\r\nLocation: https://login.example/start?key=s3cret";
        respond(head, "")
    });
    let fault = "is unreachable: HTTP 302 Found redirects to `https://login.example/start`, which is another origin; set `url` to it if that is intended";
    fixture.await.expect_faults(&[fault]).await;
    let fixture = web(|_, _| respond("307 Temporary Redirect\r\nLocation: /mcp", ""));
    let fault = "is unreachable: more than 5 redirects";
    fixture.await.expect_faults(&[fault]).await;
}

#[tokio::test]
async fn responses_are_read_in_any_form() {
    let answers: [Responder; 4] = [
        |method, _| {
            let head = "200 OK\r\nContent-Type: Application/JSON; Charset=UTF-8";
            let body = "\u{feff}[{\"jsonrpc\": \"2.0\", \"id\": ID, \"error\": null, \"result\": {\"content\": [{\"type\": \"text\", \"text\": \"ok\"}]}}]";
            (method == "tools/call").then(|| (head.into(), body.into()))
        },
        |method, _| {
            let head = "200 OK";
            let body = r#"{"jsonrpc": "2.0", "id": ID, "result": {"content": "ok"}}"#;
            (method == "tools/call").then(|| (head.into(), body.into()))
        },
        |method, _| {
            let head = "200 OK\r\nContent-Type: TEXT/Event-Stream; charset=utf-8";
            let body = "\u{feff}event: ping\ndata: {}\n\nnonsense\nevent: response\ndata: {\"jsonrpc\": \"2.0\", \"id\": ID, \"result\":\ndata: {\"content\": [{\"type\": \"text\", \"text\": \"ok\"}]}}";
            (method == "tools/call").then(|| (head.into(), body.into()))
        },
        |method, _| {
            let said = r#"{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "so"}}"#;
            let answer = r#"{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "ok"}]}}"#;
            (method == "tools/call").then(|| (JSON.into(), format!("[{said}, {answer}]")))
        },
    ];
    for answer in answers {
        assert_eq!(text(&call_web(answer).await), "ok");
    }
}

#[tokio::test]
async fn accepted_call_without_a_stream_is_reported() {
    let result = call_web(|method, _| {
        (method == "tools/call").then(|| ("202 Accepted".into(), String::new()))
    });
    let told = "The upstream server `web` gave no valid response.";
    assert_eq!(text(&result.await), told);
}
