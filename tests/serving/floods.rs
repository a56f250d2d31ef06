//! HTTP/2 floods: frames that are cheap for the client and expensive for the server. The
//! connection is closed, and other clients are served.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use mcpd_tests::{Daemon, Sandbox};

/// Shorter than the idle timeout of a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(25);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// Encodes a header for HPACK as a literal without indexing.
fn header(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// Encodes the headers of `GET /health`.
fn health() -> Vec<u8> {
    let headers = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/health"),
        (":authority", "localhost"),
    ];
    headers.map(|(name, value)| header(name, value)).concat()
}

/// Repeats the attack until the connection breaks, while other clients are served.
#[track_caller]
fn check_closed(attack: impl Fn(u32) -> Vec<u8>) {
    let sandbox = Sandbox::new();
    let daemon = Daemon::start(&sandbox, &[]);
    let mut stream = TcpStream::connect(daemon.address()).unwrap();
    stream.set_write_timeout(Some(CLOSE_TIMEOUT)).unwrap();
    stream.set_read_timeout(Some(CLOSE_TIMEOUT)).unwrap();
    let mut reader = stream.try_clone().unwrap();
    let reading = std::thread::spawn(move || reader.read_to_end(&mut Vec::new()).is_ok());
    stream
        .write_all(&[PREFACE, &frame(SETTINGS, 0, 0, b"")].concat())
        .unwrap();
    let begin = Instant::now();
    let mut rounds = 0;
    while stream.write_all(&attack(rounds)).is_ok() {
        rounds += 1;
        assert!(
            begin.elapsed() < CLOSE_TIMEOUT,
            "still open after {rounds} rounds"
        );
        if rounds % 1000 == 0 {
            let ping = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
            assert_eq!(daemon.client().post(ping).unwrap().0, 200);
        }
    }
    reading.join().unwrap();
    let ping = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
    assert_eq!(daemon.client().post(ping).unwrap().0, 200);
}

#[test]
fn requests_that_are_reset_at_once_end_their_connection() {
    check_closed(|round| {
        let attack = |number: u32| {
            let stream = 2 * (round * 100 + number) + 1;
            let request = frame(HEADERS, END_HEADERS | END_STREAM, stream, &health());
            [request, frame(RESET, 0, stream, &8_u32.to_be_bytes())].concat()
        };
        (0..100).flat_map(attack).collect()
    });
}

#[test]
fn headers_without_end_end_their_connection() {
    check_closed(|round| {
        let more = header("a", &"b".repeat(100)).repeat(100);
        match round {
            0 => frame(HEADERS, 0, 1, &health()),
            _ => frame(CONTINUATION, 0, 1, &more),
        }
    });
}

/// Pings do not count as requests, so they do not keep a connection alive.
#[test]
fn pings_without_requests_end_their_connection() {
    check_closed(|_| frame(PING, 0, 0, b"--------").repeat(1000));
}
