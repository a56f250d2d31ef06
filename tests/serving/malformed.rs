//! Malformed messages, byte by byte, as a line on a pipe and as a body on one connection: each
//! gets its error, and the channel stays usable. Also input that is not HTTP.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use mcpd_tests::{Daemon, Pipes, Sandbox};
use serde_json::{Value, json};

use crate::{call, on_each_transport, text};

/// Time limit that only a hang exceeds.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Keep-alive connection.
struct Connection {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Connection {
    fn open(daemon: &Daemon) -> Self {
        let stream = TcpStream::connect(daemon.address()).unwrap();
        stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
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

    /// Posts `body` and returns status and body of the answer.
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

    /// Checks that an ordinary request gets an ordinary answer.
    #[track_caller]
    fn assert_alive(&mut self) {
        let ping = json!({"jsonrpc": "2.0", "id": "alive", "method": "ping"});
        let (status, body) = self.post(ping.to_string().as_bytes());
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &answer["id"]), (200, &json!("alive")), "{body}");
    }
}

/// Sends messages over HTTP on one connection, and over stdio, and after each an ordinary request.
/// The error is the same on both.
#[track_caller]
fn check(status: u16, code: i32, messages: &[&[u8]]) {
    let sandbox = Sandbox::new();
    let daemon = Daemon::start(&sandbox, &[]);
    let mut connection = Connection::open(&daemon);
    let mut pipes = Pipes::start(&sandbox, &[]);
    for message in messages {
        let start = message[..message.len().min(80)].escape_ascii().to_string();
        let (got, answer) = connection.post(message);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(
            (got, &answer["error"]["code"]),
            (status, &json!(code)),
            "{start}: {answer}"
        );
        connection.assert_alive();
        // On a pipe, a blank line is no message and gets no answer.
        if !message.trim_ascii().is_empty() {
            pipes.send(message);
            let on_pipe = pipes.receive();
            assert_eq!(on_pipe["error"], answer["error"], "{start}: {on_pipe}");
        }
        pipes.send(&ping("alive"));
        assert_eq!(pipes.receive()["id"], "alive", "{start}");
    }
}

fn ping(id: &str) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
        .to_string()
        .into_bytes()
}

#[test]
fn invalid_json_is_a_parse_error() {
    let no_json: &[&[u8]] = &[
        b"",
        b" \t ",
        b"this is not JSON",
        b"\0",
        br#"{"jsonrpc":"2.0","id":1,"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"ping",}"#,
        br#"{"jsonrpc":"2.0","id":1,/**/"method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":NaN,"method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":-Infinity,"method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":01,"method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0"}"#,
        b"{'jsonrpc':'2.0','id':1,'method':'ping'}",
        b"\xef\xbb\xbf\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc0\xaf\"}",
        &b"[".repeat(100_000),
        &b"{\"a\":".repeat(1_000_000),
        &b"x".repeat(5_000_000),
    ];
    check(400, -32700, no_json);
}

#[test]
fn json_without_a_message_is_an_invalid_request() {
    let digits = "9".repeat(100_000);
    let long_id = format!(r#"{{"jsonrpc":"2.0","id":{digits},"method":"ping"}}"#);
    let no_message: &[&[u8]] = &[
        b"[]",
        b"7",
        b"{}",
        br#"{"id":1,"method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":1}"#,
        br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#,
        long_id.as_bytes(),
        br#"{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":1,"m\u0065thod":"a","method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#,
    ];
    check(400, -32600, no_message);
}

#[test]
fn invalid_params_are_named() {
    let no_method: &[&[u8]] = &[
        br#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}"#,
    ];
    check(200, -32601, no_method);
    let no_params: &[&[u8]] = &[
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud800"}}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"..\u0000"}}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":{}}}}"#,
    ];
    check(200, -32602, no_params);
    let no_meta = br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":7}}"#;
    check(400, -32602, &[no_meta]);
}

/// A message cut off at any byte is invalid JSON.
#[test]
fn truncated_message_is_a_parse_error() {
    let message = call(
        "echo",
        json!({"value": "größe\u{2028}\n", "n": [-0.5e3, null, true]}),
    );
    let message = message.to_string().into_bytes();
    let cut: Vec<_> = (1..message.len()).map(|end| &message[..end]).collect();
    check(400, -32700, &cut);
}

