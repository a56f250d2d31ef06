//! Server in a program without an async runtime: started, called and stopped without leaks.

#![cfg(all(feature = "http", target_os = "linux"))]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use mcpd_server::transport::http::{Auth, Background, Options, Token};
use mcpd_server::{Principal, Server, Settings};

const HANG_TIMEOUT: Duration = Duration::from_secs(30);

fn start() -> Background {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let auth = Auth::tokens([Token::new("secret", Principal::new("agent"))]);
    Background::start(
        Server::builder().scripts(scripts),
        "127.0.0.1:0",
        Options::new(auth),
    )
    .unwrap()
}

/// Returns the status line of the response to a list of tools, and its rest.
fn list(address: SocketAddr) -> String {
    let message = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
    let length = message.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer secret\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {length}\r\n\r\n{message}"
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(HANG_TIMEOUT)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Number of threads of this process, and of its descriptors.
fn resources() -> (usize, usize) {
    let count = |directory| fs::read_dir(directory).unwrap().count();
    (count("/proc/self/task"), count("/proc/self/fd"))
}

#[test]
fn background_server_serves_until_it_is_stopped_without_leaks() {
    // The first start creates everything that exists once per process.
    start().stop(HANG_TIMEOUT).unwrap();
    let before = resources();
    let (one, other) = (start(), start());
    assert_ne!(one.address(), other.address());
    for server in [&one, &other] {
        let answer = list(server.address());
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains("\"tools\""),
            "{answer}"
        );
    }
    let address = one.address();
    one.stop(HANG_TIMEOUT).unwrap();
    assert!(TcpStream::connect(address).is_err(), "it still listens");
    assert!(list(other.address()).starts_with("HTTP/1.1 200"));
    other.stop(HANG_TIMEOUT).unwrap();
    let deadline = Instant::now() + HANG_TIMEOUT;
    while resources() > before {
        assert!(
            Instant::now() < deadline,
            "{:?} were {before:?}",
            resources()
        );
        std::thread::yield_now();
    }
}

#[test]
fn background_server_reports_start_errors() {
    let missing = Server::builder().scripts("/no/such/directory");
    let options = Options::new(Auth::without_credentials(Principal::new("anybody")));
    let error = Background::start(missing, "127.0.0.1:0", options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "read the root directory `/no/such/directory`"
    );
}

#[test]
fn background_server_is_reloaded_from_another_thread() {
    let server = start();
    server.reload(Settings::default()).unwrap();
    assert!(list(server.address()).starts_with("HTTP/1.1 200"));
    server.stop(HANG_TIMEOUT).unwrap();
}
