//! Shutdown of mcpd, in whatever way: no script that its process group reaches outlives it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use mcpd_tests::{Pipes, Sandbox, binary, eventually, skip};
use rustix::process::Signal;
use serde_json::json;

use crate::{Server as _, call, wait_until_nothing_left};

/// Script that ignores SIGTERM, has a child that does too, and reports when it runs.
const STUBBORN: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Runs on."}'
  exit 0
fi
trap '' TERM
sleep 1000 &
echo 'PROGRESS 1' >&2
wait
"#;

/// Time after which clients that have closed the input send a signal.
const END_LIMIT: Duration = Duration::from_secs(2);

/// Starts a client that has called a stubborn script.
fn calling(sandbox: &Sandbox, arguments: &[&str]) -> Pipes {
    let mut client = Pipes::start(sandbox, arguments);
    let mut message = call("stubborn", json!({}));
    message["params"]["_meta"] = json!({"progressToken": 1});
    client.send(message.to_string().as_bytes());
    assert_eq!(client.receive()["method"], "notifications/progress");
    client
}

#[test]
fn end_of_input_ends_scripts_and_exits_with_0() {
    let sandbox = Sandbox::new().with_script("stubborn", STUBBORN);
    let mut client = calling(&sandbox, &[]);
    client.close_input();
    assert_eq!(client.wait(), 0);
    wait_until_nothing_left(&sandbox, &[]);
}

#[test]
fn cancelled_script_can_tidy_up() {
    let sandbox = Sandbox::new();
    let witness = sandbox.path().join("tidy");
    let tidy = format!("'sleep 0.2; echo tidy; : > {}; exit'", witness.display());
    let sandbox = sandbox.with_script("stubborn", &STUBBORN.replace("''", &tidy));
    let mut client = calling(&sandbox, &[]);
    let cancelled = json!({"requestId": 1});
    client.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
            .to_string()
            .as_bytes(),
    );
    eventually("tidied up", || witness.exists().then_some(()));
    client.close_input();
    assert_eq!(client.wait(), 0);
    wait_until_nothing_left(&sandbox, &[]);
}

/// Returns a sandbox with a script that reports SIGTERM and then tidies up slowly.
fn tidy_sandbox() -> (Sandbox, std::path::PathBuf) {
    let sandbox = Sandbox::new();
    let witness = sandbox.path().join("tidied");
    let tidy = format!("'sleep 0.3; : > {}; exit'", witness.display());
    let sandbox = sandbox.with_script("stubborn", &STUBBORN.replace("''", &tidy));
    (sandbox, witness)
}

/// Starts a client as the SDKs do, with a session and a call of a script in progress.
fn session(sandbox: &Sandbox) -> Pipes {
    let mut client = Pipes::start(sandbox, &[]);
    client.exchange(
        &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"}}}),
    );
    let mut message = call("stubborn", json!({}));
    message["params"]["_meta"] = json!({"progressToken": 1});
    client.send(message.to_string().as_bytes());
    assert_eq!(client.receive()["method"], "notifications/progress");
    client
}

#[test]
fn signals_after_the_end_of_input_take_no_grace_from_scripts() {
    let (sandbox, witness) = tidy_sandbox();
    let mut client = session(&sandbox);
    client.close_input();
    let begun = Instant::now();
    for _ in 0..2 {
        // Far enough apart that the system does not merge the two signals.
        std::thread::sleep(Duration::from_millis(100));
        client.signal(Signal::TERM);
    }
    assert_eq!(client.wait(), 0);
    assert!(begun.elapsed() < END_LIMIT, "{:?}", begun.elapsed());
    assert!(witness.exists(), "the script was killed");
    wait_until_nothing_left(&sandbox, &[]);
}

#[test]
fn end_of_input_ends_a_stubborn_script_before_clients_send_a_signal() {
    let sandbox = Sandbox::new().with_script("stubborn", STUBBORN);
    let mut client = session(&sandbox);
    client.close_input();
    let begun = Instant::now();
    let (code, rest) = client.wait_with_rest();
    assert_eq!(code, 0);
    assert!(begun.elapsed() < END_LIMIT, "{:?}", begun.elapsed());
    // The client has abandoned its request, and some clients raise an exception on a late answer.
    assert_eq!(rest, Vec::<serde_json::Value>::new());
    wait_until_nothing_left(&sandbox, &[]);
}

#[test]
fn client_that_dies_ends_its_script_at_once() {
    let (sandbox, witness) = tidy_sandbox();
    let mut command = sandbox.command(&["stdio", "scripts"]);
    let (input, output) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    command.stdin(input.0).stdout(output.1);
    let mut server = command.spawn().unwrap();
    drop(command);
    let mut message = call("stubborn", json!({}));
    message["params"]["_meta"] = json!({"progressToken": 1});
    writeln!(&input.1, "{message}").unwrap();
    let mut first = String::new();
    let mut reader = BufReader::new(output.0);
    reader.read_line(&mut first).unwrap();
    assert!(first.contains("notifications/progress"), "{first}");
    // The input stays open: a closed output alone ends the server.
    drop(reader);
    let status = eventually("the end of mcpd", || server.try_wait().unwrap());
    assert!(status.success() && witness.exists());
    wait_until_nothing_left(&sandbox, &[]);
}

