//! Directory that a client works in: where it started mcpd, or its roots, as far as they are
//! allowed.

use std::fs;
use std::path::Path;

use mcpd_tests::{Daemon, Pipes, Sandbox};
use serde_json::{Value, json};

use crate::{Server as _, call};

const TELL: &str = "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{}'; exit; }\npwd\necho \"$MCPD_CLIENT_DIR\"\necho x 2>/dev/null > written && echo written\ntrue\n";

fn sandbox(further: &str) -> Sandbox {
    let sandbox = Sandbox::new()
        .with_script("here", TELL)
        .with_script("root", TELL);
    for directory in ["src/one", "src/two", "elsewhere"] {
        fs::create_dir_all(sandbox.path().join(directory)).unwrap();
    }
    let configuration = format!(
        "client_directories = [\"src\"]\n{further}[[tool]]\nmatch = \"here\"\nrun_in = \"client\"\n"
    );
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    sandbox
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// Opens a session of a client with roots.
fn initialize(pipes: &mut Pipes) {
    pipes.exchange(
        &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"roots": {"listChanged": true}},
            "clientInfo": {"name": "test", "version": "1"},
        }}),
    );
}

/// Calls the tool, and answers the question for roots, which must come if `root` is given.
fn call_from(pipes: &mut Pipes, root: Option<&Path>) -> Value {
    let request =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "here"}});
    pipes.send(request.to_string().as_bytes());
    let mut answer = pipes.receive();
    if let Some(root) = root {
        assert_eq!(answer["method"], "roots/list", "{answer}");
        let uri = format!("file://{}", root.display());
        let roots =
            json!({"jsonrpc": "2.0", "id": answer["id"], "result": {"roots": [{"uri": uri}]}});
        pipes.send(roots.to_string().as_bytes());
        answer = pipes.receive();
    }
    answer["result"].take()
}

#[test]
fn roots_are_asked_once_and_followed() {
    let sandbox = sandbox("");
    let at = |path: &str| sandbox.path().join(path).canonicalize().unwrap();
    let mut pipes = Pipes::start(&sandbox, &["--config", "mcpd.toml"]);
    initialize(&mut pipes);
    let shown = |path: &str| {
        let path = at(path).display().to_string();
        format!("{path}\n{path}\nwritten")
    };
    assert_eq!(
        text(&call_from(&mut pipes, Some(&at("src/one")))),
        shown("src/one")
    );
    assert_eq!(text(&call_from(&mut pipes, None)), shown("src/one"));
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    pipes.send(changed.to_string().as_bytes());
    assert_eq!(
        text(&call_from(&mut pipes, Some(&at("src/two")))),
        shown("src/two")
    );
    pipes.send(changed.to_string().as_bytes());
    let refused = call_from(&mut pipes, Some(&at("elsewhere")));
    assert_eq!(refused["isError"], true);
    let expected = "which lies in no directory that the operator allows";
    assert!(text(&refused).contains(expected), "{refused}");
    assert!(!at("elsewhere").join("written").exists());
    pipes.send(changed.to_string().as_bytes());
    let dangling = call_from(&mut pipes, Some(Path::new("/nonexistent")));
    assert!(
        text(&dangling).contains("no directory on this machine"),
        "{dangling}"
    );
}

#[test]
fn client_without_roots_works_where_it_started_mcpd() {
    let sandbox = sandbox("");
    let started_in = |directory: &str| {
        let mut command =
            sandbox.command(&["stdio", "../../scripts", "--config", "../../mcpd.toml"]);
        command.current_dir(sandbox.path().join(directory));
        Pipes::of(command)
    };
    let one = sandbox.path().join("src/one").canonicalize().unwrap();
    let one = one.display();
    let mut pipes = started_in("src/one");
    let here = pipes.call("here", json!({}));
    assert_eq!(text(&here), format!("{one}\n{one}\nwritten"));
    let root = pipes.call("root", json!({}));
    let scripts = sandbox.path().join("scripts").canonicalize().unwrap();
    assert_eq!(
        text(&root),
        format!("{}\n{one}\nwritten", scripts.display())
    );
}

#[test]
fn confined_script_writes_there_only_if_its_sandbox_says_so() {
    for (key, written) in [("", ""), ("write_client_directory = true\n", "\nwritten")] {
        let sandbox = sandbox(&format!(
            "[sandbox.project]\n{key}[[tool]]\nmatch = \"*\"\nsandbox = \"project\"\n"
        ));
        let one = sandbox.path().join("src/one").canonicalize().unwrap();
        let mut pipes = Pipes::start(&sandbox, &["--config", "mcpd.toml"]);
        initialize(&mut pipes);
        let shown = format!("{0}\n{0}{written}", one.display());
        let result = call_from(&mut pipes, Some(&one));
        assert!(text(&result).starts_with(&shown), "{result}");
        assert_eq!(one.join("written").exists(), !key.is_empty(), "{result}");
    }
}

#[test]
fn client_over_http_names_no_directory_of_this_machine() {
    let sandbox = sandbox("");
    let mut daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
    let refused = daemon.call("here", json!({}));
    assert!(
        text(&refused).contains("the client names no directory"),
        "{refused}"
    );
    let (_, body) = daemon
        .client()
        .post(&call("root", json!({})).to_string())
        .unwrap();
    assert!(!body.contains("src"), "{body}");
}
