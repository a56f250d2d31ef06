//! Applications that read and start what `mcpd install` wrote into their configuration, with their
//! own command line.

use std::fs;
use std::time::Duration;

use mcpd_tests::{Sandbox, output_within};
use serde_json::{Value, json};

use crate::programs::{Family, Program, installed_programs, skip};
use crate::roots;

const APPLICATIONS: Family = Family {
    name: "Applications",
    size: 4,
};

/// Fallback time limit; some check for updates first, in vain.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Application with the examples in its configuration.
struct Application {
    sandbox: Sandbox,
    program: Program,
}

impl Application {
    /// Installs the examples for a client, whose program has this word in its path.
    #[track_caller]
    fn with_examples(client: &str, word: &str) -> Option<Self> {
        let programs = match installed_programs(APPLICATIONS) {
            Ok(programs) => programs,
            Err(reason) => {
                skip(APPLICATIONS, &reason);
                return None;
            }
        };
        let mut programs = programs.into_iter();
        let program = programs.find(|program| program.file.contains(word));
        let sandbox = Sandbox::new();
        let written = sandbox.run(&["install", client, &roots()[0], "--yes"]);
        assert!(written.contains("has `mcpd` now"), "{written}");
        Some(Self {
            sandbox,
            program: program.expect("setup lists the application"),
        })
    }

    /// Runs the application, and returns what it prints on stdout and stderr.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> [String; 2] {
        let Program {
            interpreter, file, ..
        } = &self.program;
        let mut command = self.sandbox.program(interpreter);
        if file != interpreter {
            command.arg(file);
        }
        command.args(arguments);
        let output = output_within(TIMEOUT, command, b"");
        let transcript = self.sandbox.transcript(&output);
        assert!(output.status.success(), "{transcript}");
        [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8(bytes).expect("applications print UTF-8"))
    }

    #[track_caller]
    fn run_json(&self, arguments: &[&str]) -> Value {
        let [printed, _] = self.run(arguments);
        serde_json::from_str(&printed).expect(&printed)
    }
}

#[test]
fn codex_reads_its_entry() {
    let Some(codex) = Application::with_examples("codex", "codex") else {
        return;
    };
    let servers = codex.run_json(&["mcp", "list", "--json"]);
    assert_eq!(servers[0]["name"], "mcpd");
    assert_eq!(servers[0]["enabled"], true);
    assert_eq!(servers[0]["transport"]["type"], "stdio");
    assert_eq!(
        servers[0]["transport"]["args"],
        json!(["stdio", roots()[0]])
    );
}

#[test]
fn claude_code_connects() {
    let Some(claude) = Application::with_examples("claude-code", "claude") else {
        return;
    };
    let [servers, _] = claude.run(&["mcp", "list"]);
    let line = servers.lines().find(|line| line.starts_with("mcpd:"));
    assert!(
        line.is_some_and(|line| line.ends_with("Connected")),
        "{servers}"
    );
}

#[test]
fn gemini_cli_connects() {
    let Some(gemini) = Application::with_examples("gemini-cli", "gemini") else {
        return;
    };
    // It starts servers in directories that its user trusts.
    let trusted = json!({ gemini.sandbox.path().to_str().unwrap(): "TRUST_FOLDER" });
    let file = gemini
        .sandbox
        .path()
        .join("home/.gemini/trustedFolders.json");
    fs::write(file, trusted.to_string()).unwrap();
    let [_, servers] = gemini.run(&["mcp", "list"]);
    let line = servers.lines().find(|line| line.contains("mcpd:"));
    assert!(
        line.is_some_and(|line| line.ends_with("Connected")),
        "{servers}"
    );
}

#[test]
fn mcporter_lists_the_tools() {
    let Some(mcporter) = Application::with_examples("mcporter", "mcporter") else {
        return;
    };
    let listed = mcporter.run_json(&["list", "--json"]);
    let server = &listed["servers"][0];
    assert_eq!(server["status"], "ok", "{listed}");
    let tools = server["tools"].as_array().unwrap();
    let mut names = tools.iter().map(|tool| &tool["name"]);
    assert!(names.any(|name| name == "greet"), "{listed}");
}
