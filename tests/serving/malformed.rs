//! Bodies that are no message, on one connection, byte by byte: each gets its error, and the
//! connection goes on. What lines on a pipe may hold is tested with the server.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use mcpd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

/// Only a hang meets it.
const PATIENCE: Duration = Duration::from_secs(60);

/// One keep-alive connection.
struct Connection {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Connection {
    fn open(daemon: &Daemon) -> Self {
        let stream = TcpStream::connect(daemon.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
            daemon.address(),
            daemon.token().unwrap(),
        );
        Self {
            stream: BufReader::new(stream),
            head,
        }
    }

    /// Status and body of the answer to `body`.
    fn post(&mut self, body: &[u8]) -> (u16, String) {
        self.send(&format!("Content-Length: {}\r\n\r\n", body.len()), body);
        self.receive()
    }

    fn send(&mut self, rest_of_head: &str, body: &[u8]) {
        let stream = self.stream.get_mut();
        stream
            .write_all(format!("{}{rest_of_head}", self.head).as_bytes())
            .unwrap();
        stream.write_all(body).unwrap();
    }

    fn receive(&mut self) -> (u16, String) {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(
                self.stream.read_line(&mut head).unwrap(),
                0,
                "the connection is closed: {head}"
            );
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        self.stream.read_exact(&mut body).unwrap();
        (status, String::from_utf8(body).unwrap())
    }

    /// An ordinary request gets an ordinary answer.
    #[track_caller]
    fn assert_alive(&mut self) {
        let ping = json!({"jsonrpc": "2.0", "id": "alive", "method": "ping"});
        let (status, body) = self.post(ping.to_string().as_bytes());
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &answer["id"]), (200, &json!("alive")), "{body}");
    }
}

/// Sends bodies on one connection, and after each an ordinary request.
#[track_caller]
fn check(cases: &[(&[u8], u16, i32)]) {
    let sandbox = Sandbox::new();
    let daemon = Daemon::start(&sandbox, &[]);
    let mut connection = Connection::open(&daemon);
    for (body, status, code) in cases {
        let (got, answer) = connection.post(body);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let start = String::from_utf8_lossy(&body[..body.len().min(80)]);
        assert_eq!(
            (got, &answer["error"]["code"]),
            (*status, &json!(code)),
            "{start}: {answer}"
        );
        connection.assert_alive();
    }
}

#[test]
fn what_is_no_json_is_a_parse_error() {
    check(&[
        (b"", 400, -32700),
        (b"this is not JSON", 400, -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,", 400, -32700),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
            400,
            -32700,
        ),
        (b"\0", 400, -32700),
        ("[".repeat(100_000).as_bytes(), 400, -32700),
        ("x".repeat(5_000_000).as_bytes(), 400, -32700),
    ]);
}

#[test]
fn what_is_no_message_is_an_invalid_request() {
    check(&[
        (b"[]", 400, -32600),
        (b"7", 400, -32600),
        (b"{}", 400, -32600),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
            400,
            -32600,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}",
            400,
            -32600,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"ping\"}",
            400,
            -32600,
        ),
        (b"{\"id\":1,\"method\":\"ping\"}", 400, -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1}", 400, -32600),
    ]);
}

#[test]
fn what_a_method_does_not_take_is_named() {
    check(&[
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}", 200, -32601),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", 200, -32602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":7}}", 200, -32602),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"}}", 200, -32602),
    ]);
}

#[test]
fn a_body_in_pieces_is_put_together() {
    let sandbox = Sandbox::new();
    let daemon = Daemon::start(&sandbox, &[]);
    let mut connection = Connection::open(&daemon);
    let pieces = [r#"{"jsonrpc":"2.0","id":1,"#, r#""method":"ping"}"#, ""];
    let chunk = |piece: &str| format!("{:x}\r\n{piece}\r\n", piece.len());
    let body = pieces.map(chunk).concat();
    connection.send("Transfer-Encoding: chunked\r\n\r\n", body.as_bytes());
    assert_eq!(connection.receive().0, 200);
    connection.assert_alive();
}

/// Each of these costs its connection, and no other.
#[test]
fn what_is_no_http_ends_its_own_connection() {
    let sandbox = Sandbox::new();
    let daemon = Daemon::start(&sandbox, &[]);
    let mut bystander = Connection::open(&daemon);
    for request in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"POST\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let mut stream = TcpStream::connect(daemon.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        // It may be reset as well as closed.
        if let Err(error) = stream.read_to_end(&mut answer) {
            assert_eq!(
                error.kind(),
                ErrorKind::ConnectionReset,
                "{}",
                request.escape_ascii()
            );
        }
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 400"),
            "{answer}"
        );
        bystander.assert_alive();
    }
}