#[test]
fn large_or_odd_message_is_answered() {
    let id = "i".repeat(1_000_000);
    let keys: Vec<_> = (0..200_000).map(|key| format!("\"{key}\":0")).collect();
    let params = format!("{{{}}}", keys.join(","));
    let messages = [
        String::from_utf8(ping(&id)).unwrap(),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{params}}}"#),
        r#" {"jsonrpc":"2.0","id":9007199254740993,"method":"ping"} "#.to_owned(),
        r#"{"jsonrpc":"2.0","id":"\u2028","method":"ping","other":[1e999]}"#.to_owned(),
    ];
    on_each_transport("ok", &[], |server, _| {
        for message in &messages {
            let sent: Value = serde_json::from_str(message).unwrap_or_default();
            let answer = server.exchange_raw(message);
            assert_eq!(answer["result"], json!({}), "{answer}");
            assert!(sent.is_null() || answer["id"] == sent["id"]);
        }
    });
}

/// The script receives every value unchanged; no shell and no option parser interprets it.
#[test]
fn hostile_values_reach_the_script_unchanged() {
    let values = [
        "$(touch /tmp/mcpd-hostile); `id` | cat && false",
        "--help",
        "-",
        "../../../etc/passwd",
        "a\nb\rc\td\u{1b}[31m",
        "nul \0 inside",
        "'\"\\ \u{2028}\u{202e}",
    ];
    on_each_transport("ok", &[], |server, _| {
        for value in values.into_iter().chain([&*"x".repeat(200_000)]) {
            let result = server.call("echo", json!({"value": value}));
            assert_eq!(result["isError"], false, "{result}");
            if value.len() < 1000 {
                let stdin: Value = serde_json::from_str(text(&result)).unwrap();
                assert_eq!(stdin, json!({"value": value}));
            }
        }
    });
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
}

/// Each of these ends its own connection and no other.
#[test]
fn non_http_input_ends_only_its_connection() {
    let sandbox = Sandbox::new();
    let daemon = Daemon::start(&sandbox, &[]);
    let mut bystander = Connection::open(&daemon);
    let many_headers = format!("POST /mcp HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(10_000));
    let long_header = format!("POST /mcp HTTP/1.1\r\nA: {}\r\n\r\n", "b".repeat(1_000_000));
    for request in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"POST\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /mcp HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: local\r\n host\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: a\0b\r\n\r\n",
        b"GET /mcp\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /mcp HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        many_headers.as_bytes(),
        long_header.as_bytes(),
    ] {
        let mut stream = TcpStream::connect(daemon.address()).unwrap();
        stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        let start = request[..request.len().min(80)].escape_ascii();
        // The server may reset the connection as well as close it, and before all is sent.
        stream.write_all(request).ok();
        let mut answer = Vec::new();
        if let Err(error) = stream.read_to_end(&mut answer) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{start}");
        }
        let answer = String::from_utf8_lossy(&answer);
        let refused = ["HTTP/1.1 400", "HTTP/1.1 431"];
        assert!(
            answer.is_empty() || refused.iter().any(|status| answer.starts_with(status)),
            "{start}: {answer}"
        );
        bystander.assert_alive();
    }
}

#[test]
fn thousand_pipelined_requests_are_answered() {
    let sandbox = Sandbox::new();
    let daemon = Daemon::start(&sandbox, &[]);
    let mut connection = Connection::open(&daemon);
    let mut writer = connection.stream.get_ref().try_clone().unwrap();
    let head = connection.head.clone();
    let sending = std::thread::spawn(move || {
        for number in 0..1000 {
            let body = ping(&number.to_string());
            let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
            writer
                .write_all(&[head.as_bytes(), &body].concat())
                .unwrap();
        }
    });
    for number in 0..1000 {
        let (status, body) = connection.receive();
        assert_eq!(status, 200);
        assert!(body.contains(&format!("\"id\":\"{number}\"")), "{body}");
    }
    sending.join().unwrap();
}
