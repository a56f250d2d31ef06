//! Request smuggling: requests whose beginning or end is ambiguous, so that two readers might see
//! two different requests. None is executed, and the connection is closed. Requests that RFC 9112
//! wants served are served once.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use mcpd_tests::{Daemon, Sandbox};
use serde_json::json;

use crate::call;

/// Shorter than the idle timeout of a connection, so that an idle timeout is not taken for a
/// refusal.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(25);

/// Server with a tool that counts its runs.
struct Counter {
    sandbox: Sandbox,
    daemon: Daemon,
}

impl Counter {
    fn start() -> Self {
        let sandbox = Sandbox::new().with_counter("count");
        let daemon = Daemon::start(&sandbox, &[]);
        Self { sandbox, daemon }
    }

    /// Returns the answer to these bytes up to the close of the connection; `None` if it stays
    /// open.
    fn exchange(&self, request: &[u8]) -> Option<String> {
        let mut stream = TcpStream::connect(self.daemon.address()).unwrap();
        stream.set_read_timeout(Some(CLOSE_TIMEOUT)).unwrap();
        // The server may close the connection before all is sent.
        stream.write_all(request).ok();
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => None,
            _ => Some(String::from_utf8_lossy(&answer).into_owned()),
        }
    }

    /// Builds a call of the tool: the request line, further headers besides the required ones, and
    /// a body.
    fn request(&self, line: &str, headers: &str, body: &str) -> String {
        let token = self.daemon.token().unwrap();
        format!(
            "{line}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n{headers}\r\n{body}"
        )
    }
}

const POST: &str = "POST /mcp HTTP/1.1\r\nHost: localhost";

fn body() -> String {
    call("count", json!({})).to_string()
}

/// Encodes the body as one chunk.
fn chunked_body() -> String {
    format!("{:x}\r\n{}\r\n0\r\n\r\n", body().len(), body())
}

/// Builds a whole call, as it could be hidden behind another.
fn hidden_call(counter: &Counter) -> String {
    let length = format!("Content-Length: {}\r\n", body().len());
    counter.request(POST, &length, &body())
}

/// Checks that the connection is closed with at most one answer, which is a refusal, and that no
/// call was executed.
#[track_caller]
fn check_refused(counter: &Counter, request: &[u8]) {
    let start = request[..request.len().min(300)].escape_ascii();
    let answer = counter.exchange(request);
    let answer = answer.unwrap_or_else(|| panic!("the connection stays open: {start}"));
    let is_refusal = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
    assert!(
        is_refusal && answer.matches("HTTP/1.1 ").count() <= 1,
        "{start}: {answer}"
    );
    assert_eq!(counter.sandbox.runs(), 0, "{start}");
}

#[test]
fn ambiguous_length_is_refused() {
    let counter = Counter::start();
    let (body, hidden) = (body(), hidden_call(&counter));
    let length = body.len();
    for headers in [
        format!(
            "Content-Length: {length}\r\nContent-Length: {}\r\n",
            length + 1
        ),
        format!("Content-Length: {length}, {}\r\n", length + 1),
        format!("Content-Length: +{length}\r\n"),
        format!("Content-Length: 0x{length:x}\r\n"),
        format!("Content-Length: -{length}\r\n"),
        format!("Content-Length: {length} 0\r\n"),
        format!("Content-Length : {length}\r\n"),
        format!(" Content-Length: {length}\r\n"),
        format!("Content-Length:\r\n {length}\r\n"),
        "Content-Length:\r\n".to_owned(),
        "Content-Length: 99999999999999999999999\r\n".to_owned(),
        "Content-Length: 9999999999\r\n".to_owned(),
    ] {
        let request = counter.request(POST, &headers, &format!("{body}{hidden}"));
        check_refused(&counter, request.as_bytes());
    }
}

