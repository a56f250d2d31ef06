//! `mcpd serve --listen`: several addresses, and Unix domain sockets.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use insta::assert_snapshot;
use mcpd_tests::{Daemon, Sandbox, output};
use rustix::process::Signal;
use serde_json::Value;

use crate::HELLO;

const AT_SOCKET: &[&str] = &["--listen", "unix:mcpd.sock"];

fn sandbox() -> Sandbox {
    Sandbox::new().with_script("hello", HELLO)
}

/// Returns the status and the JSON answer that `curl` gets, over the Unix socket if one is named.
fn curl(sandbox: &Sandbox, socket: Option<&str>, arguments: &[&str]) -> (String, Value) {
    let mut command = sandbox.program("curl");
    command.args([
        "--silent",
        "--max-time",
        "60",
        "--write-out",
        "%{stderr}%{http_code}",
    ]);
    if let Some(socket) = socket {
        command.args(["--unix-socket", socket]);
    }
    command.args(arguments);
    let output = output(command, b"");
    let status = String::from_utf8(output.stderr).unwrap();
    (
        status,
        serde_json::from_slice(&output.stdout).unwrap_or_default(),
    )
}

/// Ends a daemon by a signal and waits for it.
#[track_caller]
fn stop(daemon: Daemon) {
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait(), (0, String::new()));
}

#[test]
fn unix_socket_serves_its_owner() {
    let sandbox = sandbox();
    let daemon = Daemon::listening(&sandbox, AT_SOCKET);
    assert_snapshot!(sandbox.redact(daemon.announcement()), @"
    mcpd listens on http://localhost/mcp, Unix socket @@ROOT@@/mcpd.sock
      token: in @@ROOT@@/state/mcpd/agent-token
      tools: 1
    ");
    let socket = sandbox.path().join("mcpd.sock");
    assert_eq!(
        socket.metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );

    let token = format!("Authorization: Bearer {}", daemon.token().unwrap());
    let list = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
    let url = "http://localhost/mcp";
    let post = ["--header", "Content-Type: application/json", "--data", list];
    let request = [&["--header", &token], &post[..], &[url]].concat();
    let (status, answer) = curl(&sandbox, Some("mcpd.sock"), &request);
    assert_eq!(
        (&*status, answer["result"]["tools"].is_array()),
        ("200", true),
        "{answer}"
    );
    let with = |arguments: &[&str]| curl(&sandbox, Some("mcpd.sock"), arguments).0;
    assert_eq!(with(&[&post[..], &[url]].concat()), "401");
    assert_eq!(with(&["http://evil.example/health"]), "403");
    assert_eq!(
        with(&["--http2-prior-knowledge", "http://localhost/health"]),
        "200"
    );
    stop(daemon);
    assert!(!socket.exists());
}

#[test]
fn unix_socket_needs_no_token_without_auth() {
    let sandbox = sandbox();
    let _daemon = Daemon::listening(&sandbox, &["--listen", "unix:mcpd.sock", "--no-auth"]);
    let ping = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
    let request = ["--json", ping, "http://localhost/mcp"];
    assert_eq!(curl(&sandbox, Some("mcpd.sock"), &request).0, "200");
}

#[test]
fn several_addresses_are_one_server() {
    let sandbox = sandbox();
    let addresses = [&["--listen", "127.0.0.1:0"], AT_SOCKET].concat();
    let daemon = Daemon::listening(&sandbox, &addresses);
    let health = format!("http://{}/health", daemon.address());
    let (status, over_network) = curl(&sandbox, None, &[&health]);
    let (_, over_socket) = curl(&sandbox, Some("mcpd.sock"), &["http://localhost/health"]);
    assert_eq!((&*status, &over_network), ("200", &over_socket));
    // Programs that look for the server find its first address.
    let found = fs::read(sandbox.path().join("state/mcpd/server.json")).unwrap();
    let found: Value = serde_json::from_slice(&found).unwrap();
    assert_eq!(found["url"], daemon.url());
    assert_eq!(found["socket"], Value::Null);
}

#[test]
fn listen_flag_overrides_the_file() {
    let sandbox = sandbox();
    let configuration = "listen = [\"unix:state/of-file.sock\"]\n";
    fs::create_dir(sandbox.path().join("state")).unwrap();
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let daemon = Daemon::listening(&sandbox, &[]);
    let of_file = sandbox.path().join("state/of-file.sock");
    assert!(of_file.exists());
    stop(daemon);
    let _daemon = Daemon::listening(&sandbox, &["--port", "0"]);
    assert!(!of_file.exists());
}

#[test]
fn stale_socket_is_replaced() {
    let sandbox = sandbox();
    drop(UnixListener::bind(sandbox.path().join("mcpd.sock")).unwrap());
    let _daemon = Daemon::listening(&sandbox, AT_SOCKET);
    let (status, _) = curl(&sandbox, Some("mcpd.sock"), &["http://localhost/ready"]);
    assert_eq!(status, "200");
}

#[test]
fn foreign_socket_is_left_alone() {
    let sandbox = sandbox();
    let daemon = Daemon::listening(&sandbox, AT_SOCKET);
    let second = || sandbox.run(&[&["serve", "scripts"], AT_SOCKET].concat());
    assert_snapshot!(second(), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to listen at `mcpd.sock`: the socket is in use, perhaps by another mcpd; stop that program or choose another path
    ");
    // A socket that replaced ours in the meantime is left alone.
    let path = sandbox.path().join("mcpd.sock");
    fs::remove_file(&path).unwrap();
    let _other = UnixListener::bind(&path).unwrap();
    stop(daemon);
    assert!(path.exists());
}

#[track_caller]
fn check_refused(configuration: &str, arguments: &[&str], reason: &str) {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    fs::write(sandbox.path().join("file"), "precious").unwrap();
    let said = sandbox.run(&[&["serve", "scripts"], arguments].concat());
    assert!(said.contains(reason), "{said}");
    let file: &Path = &sandbox.path().join("file");
    assert_eq!(fs::read_to_string(file).unwrap(), "precious");
}

#[test]
fn invalid_listen_address_is_refused() {
    let no_socket = "listen at `file`: a file that is not a socket exists there";
    check_refused("", &["--listen", "unix:file"], no_socket);
    let missing = "listen at `no/such.sock`: No such file or directory";
    check_refused("", &["--listen", "unix:no/such.sock"], missing);
    check_refused(
        "",
        &["--listen", "unix:"],
        "use the address `unix:`: expected HOST:PORT",
    );
    check_refused(
        "",
        &["--listen", "localhost"],
        "use the address `localhost`",
    );
    let at_place = "mcpd.toml:1:11: `listen`: failed to use the address `80`";
    check_refused("listen = [\"80\"]\n", &[], at_place);
    let both = ["--listen", "unix:a", "--port", "1"];
    check_refused(
        "",
        &both,
        "'--listen <ADDRESS>' cannot be used with '--port <PORT>'",
    );
    let open = ["--listen", "unix:a", "--listen", "0.0.0.0:0", "--no-auth"];
    check_refused(
        "",
        &open,
        "`--no-auth` and `auth = false` require a loopback address",
    );
}
