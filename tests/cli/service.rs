//! Service manager integration of `mcpd serve`: `sd_notify` messages and socket activation.

use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mcpd_tests::{Sandbox, binary, eventually};
use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox;

const MESSAGE_TIMEOUT: Duration = Duration::from_secs(60);

/// Service process. It is killed on drop.
struct Service(Child);

impl Service {
    fn start(mut command: Command) -> Self {
        Self(command.stderr(Stdio::null()).spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Waits until the manager receives a message that begins like this.
#[track_caller]
fn wait_for_message(manager: &UnixDatagram, beginning: &str) {
    let mut buffer = [0; 1024];
    loop {
        let length = manager.recv(&mut buffer).expect(beginning);
        if buffer[..length].starts_with(beginning.as_bytes()) {
            return;
        }
    }
}

fn manager(sandbox: &Sandbox) -> (UnixDatagram, std::path::PathBuf) {
    let path = sandbox.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(MESSAGE_TIMEOUT)).unwrap();
    (manager, path)
}

#[test]
fn service_manager_receives_the_status() {
    let sandbox = sandbox();
    let (manager, socket) = manager(&sandbox);
    let mut command = sandbox.command(&["serve", "scripts", "--port", "0"]);
    command
        .env("NOTIFY_SOCKET", socket)
        .env("WATCHDOG_USEC", "200000");
    let mut service = Service::start(command);
    wait_for_message(&manager, "READY=1");
    wait_for_message(&manager, "WATCHDOG=1");
    wait_for_message(&manager, "WATCHDOG=1");
    service.signal(Signal::HUP);
    wait_for_message(&manager, "RELOADING=1\nMONOTONIC_USEC=");
    wait_for_message(&manager, "READY=1");
    service.signal(Signal::TERM);
    wait_for_message(&manager, "STOPPING=1");
    assert!(service.0.wait().unwrap().success());
}

#[test]
fn unread_service_manager_socket_does_not_block() {
    let sandbox = sandbox();
    let (_unread, socket) = manager(&sandbox);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut command = passing(&sandbox, listener);
    // A watchdog message each millisecond soon exceeds what the socket holds.
    command
        .env("NOTIFY_SOCKET", socket)
        .env("WATCHDOG_USEC", "2000");
    let mut service = Service::start(command);
    let call =
        r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hello"}}"#;
    let client = mcpd_tests::Client::new(&address.to_string(), None);
    let begun = Instant::now();
    eventually("the first answer", || client.post(call).ok());
    while begun.elapsed() < Duration::from_secs(1) {
        let (status, body) = client.post(call).unwrap();
        assert_eq!(status, 200, "{body}");
    }
    service.signal(Signal::TERM);
    let status = eventually("the end", || service.0.try_wait().unwrap());
    assert!(status.success());
}

/// Returns a command that starts mcpd without a token and passes it a socket as systemd does.
fn passing(sandbox: &Sandbox, socket: impl Into<OwnedFd>) -> Command {
    let mut command = sandbox.program("sh");
    let script = "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" serve scripts --no-auth 3<&0 </dev/null";
    command.args(["-c", script]).arg(binary());
    command.stdin(socket.into());
    command
}

#[test]
fn passed_socket_is_served_and_hidden_from_scripts() {
    let spy =
        "#!/bin/sh\nif [ \"$1\" = --help ]; then echo '{\"description\": \"d\"}'; exit; fi\nenv\n";
    let sandbox = Sandbox::new().with_script("spy", spy);
    let (manager, socket) = manager(&sandbox);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut command = passing(&sandbox, listener);
    command.env("NOTIFY_SOCKET", socket);
    let _service = Service::start(command);
    wait_for_message(&manager, "READY=1");
    let call = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "spy"}}"#;
    let client = mcpd_tests::Client::new(&address.to_string(), None);
    let (status, body) = eventually("an answer", || client.post(call).ok());
    assert_eq!(status, 200, "{body}");
    for name in ["LISTEN_", "NOTIFY_SOCKET"] {
        assert!(!body.contains(name), "{body}");
    }
}

#[test]
fn public_passed_socket_needs_a_token() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let sandbox = sandbox();
    let output = passing(&sandbox, listener).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("`--no-auth` and `auth = false` require a loopback address"),
        "{said}"
    );
}

/// The socket existed before mcpd, and stays for its next start.
#[test]
fn passed_unix_socket_is_left_in_place() {
    let sandbox = sandbox();
    let (manager, notified) = manager(&sandbox);
    let path = sandbox.path().join("passed.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut command = passing(&sandbox, listener.try_clone().unwrap());
    command.env("NOTIFY_SOCKET", notified);
    let mut service = Service::start(command);
    wait_for_message(&manager, "READY=1");
    let found = fs::read_to_string(sandbox.path().join("state/mcpd/server.json")).unwrap();
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["socket"], path.to_str().unwrap());
    assert_eq!(found["url"], "http://localhost/mcp");
    service.signal(Signal::TERM);
    assert!(service.0.wait().unwrap().success());
    assert!(path.exists());
}
