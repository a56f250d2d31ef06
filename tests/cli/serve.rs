//! `mcpd serve` as a command; the exchange over HTTP is tested in the server's crate.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::{fs, io};

use insta::assert_snapshot;
use mcpd_tests::{Daemon, Sandbox, assert_group_ends, eventually};
use rustix::process::Signal;

use crate::{BROKEN, HELLO, STUBBORN, sandbox};

type Answer = io::Result<(u16, String)>;

const LIST: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;

const CALL_STUBBORN: &str =
    r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "stubborn"}}"#;

#[test]
fn start_reports_address_and_tools() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &["--log", "error"]);
    let announcement = sandbox
        .redact(daemon.announcement())
        .replace(daemon.address(), "@@ADDRESS@@");
    assert_snapshot!(announcement, @"
    mcpd listens on http://@@ADDRESS@@/mcp
      token: in @@ROOT@@/state/mcpd/agent-token
      tools: 4, resources: 1
    ");
}

#[test]
fn start_without_tools_is_explained() {
    for (sandbox, told) in [
        (
            Sandbox::new(),
            "  no tools found: scripts must be executable (`chmod +x`)",
        ),
        (
            Sandbox::new().with_script("broken", BROKEN),
            "  the catalog is incomplete: 1 faulty script; run `mcpd check @@ROOT@@/scripts` for details",
        ),
    ] {
        let daemon = Daemon::start(&sandbox, &["--log", "error"]);
        daemon.signal(Signal::TERM);
        let (code, rest) = daemon.wait();
        assert_eq!((code, sandbox.redact(&rest).as_str()), (0, told));
    }
}

#[test]
fn faulty_script_is_one_log_line() {
    let sandbox = Sandbox::new()
        .with_script("broken", BROKEN)
        .with_script("hello", HELLO);
    let daemon = Daemon::start(&sandbox, &[]);
    let warnings: Vec<_> = daemon
        .announcement()
        .lines()
        .filter(|line| line.contains("WARN"))
        .collect();
    let [warning] = warnings[..] else {
        panic!("{warnings:?}")
    };
    assert!(
        warning.contains("script=broken code=help-failed"),
        "{warning}"
    );
}

#[test]
fn token_is_generated_once_for_its_owner_only() {
    let sandbox = sandbox();
    let first = Daemon::start(&sandbox, &[]).token().unwrap().to_owned();
    assert_eq!(first.len(), 64);
    let second = Daemon::start(&sandbox, &[]).token().unwrap().to_owned();
    assert_eq!(first, second);
    for (path, mode) in [("state/mcpd", 0o700), ("state/mcpd/agent-token", 0o600)] {
        let permissions = sandbox.path().join(path).metadata().unwrap().permissions();
        assert_eq!(permissions.mode() & 0o777, mode, "{path}");
    }
}