#[test]
fn ambiguous_chunks_are_refused() {
    let counter = Counter::start();
    let (body, hidden) = (body(), hidden_call(&counter));
    let size = body.len();
    let chunked = chunked_body();
    for headers in [
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding: \x0bchunked\r\n",
    ] {
        let request = counter.request(POST, headers, &format!("{chunked}{hidden}"));
        check_refused(&counter, request.as_bytes());
    }
    for body in [
        format!("zz\r\n{body}\r\n0\r\n\r\n"),
        format!("-{size:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("0x{size:x}\r\n{body}\r\n0\r\n\r\n"),
        format!("{size:x}\r\n{body}0\r\n\r\n"),
        format!("{:x}\r\n{body}\r\n0\r\n\r\n", size - 1),
        format!("ffffffffffffffff1\r\n{body}\r\n0\r\n\r\n"),
        format!("\r\n{body}\r\n0\r\n\r\n"),
    ] {
        let headers = "Transfer-Encoding: chunked\r\n";
        let request = counter.request(POST, headers, &format!("{body}{hidden}"));
        check_refused(&counter, request.as_bytes());
    }
}

#[test]
fn ambiguous_head_is_refused() {
    let counter = Counter::start();
    let body = body();
    let length = format!("Content-Length: {}\r\n", body.len());
    for line in [
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close",
        "POST /mcp HTTP/1.1\r\nConnection: close",
        "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nConnection: close",
        "POST /mcp HTTP/1.1\r\nHost: localhost@evil.example\r\nConnection: close",
        "POST http://evil.example/mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close",
        "POST /mcp HTTP/1.1\r\nHost : localhost",
        "POST /mcp HTTP/1.1\r\n Host: localhost",
        "POST /mcp HTTP/1.1\r\nHost: local\r\n host",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nA\0: b",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nA: b\0",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nA: b\rB: c",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nno colon",
        "POST /mcp HTTP/3.1\r\nHost: localhost",
        "POST /mcp\r\nHost: localhost",
        "POST  /mcp  HTTP/1.1 x\r\nHost: localhost",
        "P(ST /mcp HTTP/1.1\r\nHost: localhost",
        "PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nPOST /mcp HTTP/1.1\r\nHost: localhost",
    ] {
        check_refused(&counter, counter.request(line, &length, &body).as_bytes());
    }
    let many = format!("{POST}\r\n{}", "A: b\r\n".repeat(1_000_000));
    let long = format!("{POST}\r\nA: {}", "b".repeat(1_000_000));
    for line in [many.trim_end(), &long] {
        check_refused(&counter, counter.request(line, &length, &body).as_bytes());
    }
}

/// The end of each request is clear, but the server does not support its form.
#[test]
fn unsupported_form_is_refused() {
    let counter = Counter::start();
    let token = counter.daemon.token().unwrap();
    let check = |line: &str, headers: &str, status: &str| {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{headers}\
             Content-Length: {}\r\n\r\n{}",
            body().len(),
            body()
        );
        let answer = counter.exchange(request.as_bytes()).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request}: {answer}"
        );
        assert_eq!(counter.sandbox.runs(), 0, "{request}");
    };
    check("POST /mcp", "", "415");
    check("POST /mcp", "Content-Type: text/plain\r\n", "415");
    check(
        "POST /mcp",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "415",
    );
    check("POST /mcp", "Content-Type: multipart/form-data\r\n", "415");
    let json = "Content-Type: application/json\r\n";
    check("post /mcp", json, "405");
    check("PUT /mcp", json, "405");
    check("GET /mcp", json, "405");
    check("POST /mcp//", json, "404");
    check("POST //mcp", json, "404");
    check("POST /%6dcp", json, "404");
}

/// The connection ends with the answer because the requests ask for it, explicitly or by their
/// HTTP version.
#[test]
fn odd_but_unambiguous_request_is_served_once() {
    let counter = Counter::start();
    let (body, chunked, hidden) = (body(), chunked_body(), hidden_call(&counter));
    let length = format!("Content-Length: {}\r\n", body.len());
    let closing = format!("Connection: close\r\n{length}");
    let absolute = "POST http://localhost/mcp HTTP/1.1\r\nHost: evil.example";
    let both = format!("{length}Transfer-Encoding: chunked\r\n");
    let both_reversed = format!("Transfer-Encoding: chunked\r\n{length}");
    let requests = [
        // The chunked encoding takes precedence over the length, and the bytes after it are
        // ignored.
        counter.request(POST, &both, &format!("{chunked}{hidden}")),
        counter.request(POST, &both_reversed, &format!("{chunked}{hidden}")),
        // "the origin server MUST ignore the received Host header field" -- RFC 9112, 3.2.2
        counter.request(absolute, &closing, &body),
        counter.request(POST, &format!("Expect: 100-continue\r\n{closing}"), &body),
        counter.request(
            POST,
            &format!("Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n{closing}"),
            &body,
        ),
        counter.request(
            POST,
            &format!("X-Forwarded-Host: evil.example\r\n{closing}"),
            &body,
        ),
        counter.request(POST, &closing, &body).replace("\r\n", "\n"),
    ];
    for (number, request) in requests.iter().enumerate() {
        let answer = counter.exchange(request.as_bytes());
        let answer = answer.unwrap_or_else(|| panic!("the connection stays open: {request}"));
        assert_eq!(
            answer.matches("HTTP/1.1 200 ").count(),
            1,
            "{request}: {answer}"
        );
        assert_eq!(counter.sandbox.runs(), number + 1, "{request}");
    }
}

/// "A server MUST NOT send content in the response" -- RFC 9110, section 9.3.2
#[test]
fn head_request_is_answered_without_a_body() {
    let counter = Counter::start();
    for path in ["/health", "/ready"] {
        let request =
            format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = counter.exchange(request.as_bytes()).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        assert!(answer.contains("content-length: "), "{path}: {answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{path}: {answer}");
    }
    let health = |method| {
        format!("{method} /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    };
    let answer = counter.exchange(health("PUT").as_bytes()).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert!(answer.contains("allow: GET, HEAD\r\n"), "{answer}");
}
