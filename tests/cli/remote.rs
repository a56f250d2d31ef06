//! Commands for remote servers: a URL, a command behind `--`, an entry of a client.

use insta::assert_snapshot;
use mcpd_tests::{Daemon, Sandbox, binary};

fn tools() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(&["new", "scripts/greet"]);
    sandbox.run(&["new", "scripts/hello", "--resource"]);
    sandbox.run(&["new", "scripts/welcome", "--prompt"]);
    sandbox
}

#[test]
fn server_at_a_url_is_used_like_a_directory() {
    let sandbox = tools();
    let daemon = Daemon::start(&sandbox, &["scripts"]);
    let url = daemon.url();
    let sandbox = sandbox.with_variable("TOOLS_TOKEN", daemon.token().unwrap());
    let token = ["--token-env", "TOOLS_TOKEN"];
    let run = |arguments: &[&str]| sandbox.run(&[arguments, &token].concat());
    assert_snapshot!(run(&["list", &url]), @"
    exit code: 0
    ----- stdout -----
    greet(name: string)  Greet someone by name
    ----- stderr -----
    also served: `--prompts` lists 1, `--resources` lists 1
    ");
    assert!(run(&["describe", &url, "greet"]).contains("name: string from 1 to 100"));
    assert_snapshot!(run(&["call", &url, "greet", "name=World"]), @"
    exit code: 0
    ----- stdout -----
    Hello, World!
    ");
    assert_snapshot!(run(&["prompt", &url, "welcome", "name=World"]), @"
    exit code: 0
    ----- stdout -----
    user:
    Hello, World!
    ");
    assert_snapshot!(run(&["read", &url, "notes://hello"]), @"
    exit code: 0
    ----- stdout -----
    Hello!
    ");
    let refused = sandbox.run(&["list", &url]);
    assert!(refused.starts_with("exit code: 3\n"), "{refused}");
    drop(daemon);
    let unreachable = sandbox.run(&["call", &url, "greet"]);
    assert!(unreachable.starts_with("exit code: 4\n"), "{unreachable}");
}

#[test]
fn command_behind_dashes_is_started() {
    let sandbox = tools();
    let mcpd = binary().to_str().unwrap();
    let server = ["--", mcpd, "stdio", "scripts"];
    let called = sandbox.run(&[&["call", "-", "greet", "name=World"], &server[..]].concat());
    assert_snapshot!(called, @"
    exit code: 0
    ----- stdout -----
    Hello, World!
    ");
    assert_snapshot!(sandbox.run(&["list", "-"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to use the server `-`: add `--` and the command that starts it
    ");
    let misplaced = sandbox.run(&[&["list", "scripts"], &server[..]].concat());
    assert!(
        misplaced.contains("it needs `-` in place of `scripts`"),
        "{misplaced}"
    );
    let missing = sandbox.run(&["list", "-", "--", "no-such-program"]);
    assert!(missing.starts_with("exit code: 4\n"), "{missing}");
}

#[test]
fn entry_of_a_client_is_found_and_used() {
    let sandbox = tools();
    sandbox.run(&["install", "cursor", "scripts", "--yes", "--name", "mine"]);
    let found = sandbox.run(&["discover"]);
    assert!(found.contains("cursor:mine  "), "{found}");
    let called = sandbox.run(&["call", "cursor:mine", "greet", "name=World"]);
    assert_snapshot!(called, @"
    exit code: 0
    ----- stdout -----
    Hello, World!
    ");
    assert_snapshot!(sandbox.run(&["list", "cursor:other"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to find the server `other` of Cursor: it has `mine`
    ");
}
