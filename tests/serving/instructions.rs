//! Instructions of a server that has no tools, or fewer than its operator expects: they count the
//! missing ones and name the commands that explain why, in both generations of MCP.

use std::fs;

use mcpd_tests::{Daemon, Pipes, Sandbox, eventually, output};
use serde_json::{Value, json};

use super::Server;

const TOOL: &str = "#!/bin/sh\necho '{\"description\": \"Greets\"}'\n";
const FAULTY_SCRIPT: &str = "#!/bin/sh\necho '{\"description\": 1}'\n";

/// Returns the instructions of `initialize` and of `server/discover`, which must be equal.
#[track_caller]
fn instructions(server: &mut dyn Server) -> String {
    let [first, second] = both_instructions(server);
    assert_eq!(first, second);
    first
}

/// Returns the instructions of `initialize`, and then those of `server/discover`.
#[track_caller]
fn both_instructions(server: &mut dyn Server) -> [String; 2] {
    let client = json!({ "name": "test", "version": "1" });
    let version = "2025-06-18";
    let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": client,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let discover = json!({ "jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": { "_meta": meta } });
    [initialize, discover].map(|message| {
        let answer = server.exchange(&message);
        assert!(answer["result"].is_object(), "{answer}");
        let instructions = answer["result"]["instructions"].as_str();
        instructions.unwrap_or_default().to_owned()
    })
}

/// Returns the instructions over stdio, where the first message precedes the first scan, and over
/// HTTP, where they contain no paths of this machine; both must be equal.
#[track_caller]
fn instructions_on_each_transport(sandbox: &Sandbox) -> String {
    let configuration = sandbox.path().join("mcpd.toml");
    let configured = ["--config", configuration.to_str().unwrap()];
    let arguments = if configuration.exists() {
        &configured[..]
    } else {
        &[]
    };
    let over_stdio = instructions(&mut Pipes::start(sandbox, arguments));
    let over_http = instructions(&mut DiscoveringDaemon(Daemon::start(sandbox, arguments)));
    let over_stdio = sandbox.redact(&over_stdio);
    assert_eq!(over_stdio.replace(" @@ROOT@@/scripts", ""), over_http);
    over_stdio
}

/// Daemon that gets the headers of the stateless wire, which HTTP requires.
struct DiscoveringDaemon(Daemon);

impl Server for DiscoveringDaemon {
    fn exchange_raw(&mut self, message: &str) -> Value {
        let mut client = self.0.client();
        if message.contains("server/discover") {
            client = client
                .with_header("MCP-Protocol-Version", "2026-07-28")
                .with_header("Mcp-Method", "server/discover");
        }
        let (status, body) = client.post(message).unwrap();
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    fn id(&self) -> u32 {
        self.0.id()
    }
}

#[test]
fn empty_directory_names_commands_for_the_operator() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path().join("scripts/notes.txt"), "Notes").unwrap();
    let told = instructions_on_each_transport(&sandbox);
    assert_eq!(
        told,
        "This server offers nothing: none of its files is a tool, a prompt or a resource. The operator \
         can list the status of every file with `mcpd list --all @@ROOT@@/scripts`."
    );
    let listed = sandbox.run(&["list", "--all", "scripts"]);
    assert!(listed.contains("notes.txt"), "{listed}");
}

#[test]
fn faulty_files_are_counted_after_the_configured_instructions() {
    let sandbox = Sandbox::new().with_script("tool", TOOL);
    let configuration = sandbox.path().join("mcpd.toml");
    fs::write(configuration, "[server]\ninstructions = \"Be kind.\"\n").unwrap();
    assert_eq!(instructions_on_each_transport(&sandbox), "Be kind.");
    sandbox.write_script("faulty", FAULTY_SCRIPT);
    assert_eq!(
        instructions_on_each_transport(&sandbox),
        "Be kind.\n\nOne file is faulty and not served. The operator can list the reasons with `mcpd check @@ROOT@@/scripts`."
    );
    sandbox.write_script("also-faulty", FAULTY_SCRIPT);
    let told = instructions_on_each_transport(&sandbox);
    assert!(
        told.contains("2 files are faulty and not served."),
        "{told}"
    );
    let checked = output(sandbox.command(&["check", "scripts"]), b"");
    assert!(sandbox.transcript(&checked).contains("2 errors"));
}

#[test]
fn directory_without_faults_adds_no_instructions() {
    let sandbox = Sandbox::new().with_script("tool", TOOL);
    assert_eq!(instructions_on_each_transport(&sandbox), "");
}

#[test]
fn file_in_each_root_adds_instructions_after_the_configured_ones() {
    let sandbox = Sandbox::new().with_script("tool", TOOL);
    let configuration = sandbox.path().join("mcpd.toml");
    let other = sandbox.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(
        sandbox.path().join("scripts/INSTRUCTIONS.md"),
        "Look first.\n",
    )
    .unwrap();
    fs::write(other.join("INSTRUCTIONS.md"), "Pay last.\n").unwrap();
    fs::write(&configuration, "[server]\ninstructions = \"Be kind.\"\n").unwrap();
    let arguments = ["other", "--config", configuration.to_str().unwrap()];
    let mut server = Pipes::start(&sandbox, &arguments);
    assert_eq!(
        instructions(&mut server),
        "Be kind.\n\nLook first.\n\nPay last."
    );
    fs::write(other.join("INSTRUCTIONS.md"), "Pay first.\n").unwrap();
    // The change may come between two answers.
    eventually("the instructions change", || {
        let both = both_instructions(&mut server);
        both.iter()
            .all(|text| text.ends_with("Pay first."))
            .then_some(())
    });
    fs::write(other.join("INSTRUCTIONS.md"), "x".repeat(20_000)).unwrap();
    eventually("the long file is refused", || {
        let both = both_instructions(&mut server);
        both.iter()
            .all(|text| text.starts_with("Be kind.\n\nLook first.\n\nOne file is faulty"))
            .then_some(())
    });
    let listed = sandbox.run(&["list", "--all", "scripts", "other"]);
    assert_eq!(
        listed.matches("scripts/INSTRUCTIONS.md").count(),
        1,
        "{listed}"
    );
    assert!(
        listed.contains("ignored: instructions of the server"),
        "{listed}"
    );
    let checked = sandbox.run(&["check", "other"]);
    assert!(checked.contains("longer than the 16384 bytes"), "{checked}");
}