#[test]
fn exclusive_script_blocks_others_until_its_group_ends() {
    const ALONE: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then echo '{"description": "Runs alone.", "concurrency": 1}'; exit; fi
mkdir running || exit 9
trap 'until [ -e go ]; do sleep 0.02; done; rmdir running; exit' TERM
if [ -e go ]; then rmdir running; exit; fi
echo 'PROGRESS 1' >&2
while :; do sleep 0.02; done
"#;
    let sandbox = Sandbox::new().with_script("stubborn", ALONE).with_script(
        "other",
        "#!/bin/sh\necho '{\"description\": \"Does nothing.\"}'\n",
    );
    let mut client = calling(&sandbox, &[]);
    let cancelled = json!({"requestId": 1});
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled});
    client.send(cancelled.to_string().as_bytes());
    let mut again = call("stubborn", json!({}));
    again["id"] = json!("again");
    client.send(again.to_string().as_bytes());
    // Leaves the script time to begin.
    for _ in 0..20 {
        client.exchange(&call("other", json!({})));
    }
    fs::write(sandbox.path().join("scripts/go"), "").unwrap();
    let answer = client.receive();
    assert_eq!(answer["id"], "again");
    assert_eq!(answer["result"]["isError"], false, "{answer}");
}

#[test]
fn sigterm_ends_scripts_and_exits_with_0() {
    let sandbox = Sandbox::new().with_script("stubborn", STUBBORN);
    let client = calling(&sandbox, &[]);
    client.signal(Signal::TERM);
    assert_eq!(client.wait(), 0);
    wait_until_nothing_left(&sandbox, &[]);
}

#[test]
fn killed_server_takes_its_scripts_along() {
    let sandbox = Sandbox::new().with_script("stubborn", STUBBORN);
    let client = calling(&sandbox, &[]);
    client.signal(Signal::KILL);
    wait_until_nothing_left(&sandbox, &[]);
}

#[test]
fn killed_server_takes_confined_scripts_along() {
    let daemons = STUBBORN.replace(
        "sleep 1000 &",
        "setsid sh -c '(sleep 1000 &)'; sleep 1000 &",
    );
    for level in ["guarded", "strict"] {
        let sandbox = Sandbox::new()
            .with_script("stubborn", &daemons)
            .with_script(
                "true",
                "#!/bin/sh\necho '{\"description\": \"Does nothing.\"}'\n",
            );
        let tried = sandbox.run(&["call", "scripts", "true", "--sandbox", level]);
        if !tried.starts_with("exit code: 0") {
            skip(&format!(
                "what outlives mcpd at the level {level}, which this system does not have"
            ));
            continue;
        }
        let client = calling(&sandbox, &["--sandbox", level]);
        client.signal(Signal::KILL);
        wait_until_nothing_left(&sandbox, &[]);
    }
}

#[test]
fn init_of_a_container_reaps_orphans() {
    // A mark of its own hides these processes from the search for leftovers.
    const STRANGERS: &str = r#"#!/bin/bash
if [ "$1" = --help ]; then echo '{"description": "Leaves strangers."}'; exit; fi
for i in 1 2 3; do (ulimit -x 5; exec sleep 0.1) & done
"#;
    const DEAD: &str = r#"#!/bin/bash
if [ "$1" = --help ]; then echo '{"description": "Counts the dead."}'; exit; fi
[ -d /proc/1 ] && grep -ls '^State:.Z' /proc/[0-9]*/status | wc -l
"#;
    let sandbox = Sandbox::new()
        .with_script("strangers", STRANGERS)
        .with_script("dead", DEAD);
    let container = |program: &Path| {
        let mut command = sandbox.program("unshare");
        command.args(["--user", "--map-root-user", "--pid", "--fork"]);
        command.args(["--mount-proc", "--kill-child"]).arg(program);
        command
    };
    let tried = container(Path::new("true")).output();
    if !tried.is_ok_and(|done| done.status.success()) {
        return skip("namespaces of processes, which this system does not let everybody make");
    }
    let mut server = container(binary());
    server.args(["stdio", "scripts"]);
    let mut client = Pipes::of(server);
    client.call("strangers", json!({}));
    let mut dead = || client.call("dead", json!({}))["content"][0]["text"].take();
    eventually("they die", || (dead() == "3").then_some(()));
    eventually("they are reaped", || (dead() == "0").then_some(()));
}

#[test]
fn directory_of_a_killed_server_is_removed_at_the_next_start() {
    let sandbox = Sandbox::new();
    let directories = || -> Vec<_> {
        let entries = sandbox.path().join("tmp").read_dir().unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| name.starts_with("mcpd-commands-"))
            .collect()
    };
    let start = || {
        let mut client = Pipes::start(&sandbox, &["--enable", "run_command"]);
        client.exchange(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
        client
    };
    let killed = start();
    let left = directories();
    assert_eq!(left.len(), 1);
    killed.signal(Signal::KILL);
    // The files are in use until the last thread of the killed process is gone.
    drop(killed);
    wait_until_nothing_left(&sandbox, &[]);
    assert_eq!(directories(), left);

    let _running = start();
    let _another = start();
    let now = directories();
    assert!(now.len() == 2 && !now.contains(&left[0]), "{now:?}");
}
