//! `mcpd install`: the files of clients, as a user sees them change.

use std::fs;
use std::path::PathBuf;

use insta::assert_snapshot;
use mcpd_tests::{Daemon, Sandbox, binary, output};
use serde_json::{Value, json};

const ODD: &str =
    "{\n  // mine\n  \"mcpServers\": {\n\t\"db\": {\"url\": \"http://db\"},\n  },\n}\n";

fn tools() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(&["new", "scripts/greet"]);
    sandbox
}

fn cursor_file(sandbox: &Sandbox) -> PathBuf {
    let directory = sandbox.path().join("home/.cursor");
    fs::create_dir_all(&directory).unwrap();
    directory.join("mcp.json")
}

#[test]
fn server_is_written_checked_and_removed() {
    let sandbox = tools();
    let file = cursor_file(&sandbox);
    fs::write(&file, ODD).unwrap();
    let written = sandbox.run(&["install", "cursor", "scripts", "--yes"]);
    assert!(written.starts_with("exit code: 0"), "{written}");
    assert!(written.contains("Cursor has `mcpd` now"), "{written}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("\"db\": {\"url\": \"http://db\"},\n"),
        "{text}"
    );

    let again = sandbox.run(&["install", "cursor", "scripts", "--yes"]);
    assert!(again.contains("unchanged: `mcpd` is in "), "{again}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);

    assert_snapshot!(sandbox.run(&["install", "cursor", "--check"]), @"
    exit code: 0
    ----- stdout -----
    1 tool
      greet
    no faults in 1 script
    ");
    let removed = sandbox.run(&["install", "cursor", "--remove", "--yes"]);
    assert!(removed.contains("Cursor no longer has `mcpd`"), "{removed}");
    assert_eq!(fs::read_to_string(&file).unwrap(), ODD);
}

#[test]
fn every_client_is_installed_and_restored() {
    let sandbox = tools();
    let list = || -> Vec<Value> {
        let listed = sandbox.stdout(&["install", "--list", "--json"]);
        serde_json::from_slice(&listed).unwrap()
    };
    let clients = list();
    assert!(clients.len() >= 15, "{clients:?}");
    let names = clients
        .iter()
        .map(|client| client["client"].as_str().unwrap());
    for name in names.clone() {
        let installed = sandbox.run(&["install", name, "scripts", "--yes"]);
        assert!(installed.starts_with("exit code: 0"), "{name}: {installed}");
    }
    for client in list() {
        assert_eq!(client["files"][0]["state"], "installed", "{client}");
    }
    for name in names {
        let removed = sandbox.run(&["install", name, "--remove", "--yes"]);
        assert!(removed.starts_with("exit code: 0"), "{name}: {removed}");
    }
    for client in clients {
        let file = PathBuf::from(client["files"][0]["path"].as_str().unwrap());
        assert!(file.starts_with(sandbox.path()), "{}", file.display());
        assert!(!file.exists(), "{}", fs::read_to_string(&file).unwrap());
    }
}

#[test]
fn change_without_consent_or_in_a_broken_file_is_refused() {
    let sandbox = tools();
    let file = cursor_file(&sandbox);
    fs::write(&file, ODD).unwrap();
    let refused = sandbox.run(&["install", "cursor", "scripts"]);
    assert!(refused.starts_with("exit code: 1"), "{refused}");
    assert!(refused.contains("add `--yes` to change it"), "{refused}");
    assert_eq!(fs::read_to_string(&file).unwrap(), ODD);

    let broken = "{\n  \"mcpServers\": {]\n}\n";
    fs::write(&file, broken).unwrap();
    let refused = sandbox.run(&["install", "cursor", "scripts", "--yes"]);
    assert_snapshot!(refused, @"
    exit code: 1
    ----- stderr -----
    `@@REPOSITORY@@/target/debug/mcpd` is in a build directory; install mcpd first, or the client loses it at the next clean-up
    mcpd: error: failed to edit `@@ROOT@@/home/.cursor/mcp.json`: line 2, column 18: not valid JSON with comments: Unexpected token in object; correct the file and try again
    ");
    assert_eq!(fs::read_to_string(&file).unwrap(), broken);
}

#[test]
fn interpreter_that_the_client_lacks_is_found() {
    let sandbox = tools().with_script(
        "odd",
        "#!/usr/bin/env odd-interpreter\n# /// mcpd\n# description = \"Needs a program\"\n# ///\n",
    );
    cursor_file(&sandbox);
    let path = ["--env", "PATH=/usr/bin:/bin"];
    sandbox.run(&[&["install", "cursor", "scripts", "--yes"], &path[..]].concat());
    let checked = sandbox.run(&["install", "cursor", "--check"]);
    assert!(checked.starts_with("exit code: 1"), "{checked}");
    assert!(
        checked.contains("its interpreter `odd-interpreter` cannot be executed"),
        "{checked}"
    );
}

#[test]
fn program_that_is_gone_is_reported() {
    let sandbox = tools();
    let file = cursor_file(&sandbox);
    fs::write(
        &file,
        r#"{"mcpServers": {"mcpd": {"command": "/nowhere/mcpd"}}}"#,
    )
    .unwrap();
    let listed = sandbox.run(&["install", "--list"]);
    assert!(
        listed.contains("the program is gone: /nowhere/mcpd"),
        "{listed}"
    );
    let checked = sandbox.run(&["install", "cursor", "--check"]);
    assert!(checked.starts_with("exit code: 1"), "{checked}");
    assert!(checked.contains("the server cannot be used"), "{checked}");
}

#[test]
fn client_that_takes_no_url_connects_by_mcpd() {
    let sandbox = tools();
    let daemon = Daemon::start(&sandbox, &["scripts"]);
    let token = sandbox.path().join("state/mcpd/agent-token");
    let (url, token) = (daemon.url(), token.to_str().unwrap());
    let url = ["install", "claude-desktop", "--url", &url, "--yes"];
    let installed = sandbox.run(&[&url[..], &["--token-file", token]].concat());
    assert!(installed.starts_with("exit code: 0"), "{installed}");
    let checked = sandbox.run(&["install", "claude-desktop", "--check"]);
    assert!(checked.contains("1 tool\n  greet\n"), "{checked}");

    // A file without references has no place for the name of a variable.
    let refused = sandbox.run(&[&url[..], &["--token-env", "TOKEN"]].concat());
    assert!(refused.contains("can't refer to a variable"), "{refused}");
}

/// Only mcpd itself can check scripts: another program that has `stdio` is not run with `check`.
#[test]
fn other_program_is_started_as_it_is_written() {
    let sandbox = tools();
    let trace = sandbox.path().join("trace");
    let other = format!("#!/bin/sh\necho \"$@\" >> '{}'\n", trace.display());
    let sandbox = sandbox.with_script("other", &other);
    let file = cursor_file(&sandbox);
    let command = sandbox.path().join("scripts/other");
    let entry = json!({"mcpServers": {"mcpd": {"command": command, "args": ["stdio", "scripts"]}}});
    fs::write(&file, entry.to_string()).unwrap();
    sandbox.run(&["install", "cursor", "--check"]);
    let runs = fs::read_to_string(&trace).unwrap();
    assert!(runs.lines().all(|run| run == "stdio scripts"), "{runs}");
}

#[test]
fn file_and_server_of_the_user_are_left_alone() {
    let sandbox = tools();
    let file = cursor_file(&sandbox);
    let own = r#"{ "mcpServers": { "mcpd": { "command": "mine" } } }"#;
    fs::write(&file, own).unwrap();
    let refused = sandbox.run(&["install", "cursor", "scripts", "--yes"]);
    assert!(
        refused.contains("another server of Cursor has this name, `mine`"),
        "{refused}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), own);
    // The file is not one that an installation made, so it stays without its last server.
    sandbox.run(&["install", "cursor", "--remove", "--yes"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{ \"mcpServers\": {} }");

    // Of two installations into it, the first one's copy is what the last removal restores.
    let before = fs::read_to_string(&file).unwrap();
    for name in ["a", "b"] {
        sandbox.run(&["install", "cursor", "scripts", "--yes", "--name", name]);
    }
    for name in ["b", "a"] {
        sandbox.run(&["install", "cursor", "--remove", "--yes", "--name", name]);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}

#[test]
fn secret_in_place_of_a_name_is_not_written() {
    let sandbox = tools();
    let url = ["install", "cursor", "--url", "https://tools.example/mcp"];
    let refused = sandbox.run(&[&url[..], &["--token-env", "sk-s3cret", "--print"]].concat());
    assert!(
        refused.contains("expected the name of a variable"),
        "{refused}"
    );
    assert!(!refused.contains("s3cret"), "{refused}");

    // Nor is a secret of another server shown with the change.
    let file = cursor_file(&sandbox);
    let filler = "x".repeat(200);
    let other = format!(r#"{{"mcpServers": {{"{filler}": {{"env": {{"TOKEN": "s3cret"}}}}}}}}"#);
    fs::write(&file, other).unwrap();
    let installed = sandbox.run(&["install", "cursor", "scripts", "--yes"]);
    assert!(!installed.contains("s3cret"), "{installed}");
}

#[test]
fn several_clients_are_changed_after_one_question() {
    let sandbox = tools();
    let refused = sandbox.run(&["install", "all", "scripts"]);
    assert!(
        refused.contains("failed to find a client: none is here"),
        "{refused}"
    );
    let cursor = cursor_file(&sandbox);
    let codex = sandbox.path().join("home/.codex/config.toml");
    fs::create_dir_all(codex.parent().unwrap()).unwrap();
    let refused = sandbox.run(&["install", "all", "scripts"]);
    assert!(
        refused.contains("mcp.json`: there is no terminal to ask at"),
        "{refused}"
    );
    assert!(!cursor.exists() && !codex.exists());

    // A file that can't be edited does not stop the others, and shows in the exit code.
    fs::write(&codex, "[mcp_servers\n").unwrap();
    let installed = sandbox.run(&["install", "all", "scripts", "--yes"]);
    assert!(installed.starts_with("exit code: 1"), "{installed}");
    assert!(
        installed.contains("mcpd: error: Codex: failed to edit "),
        "{installed}"
    );
    assert!(installed.contains("Cursor has `mcpd` now"), "{installed}");
    fs::remove_file(&codex).unwrap();
    let installed = sandbox.run(&["install", "cursor,codex", "scripts", "--yes"]);
    assert!(
        installed.contains("unchanged: `mcpd` is in "),
        "{installed}"
    );
    assert!(installed.contains("Codex has `mcpd` now"), "{installed}");
    let checked = sandbox.run(&["install", "all", "--check"]);
    assert!(checked.contains("Codex:\n1 tool\n  greet\n"), "{checked}");
    let removed = sandbox.run(&["install", "all", "--remove", "--yes"]);
    assert!(removed.starts_with("exit code: 0"), "{removed}");
    assert!(!cursor.exists() && !codex.exists());
}

/// The file is committed, so that it has to work in other places and for other users.
/// Our transcription of the schema that VS Code has for this file.
const VSCODE_SCHEMA: &str = include_str!("vscode-mcp.schema.json");

#[test]
fn entry_for_vscode_matches_its_schema() {
    let schema = serde_json::from_str(VSCODE_SCHEMA).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let is_valid = |text: &str| schema.is_valid(&serde_json::from_str(text).unwrap());
    assert!(!is_valid(r#"{"servers": {"mcpd": {"cmd": "mcpd"}}}"#));
    for flags in [
        &[][..],
        &["--env", "LEVEL=3", "--pass-env", "API_KEY"],
        &["--transport", "http"],
    ] {
        let sandbox = tools();
        let install = [
            "install", "vscode", "scripts", "--scope", "project", "--yes",
        ];
        let said = sandbox.run(&[&install[..], flags].concat());
        let text = fs::read_to_string(sandbox.path().join(".vscode/mcp.json"));
        let text = text.unwrap_or_else(|_| panic!("{said}"));
        assert!(is_valid(&text), "{text}");
    }
}

#[test]
fn entry_of_a_project_works_where_the_project_is_moved() {
    let sandbox = tools();
    let project = sandbox.path().join("project");
    fs::create_dir(&project).unwrap();
    fs::rename(sandbox.path().join("scripts"), project.join("scripts")).unwrap();
    let run = |project: &PathBuf, arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        let mcpd = binary().parent().unwrap().to_owned();
        let path = std::env::join_paths([mcpd, "/usr/bin".into(), "/bin".into()]).unwrap();
        let output = output(
            {
                command.current_dir(project).env("PATH", path);
                command
            },
            b"",
        );
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!(
            "{}{}{}",
            output.status,
            text(&output.stdout),
            text(&output.stderr)
        )
    };
    let scope = ["--scope", "project", "--yes"];
    for client in ["claude-code", "vscode", "cursor"] {
        let installed = run(
            &project,
            &[&["install", client, "scripts"], &scope[..]].concat(),
        );
        assert!(
            installed.contains("every user of this project needs mcpd in"),
            "{installed}"
        );
    }
    let text = fs::read_to_string(project.join(".vscode/mcp.json")).unwrap();
    assert!(text.contains(r#""${workspaceFolder}/scripts""#), "{text}");
    assert!(!text.contains(sandbox.path().to_str().unwrap()), "{text}");
    let moved = sandbox.path().join("moved");
    fs::rename(&project, &moved).unwrap();
    for client in ["claude-code", "vscode", "cursor"] {
        let checked = run(
            &moved,
            &["install", client, "--scope", "project", "--check"],
        );
        assert!(
            checked.contains("1 tool\n  greet\nno faults in 1 script"),
            "{checked}"
        );
    }
    // A client without a way to say it gets a path of this machine, and the user is told.
    let installed = run(
        &moved,
        &[&["install", "kiro", "scripts"], &scope[..]].concat(),
    );
    assert!(
        installed.contains("is a path of this machine"),
        "{installed}"
    );
}

#[test]
fn unknown_client_gets_the_known_ones() {
    let sandbox = Sandbox::new();
    let refused = sandbox.run(&["install", "cursr", "scripts"]);
    assert!(refused.contains("did you mean `cursor`?"), "{refused}");
    let refused = sandbox.run(&["list", "nope:x"]);
    assert!(
        refused.contains("there is no client `nope`; known are amp, "),
        "{refused}"
    );
    let refused = sandbox.run(&["list", "HTTP://127.0.0.1:1/mcp"]);
    assert!(refused.starts_with("exit code: 4"), "{refused}");
}

/// Continue has a file for each server.
#[test]
fn entry_in_a_file_of_its_own_is_found_by_any_name() {
    let sandbox = tools();
    sandbox.run(&["install", "continue", "scripts", "--name", "mine", "--yes"]);
    let found = sandbox.run(&["discover"]);
    assert!(found.contains("continue:mine"), "{found}");
    let listed = sandbox.run(&["list", "continue:mine"]);
    assert!(listed.contains("greet"), "{listed}");
}

#[test]
fn transport_is_the_one_that_was_asked_for() {
    let sandbox = Sandbox::new();
    let print = |client: &str, transport: &[&str]| {
        let words = [
            "install",
            client,
            "--url",
            "https://tools.example/mcp",
            "--print",
        ];
        sandbox.run(&[&words[..], transport].concat())
    };
    assert!(print("cursor", &[]).contains(r#""url": "https://tools.example/mcp""#));
    assert!(print("cursor", &["--transport", "stdio"]).contains(r#"["connect", "https:"#));
    let refused = print("claude-desktop", &["--transport", "http"]);
    assert!(
        refused.contains("Claude Desktop takes no URL in its file"),
        "{refused}"
    );
}
