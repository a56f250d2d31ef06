//! Commands written by a model, against the built binary: what they may not do is impossible.

use std::fs;
use std::net::TcpListener;
use std::thread;

use mcpd_tests::{Daemon, Pipes, Sandbox, eventually};
use serde_json::{Value, json};

use crate::{Server, wait_until_nothing_left};

/// Serves `run_command` with a working directory and this configuration, over stdio and then over
/// HTTP.
fn on_each_transport(configuration: &str, check: impl Fn(&mut dyn Server, &Sandbox)) {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path().join("work")).unwrap();
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let arguments = [
        "--enable",
        "run_command",
        "--workdir",
        "work",
        "--config",
        "mcpd.toml",
    ];
    check(&mut Pipes::start(&sandbox, &arguments), &sandbox);
    check(&mut Daemon::start(&sandbox, &arguments), &sandbox);
}

/// Returns all texts in the result of a command.
fn run(server: &mut dyn Server, command: &str) -> String {
    let result = server.call("run_command", json!({"command": command}));
    let content = result["content"].as_array().unwrap();
    let texts: Vec<_> = content
        .iter()
        .filter_map(|block| block["text"].as_str())
        .collect();
    texts.join("\n")
}

#[test]
fn command_writes_only_in_its_directory() {
    on_each_transport("", |server, sandbox| {
        assert_eq!(run(server, "echo x > file && cat file"), "x");
        assert_eq!(
            run(server, "echo x > \"$TMPDIR/file\" && cat \"$TMPDIR/file\""),
            "x"
        );
        let outside = sandbox.path().join("outside");
        for attempt in [
            "echo x > ../outside",
            "ln -s .. up; echo x > up/outside",
            "mv file ../outside",
            "ln file ../outside",
            "mkdir ../outside",
            "(cd .. && echo x > outside)",
            "sh -c 'sh -c \"echo x > ../outside\"'",
            "rm -rf ../mcpd.toml",
            "chmod 777 ../mcpd.toml; echo x >> ../mcpd.toml",
            ": > ../mcpd.toml",
        ] {
            run(server, attempt);
            assert!(!outside.exists(), "{attempt}");
        }
        assert_eq!(
            fs::read_to_string(sandbox.path().join("mcpd.toml")).unwrap(),
            ""
        );
    });
}

#[test]
fn a_command_reads_no_secrets() {
    on_each_transport("", |server, sandbox| {
        let keys = sandbox.path().join("home/.ssh");
        fs::create_dir_all(&keys).unwrap();
        fs::write(keys.join("id_ed25519"), "KEY").unwrap();
        let said = run(
            server,
            "cat ~/.ssh/id_ed25519; ls ~/.ssh; cp ~/.ssh/* .; cat id*",
        );
        assert!(!said.contains("KEY"), "{said}");
        let state = sandbox.path().join("state/mcpd");
        fs::create_dir_all(&state).unwrap();
        fs::write(state.join("other-token"), "TOKEN").unwrap();
        let said = run(server, "cat ../state/mcpd/other-token");
        assert!(said.contains("ermission denied"), "{said}");
    });
}

#[test]
fn command_has_no_network_if_disabled() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || while listener.accept().is_ok() {});
    let connect = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected'");
    on_each_transport("", |server, _| {
        assert_eq!(run(server, &connect), "connected");
    });
    let offline = "[sandbox.offline]\nnetwork = \"off\"\n[run_command]\nsandbox = \"offline\"\n";
    on_each_transport(offline, |server, _| {
        let said = run(server, &connect);
        assert!(
            !said.contains("\nconnected") && said.contains("failed with exit code"),
            "{said}"
        );
    });
}

#[test]
fn a_command_leaves_no_process_behind() {
    on_each_transport("", |server, sandbox| {
        for attempt in [
            "sleep 600 & echo started",
            "setsid sleep 600 & echo started",
            "nohup sh -c 'sleep 600 & sleep 600' >/dev/null 2>&1 & echo started",
            "(setsid setsid sh -c 'trap \"\" TERM HUP; sleep 600; sleep 600' &) & echo started",
        ] {
            let said = run(server, attempt);
            assert!(said.starts_with("started\n"), "{attempt}: {said}");
            assert!(said.ends_with(" ended with it."), "{attempt}: {said}");
            let server = server.id();
            wait_until_nothing_left(sandbox, &[server]);
        }
    });
}

#[test]
fn command_kills_no_foreign_process() {
    on_each_transport("", |server, sandbox| {
        let server_id = server.id();
        let said = run(server, &format!("kill -9 {server_id} || echo refused"));
        assert!(said.contains("refused"), "{said}");
        assert_eq!(run(server, "echo alive"), "alive");
        wait_until_nothing_left(sandbox, &[server_id]);
    });
}

#[test]
fn timeout_kills_a_stubborn_command_and_its_children() {
    on_each_transport("", |server, sandbox| {
        let command = "trap '' TERM; echo begun; sleep 600 & while :; do sleep 1; done";
        let arguments = json!({"command": command, "timeout_ms": 300});
        let result = server.call("run_command", arguments);
        assert_eq!(result["isError"], true);
        assert_eq!(result["content"][1]["text"], "begun");
        assert_eq!(result["_meta"]["mcpd/exit"]["name"], "time-limit");
        let server = server.id();
        wait_until_nothing_left(sandbox, &[server]);
    });
}

#[test]
fn secret_of_commands_is_redacted() {
    let configuration = "[[tool]]\nmatch = \"run_command\"\n[tool.env]\nKEY = \"correct horse\"\n";
    on_each_transport(configuration, |server, _| {
        assert_eq!(
            run(server, "echo \"$KEY\"; echo \"$KEY\" >&2"),
            "[redacted KEY]\n[redacted KEY]"
        );
    });
}

#[test]
fn command_without_a_sandbox_has_the_rights_of_its_user() {
    on_each_transport("[run_command]\nsandbox = \"none\"\n", |server, sandbox| {
        run(server, "echo x > ../outside");
        let outside = sandbox.path().join("outside");
        assert!(outside.exists());
        fs::remove_file(outside).unwrap();
    });
}

#[test]
fn lines_reach_the_client_while_a_command_runs() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path().join("work")).unwrap();
    let mut client = Pipes::start(&sandbox, &["--enable", "run_command", "--workdir", "work"]);
    let command = "echo first; until [ -e go ]; do sleep 0.02; done; echo last";
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "run_command",
        "arguments": {"command": command},
        "_meta": {"progressToken": "t"},
    }});
    client.send(message.to_string().as_bytes());
    let progress: Value = client.receive();
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(progress["params"]["message"], "first");
    fs::write(sandbox.path().join("work/go"), "").unwrap();
    eventually("the answer", || {
        let message = client.receive();
        (message["id"] == 1)
            .then(|| assert_eq!(message["result"]["content"][0]["text"], "first\nlast"))
    });
}
