//! Python SDK client without a token: it has to discover the authorization server.

use std::fs;
use std::time::Duration;

use mcpd_tests::{Daemon, Issuer, Sandbox, output_within, repository};
use serde_json::{Value, json};

use crate::programs;

/// Fallback time limit; the program's own deadline is earlier.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(120);
const SCRIPT: &str = "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{}'; exit; }\necho done\n";

#[test]
fn client_logs_in_and_steps_up_its_scopes() {
    let Some(python) = programs::python() else {
        return;
    };
    let issuer = Issuer::start();
    let sandbox = Sandbox::new()
        .with_script("hello", SCRIPT)
        .with_script("deploy", SCRIPT);
    let configuration = format!(
        "[oauth]\n[[oauth.issuer]]\nurl = \"{}\"\n\
         [[oauth.scope]]\nname = \"greet\"\ntools = [\"hello\"]\n\
         [[oauth.scope]]\nname = \"deploy\"\ntools = [\"deploy\"]\nstep_up = true\n",
        issuer.url()
    );
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml"]);
    for (mode, revision) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let mut client = sandbox.program(&python);
        client.env("PYTHONDONTWRITEBYTECODE", "1");
        client.arg(repository().join("tests/clients/python/login.py"));
        client.args([&*daemon.url(), mode]);
        let output = output_within(PROGRAM_TIMEOUT, client, b"");
        assert!(output.status.success(), "{}", sandbox.transcript(&output));
        let seen: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
        let expected = json!({
            "revision": revision,
            "before": ["hello"],
            "called": "done",
            "after": ["deploy", "hello"],
            "asked": ["greet", "greet deploy"],
        });
        assert_eq!(seen, expected);
    }
}
