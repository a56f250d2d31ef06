//! Tokens and rules on the command line: `mcpd token`, `[[token]]`, `[[rule]]`, and the discovery
//! of servers.

use std::fs;

use insta::assert_snapshot;
use mcpd_tests::{Client, Daemon, Sandbox, eventually};
use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox;

const LIST: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;

/// Returns the tool names listed for a client, or the status if there is no list.
fn names(client: &Client) -> Result<Vec<String>, u16> {
    match client.post(LIST).unwrap() {
        (200, body) => {
            let answer: Value = serde_json::from_str(&body).unwrap();
            let tools = answer["result"]["tools"].as_array().unwrap().iter();
            Ok(tools
                .map(|tool| tool["name"].as_str().unwrap().to_owned())
                .collect())
        }
        (status, _) => Err(status),
    }
}

/// Creates a token for `name`. Returns it, and its entry for the configuration.
fn new_token(sandbox: &Sandbox, name: &str) -> (String, String) {
    let output = sandbox.command(&["token", "new", name]).output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    let table = said[said.find("[[token]]").unwrap()..].to_owned();
    (
        String::from_utf8(output.stdout).unwrap().trim().to_owned(),
        table,
    )
}

#[test]
fn token_grants_the_tools_of_its_client() {
    let sandbox = sandbox();
    let (secret, table) = new_token(&sandbox, "reader");
    let config = format!(
        "{table}tools = [\"math/*\", \"hello\"]\n\n[[rule]]\nclients = [\"reader\"]\ndeny = [\"hello\"]\n"
    );
    assert!(!config.contains(&secret));
    fs::write(sandbox.path().join("mcpd.toml"), config).unwrap();
    let daemon = Daemon::start(&sandbox, &[]);
    let reader = daemon.client().with_token(Some(&secret));
    assert_eq!(names(&reader).unwrap(), ["math_calc"]);
    assert!(
        names(&daemon.client())
            .unwrap()
            .contains(&"hello".to_owned())
    );
    assert_eq!(names(&reader.with_token(None)), Err(401));
}

#[test]
fn tokens_are_hot_reloaded() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &[]);
    let before = daemon.client();
    assert!(names(&before).is_ok());
    let second = Daemon::start(&sandbox, &[]);
    assert_snapshot!(sandbox.run(&["token", "rotate"]), @"
    exit code: 0
    ----- stderr -----
    New token written to @@ROOT@@/state/mcpd/agent-token. A server that uses this file accepts it within two seconds and no longer accepts the old one.
    ");
    let file = sandbox.path().join("state/mcpd/agent-token");
    let token = fs::read_to_string(file).unwrap();
    let after = before.with_token(Some(token.trim()));
    eventually("the new token is accepted", || names(&after).ok());
    assert!(names(&before).is_err());
    let after = second.client().with_token(Some(token.trim()));
    eventually("the other server accepts it as well", || names(&after).ok());
    assert!(names(&second.client()).is_err());

    let (secret, table) = new_token(&sandbox, "reader");
    fs::write(sandbox.path().join("mcpd.toml"), table).unwrap();
    daemon.signal(Signal::HUP);
    let reader = before.with_token(Some(&secret));
    eventually("the new client is accepted", || names(&reader).ok());
    // A reload with an invalid configuration changes nothing.
    fs::write(sandbox.path().join("mcpd.toml"), "[[token]]\n").unwrap();
    daemon.signal(Signal::HUP);
    assert!(names(&reader).is_ok());
}

#[test]
fn token_that_mcpd_makes_is_listed_unless_it_is_not_accepted() {
    let sandbox = sandbox();
    let listed = |arguments: &[&str]| sandbox.run(&[&["token", "list"], arguments].concat());
    let file = "agent  all tools (the token that mcpd makes, in @@ROOT@@/state/mcpd/agent-token";
    assert!(listed(&[]).contains(&format!("{file}, not made yet)\n")));
    sandbox.run(&["token", "rotate"]);
    assert!(listed(&[]).contains(&format!("{file})\n")));
    assert!(listed(&["--token-file", "own"]).contains("@@ROOT@@/own, not made yet)"));
    fs::write(sandbox.path().join("off.toml"), "agent_token = false\n").unwrap();
    let off = listed(&["--config", "off.toml"]);
    assert!(off.contains("There is no token for `agent`"), "{off}");
    assert!(!off.contains("agent  all tools"), "{off}");
    let off = listed(&["--config", "off.toml", "--json"]);
    assert!(off.contains("[]"), "{off}");
}

#[test]
fn wrong_tokens_are_rate_limited_and_right_ones_are_not() {
    let daemon = Daemon::start(&sandbox(), &[]);
    let wrong = daemon.client().with_token(Some("wrong"));
    let statuses: Vec<_> = (0..12).map(|_| names(&wrong).unwrap_err()).collect();
    assert_eq!((statuses[9], statuses[10], statuses[11]), (401, 429, 429));
    assert!(names(&daemon.client()).is_ok());
}

