//! Selections of tools: by the token, the address or the name of a client, and by flags.

use std::fs;

use mcpd_tests::{Client, Daemon, Pipes, Sandbox};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::callers::hash;
use crate::{Server as _, call};

const PROFILES: &str = "[profile.small]\ntools = [\"greet\", \"git/*\"]\nmax_tools = 2\n\
    [profile.reader]\nread_only = true\nclients = [\"cursor*\"]\n";

fn sandbox() -> Sandbox {
    let script = |tags: &str, is_read_only: bool| {
        format!(
            "#!/bin/sh\n[ \"$1\" = --help ] && {{ echo '{{\"tags\": [{tags}], \"annotations\": {{\"read_only\": {is_read_only}}}}}'; exit; }}\necho done\n"
        )
    };
    Sandbox::new()
        .with_script("deploy", &script("", false))
        .with_script("git/log", &script("\"git\"", true))
        .with_script("git/push", &script("\"git\"", false))
        .with_script("greet", &script("", true))
}

/// Makes a list request of the client called `client`.
fn list(client: &str) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}})
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[track_caller]
fn check(client: &Client, name: &str, path: &str, expected: &[&str]) {
    let client = client
        .clone()
        .with_header("mcp-protocol-version", "2026-07-28");
    let client = client.with_header("mcp-method", "tools/list");
    let request = list(name).to_string();
    let (_, body) = client.exchange(&format!("POST {path}"), &request).unwrap();
    assert_eq!(names(&serde_json::from_str(&body).unwrap()), expected);
}

#[test]
fn profile_is_chosen_by_token_address_and_client() {
    let sandbox = sandbox();
    let configuration = format!(
        "{PROFILES}[[token]]\nname = \"b\"\nsha256 = \"{}\"\nprofile = \"small\"\n",
        hash("token-b")
    );
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
    let agent = daemon.client();
    let all = ["deploy", "git_log", "git_push", "greet"];
    check(&agent, "x", "/mcp", &all);
    check(&agent, "x", "/mcp/small", &["git_log", "greet"]);
    check(&agent, "x", "/mcp/small/", &["git_log", "greet"]);
    check(&agent, "cursor-vscode", "/mcp", &["git_log", "greet"]);
    check(
        &agent,
        "cursor-vscode",
        "/mcp/reader",
        &["git_log", "greet"],
    );
    let b = agent.with_token(Some("token-b"));
    check(&b, "x", "/mcp", &["git_log", "greet"]);
    check(&b, "x", "/mcp/reader", &["git_log", "greet"]);
    let (head, body) = agent.exchange("POST /mcp/other", "{}").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 404") && body.contains("no such profile"),
        "{body}"
    );
    let (head, _) = agent
        .with_token(None)
        .exchange("POST /mcp/small", "{}")
        .unwrap();
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    let (_, body) = b.post(&call("deploy", json!({})).to_string()).unwrap();
    assert!(body.contains("unknown tool `deploy`"), "{body}");

    let smaller = PROFILES.replace("max_tools = 2", "max_tools = 1");
    fs::write(sandbox.path().join("mcpd.toml"), smaller).unwrap();
    daemon.signal(Signal::HUP);
    daemon.wait_for_line("configuration reloaded");
    check(&agent, "x", "/mcp/small", &["greet"]);
}

#[test]
fn flags_select_for_the_whole_server() {
    #[track_caller]
    fn check(sandbox: &Sandbox, flags: &[&str], expected: &[&str]) {
        let arguments = [&["scripts"], flags].concat();
        let mut pipes = Pipes::start(sandbox, &arguments);
        assert_eq!(names(&pipes.exchange(&list("x"))), expected, "{flags:?}");
    }
    let sandbox = sandbox();
    check(
        &sandbox,
        &["--tools", "git/*,greet", "--exclude", "*/push"],
        &["git_log", "greet"],
    );
    check(&sandbox, &["--tags", "git", "--read-only"], &["git_log"]);
    check(&sandbox, &["--max-tools", "1"], &["deploy"]);
}

#[test]
fn server_without_the_token_of_mcpd_knows_configured_clients_only() {
    let sandbox = sandbox();
    let configuration = sandbox.path().join("mcpd.toml");
    fs::write(&configuration, "agent_token = false\n").unwrap();
    let serve = ["serve", "scripts", "--config", "mcpd.toml", "--port", "0"];
    let refused = sandbox.run(&serve);
    assert!(
        refused.contains("no client could identify itself"),
        "{refused}"
    );
    let new = [
        "token",
        "new",
        "reports",
        "--write",
        "--config",
        "mcpd.toml",
        "--tools",
        "greet",
    ];
    let token = String::from_utf8(sandbox.stdout(&new)).unwrap();
    let daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
    assert_eq!(daemon.token(), None);
    let client = Client::new(daemon.address(), Some(token.trim()));
    check(&client, "x", "/mcp", &["greet"]);
    let state = sandbox.path().join("state/mcpd/agent-token");
    assert!(!state.exists(), "no token was made");
    let revoked = sandbox.run(&["token", "revoke", "reports", "--config", "mcpd.toml"]);
    assert!(revoked.contains("is removed from mcpd.toml"), "{revoked}");
    assert_eq!(
        fs::read_to_string(configuration).unwrap().trim(),
        "agent_token = false"
    );
}