#[test]
fn request_without_token_is_401() {
    let daemon = Daemon::start(&sandbox(), &[]);
    let client = daemon.client();
    let (status, body) = client.post(LIST).unwrap();
    assert_eq!(status, 200, "{body}");
    assert!(body.contains(r#""name":"math_calc""#), "{body}");
    assert_eq!(client.with_token(None).post(LIST).unwrap().0, 401);
    assert_eq!(client.with_token(Some("wrong")).post(LIST).unwrap().0, 401);
}

#[test]
fn configured_token_is_used() {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("token"), "sesame\n").unwrap();
    let daemon = Daemon::start(&sandbox, &["--token-file", "token"]);
    assert_eq!(daemon.token(), None);
    let announcement = daemon.announcement();
    assert!(
        announcement.contains("short enough to be guessed"),
        "{announcement}"
    );
    let client = daemon.client().with_token(Some("sesame"));
    assert_eq!(client.post(LIST).unwrap().0, 200);
}

#[test]
fn world_readable_audit_log_is_reported() {
    let sandbox = sandbox();
    let logs = sandbox.path().join("state/mcpd/logs");
    fs::create_dir_all(&logs).unwrap();
    let log = logs.join("mcp-audit.jsonl");
    fs::write(&log, "").unwrap();
    for (mode, is_reported) in [(0o644, true), (0o640, false)] {
        fs::set_permissions(&log, Permissions::from_mode(mode)).unwrap();
        let daemon = Daemon::start(&sandbox, &[]);
        let announcement = daemon.announcement();
        let says_so = announcement.contains("is readable by all users");
        assert_eq!(says_so, is_reported, "{announcement}");
    }
}

/// The mode of a systemd credential seems to grant rights to the group and others, because systemd
/// grants read access by an access control list.
#[test]
fn systemd_credential_is_used_without_a_warning() {
    let sandbox = sandbox();
    let credentials = sandbox.path().join("credentials");
    let token = credentials.join("agent-token");
    fs::create_dir(&credentials).unwrap();
    fs::write(&token, "sesame").unwrap();
    fs::set_permissions(&token, Permissions::from_mode(0o440)).unwrap();
    let says_so = |daemon: &Daemon| daemon.announcement().contains("is readable by other users");

    let other = Daemon::start(&sandbox, &["--token-file", "credentials/agent-token"]);
    assert!(says_so(&other), "{}", other.announcement());
    drop(other);

    let place = credentials.to_str().unwrap();
    let sandbox = sandbox.with_variable("CREDENTIALS_DIRECTORY", place);
    let daemon = Daemon::start(&sandbox, &[]);
    assert!(!says_so(&daemon), "{}", daemon.announcement());
    let client = daemon.client().with_token(Some("sesame"));
    assert_eq!(client.post(LIST).unwrap().0, 200);
}

#[test]
fn an_empty_token_file_is_refused() {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("token"), "").unwrap();
    assert_snapshot!(sandbox.run(&["serve", "scripts", "--token-file", "token"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to use the token file `token`: it is empty; delete it and restart to create a new token
    ");
}

#[test]
fn loopback_is_served_without_a_token() {
    let daemon = Daemon::start(&sandbox(), &["--no-auth"]);
    assert_eq!(daemon.client().post(LIST).unwrap().0, 200);
}

#[test]
fn other_addresses_are_not_served_without_a_token() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[2001:db8::1]:0"] {
        let arguments = ["serve", "scripts", "--no-auth", "--listen", address];
        let expected = format!(
            "exit code: 1\n----- stderr -----\nmcpd: error: failed to serve on `{address}` without a token: \
             `--no-auth` and `auth = false` require a loopback address, such as 127.0.0.1\n"
        );
        assert_eq!(sandbox().run(&arguments), expected);
    }
}

#[test]
fn token_flags_exclude_each_other() {
    let flags = ["serve", "scripts", "--no-auth", "--token-file", "token"];
    let refused = sandbox().run(&flags);
    assert!(
        refused.contains("'--no-auth' cannot be used with"),
        "{refused}"
    );
    // A flag takes precedence over a variable.
    let sandbox = sandbox();
    let mut shown = sandbox.command(&["config", "show", "scripts", "--no-auth", "--origin"]);
    let shown = shown.env("MCPD_TOKEN_FILE", "token").output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("--no-auth"), "{shown}");
}

#[test]
fn used_port_is_reported_with_advice() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &[]);
    let port = daemon.address().rsplit(':').next().unwrap();
    // The first specification has no command, and the port in a variable.
    let mut second = sandbox.command(&["--root-directory", "scripts"]);
    let output = second.env("MCP_PORT", port).output().unwrap();
    assert_snapshot!(sandbox.transcript(&output).replace(port, "@@PORT@@"), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to listen on port @@PORT@@: the port is in use, perhaps by another mcpd; stop that program or choose another port with `--port`
    ");
}

#[test]
fn sigterm_ends_scripts_and_exits_with_0() {
    let sandbox = Sandbox::new().with_script("stubborn", STUBBORN);
    let daemon = Daemon::start(&sandbox, &[]);
    let (number, answer) = call_stubborn(&sandbox, &daemon);
    daemon.signal(Signal::TERM);
    let (status, body) = answer.join().unwrap().unwrap();
    assert_eq!(status, 200);
    assert!(body.contains("cancelled"), "{body}");
    assert_eq!(daemon.wait(), (0, String::new()));
    assert_group_ends(&number);
}

#[test]
fn second_signal_ends_it_at_once() {
    let sandbox = Sandbox::new().with_script("stubborn", STUBBORN);
    let daemon = Daemon::start(&sandbox, &[]);
    let (number, answer) = call_stubborn(&sandbox, &daemon);
    daemon.signal(Signal::INT);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().0, 0);
    // The second signal ended the script at once; a script with time to end would have its call
    // answered.
    assert!(answer.join().unwrap().is_err());
    assert_group_ends(&number);
}

/// Starts a call. Returns the path where the script wrote its process id, and the pending answer.
#[track_caller]
fn call_stubborn(sandbox: &Sandbox, daemon: &Daemon) -> (PathBuf, JoinHandle<Answer>) {
    let client = daemon.client();
    let answer = thread::spawn(move || client.post(CALL_STUBBORN));
    let number = sandbox.path().join("scripts/number");
    eventually("the script to run", || number.exists().then_some(()));
    (number, answer)
}

#[test]
fn guessable_state_key_is_refused() {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("key"), "too short").unwrap();
    let arguments = ["serve", "scripts", "--state-key-file"];
    assert_snapshot!(sandbox.run(&[&arguments[..], &["key"]].concat()), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to use the state key `key`: it has 9 bytes and needs at least 32; create one with `head -c 32 /dev/urandom`
    ");
    assert_snapshot!(sandbox.run(&[&arguments[..], &["none"]].concat()), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the state key `none`: No such file or directory (os error 2)
    ");
}