#[test]
fn server_file_exists_while_serving() {
    let sandbox = sandbox();
    let file = sandbox.path().join("state/mcpd/server.json");
    let daemon = Daemon::start(&sandbox, &[]);
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains(daemon.token().unwrap()));
    let text = sandbox
        .redact(&text)
        .replace(daemon.address(), "@@ADDRESS@@");
    assert_snapshot!(text.replace(&daemon.id().to_string(), "@@PID@@"), @r#"
    {
      "url": "http://@@ADDRESS@@/mcp",
      "token_path": "@@ROOT@@/state/mcpd/agent-token",
      "pid": @@PID@@,
      "version": "0.1.0",
      "capabilities": {
        "tools": {
          "listChanged": true
        },
        "resources": {
          "subscribe": true,
          "listChanged": true
        },
        "prompts": {
          "listChanged": true
        },
        "completions": {},
        "extensions": {
          "io.modelcontextprotocol/tasks": {}
        }
      }
    }
    "#);

    let second = Daemon::start(&sandbox, &[]);
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .contains(second.address())
    );
    daemon.signal(Signal::TERM);
    daemon.wait();
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .contains(second.address()),
        "it is another's"
    );
    let third = Daemon::start(&sandbox, &[]);
    third.signal(Signal::TERM);
    third.wait();
    eventually("the one that is left is found again", || {
        let found = fs::read_to_string(&file).ok()?;
        found.contains(second.address()).then_some(())
    });
    second.signal(Signal::TERM);
    second.wait();
    assert!(!file.exists());
}

#[track_caller]
fn check_refused(config: &str, expected: &str) {
    check_refused_with(&[], config, expected);
}

#[track_caller]
fn check_refused_with(arguments: &[&str], config: &str, expected: &str) {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("mcpd.toml"), config).unwrap();
    let output = sandbox
        .command(&[&["serve", "scripts", "--port", "0"], arguments].concat())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(expected), "{said}");
    assert!(!output.status.success());
}

#[test]
fn indistinguishable_clients_are_refused() {
    let hash = "0".repeat(64);
    check_refused(
        &format!("[[token]]\nname = \"agent\"\nsha256 = \"{hash}\"\n"),
        "mcpd.toml:2:8: in [[token]]: `name`: this name is reserved",
    );
    check_refused(
        "[[token]]\nname = \"a\"\nsha256 = \"12\"\n",
        "mcpd.toml:3:10: in [[token]]: `sha256`: expected 64 hexadecimal digits",
    );
    let table = format!("[[token]]\nname = \"a\"\nsha256 = \"{hash}\"\n");
    check_refused(
        &table.repeat(2),
        "mcpd.toml:5:8: in [[token]]: `name`: another client already has this name",
    );
    check_refused(
        &(table.clone() + &table.replace("\"a\"", "\"b\"")),
        "mcpd.toml:6:10: in [[token]]: `sha256`: another client already has this hash",
    );
    let args = ["--tls-client-ca", "ca.pem"];
    let certificate = table.replace("token", "certificate");
    check_refused_with(
        &args,
        &(table + &certificate),
        "mcpd.toml:5:8: in [[certificate]]: `name`: another client already has this name",
    );
    check_refused_with(
        &args,
        "[[certificate]]\nname = \"a\"\nsha256 = \"12\"\n",
        "mcpd.toml:3:10: in [[certificate]]: `sha256`: expected 64 hexadecimal digits",
    );
}

#[test]
fn empty_rule_is_refused() {
    check_refused(
        "[[rule]]\n",
        "mcpd.toml:1:1: in [[rule]]: a rule needs either `allow` or `deny`",
    );
    check_refused(
        "[[rule]]\nallow = []\n",
        "mcpd.toml:2:9: in [[rule]]: `allow`: expected at least one pattern",
    );
    check_refused(
        "[[rule]]\nallow = [\"greet\"]\narguments = { name = [] }\n",
        "mcpd.toml:3:15: in [[rule]]: `arguments`: expected at least one pattern for `name`",
    );
    check_refused(
        "[[rule]]\nclients = [\"agnet\"]\ndeny = [\"**\"]\n",
        "mcpd.toml:2:12: in [[rule]]: `clients`: there is no client `agnet`; did you mean `agent`?",
    );
    check_refused(
        "[[rule]]\ndeny = [\"[\"]\n",
        "`deny`: failed to parse the pattern `[`",
    );
}

#[test]
fn rules_apply_over_stdio() {
    let sandbox = sandbox();
    let config = "[[rule]]\nallow = [\"math/calc\"]\narguments = { operation = [\"add\"] }\n";
    fs::write(sandbox.path().join("rules.toml"), config).unwrap();
    let call = |operation: &str| {
        let message = format!(
            "{{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\", \"params\": {{\"name\": \"math_calc\", \
             \"arguments\": {{\"operation\": \"{operation}\", \"a\": 1}}}}}}\n"
        );
        sandbox.run_with_stdin(&["stdio", "scripts", "--config", "rules.toml"], &message)
    };
    assert!(call("add").contains("\"isError\":false"));
    assert!(call("subtract").contains("only `add` is allowed"));
}
