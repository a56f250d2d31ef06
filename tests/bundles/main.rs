//! Bundles of `mcpd bundle` in the hands of the official tools, as `setup` beside this file
//! installs them: they accept the manifest, unpack the archive, and say what a client starts.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use mcpd_tests::{Pipes, Sandbox, binary, output_within, repository, skip};
use serde_json::{Value, json};

/// Time limit of a command, on a busy machine: a build for debugging is large.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Exit code of `setup` if the tools are not available. The reason is on stderr.
const SKIPPED: i32 = 77;

/// Tool with a secret and a setting.
const API: &str = r#"#!/bin/sh
# /// mcpd
# description = "Uses an API."
# [options.key]
# description = "Key from the site."
# required = true
# secret = true
# env = "API_KEY"
# [options.region]
# description = "Region of the site."
# env = "REGION"
# ///
echo "key=${#MCPD_OPT_key} region=${MCPD_OPT_region-none}"
"#;

/// Directory of the tools, unless the machine lacks them.
fn tools() -> Option<PathBuf> {
    let setup = setup();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let reason = text(&setup.stderr);
    match setup.status.code() {
        Some(0) => Some(PathBuf::from(text(&setup.stdout))),
        Some(SKIPPED) => {
            assert!(std::env::var_os("CI").is_none(), "{reason}");
            skip(&format!("a bundle and the official tools: {reason}"));
            None
        }
        _ => panic!("{reason}"),
    }
}

/// Returns the output of `setup`, which runs once.
#[expect(clippy::disallowed_methods, reason = "the setup is no script")]
fn setup() -> &'static Output {
    static SETUP: OnceLock<Output> = OnceLock::new();
    SETUP.get_or_init(|| {
        let target = binary().ancestors().nth(2).unwrap().join("bundles");
        let mut setup = Command::new(repository().join("tests/bundles/setup"));
        setup.arg(target).current_dir(repository());
        output_within(TIMEOUT, setup, b"")
    })
}

/// Runs a command in the sandbox, and returns its stdout.
#[track_caller]
fn run(sandbox: &Sandbox, command: Command) -> String {
    let output = output_within(TIMEOUT, command, b"");
    assert!(output.status.success(), "{}", sandbox.transcript(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Makes a bundle, unpacks and validates it with the official tools, and returns the command that
/// a client starts with these settings.
fn launch(sandbox: &Sandbox, tools: &Path, arguments: &[&str], settings: &Value) -> Value {
    let bundle = ["bundle", "--author", "Ada", "--yes", "--output", "a.mcpb"];
    run(sandbox, sandbox.command(&[&bundle[..], arguments].concat()));
    let unpacked = sandbox.path().join("unpacked");
    let mut unpack = sandbox.program(tools.join("mcpb"));
    unpack.args(["unpack", "a.mcpb"]).arg(&unpacked);
    run(sandbox, unpack);
    let mut validate = sandbox.program(tools.join("mcpb"));
    validate.arg("validate").arg(unpacked.join("manifest.json"));
    let said = run(sandbox, validate);
    assert!(said.contains("validation passes"), "{said}");
    let mut node = sandbox.program("node");
    node.arg(tools.join("npm/launch.mjs")).arg(&unpacked);
    node.arg(settings.to_string());
    serde_json::from_str(&run(sandbox, node)).unwrap()
}

/// Starts a command as a client of a desktop does, with a session.
fn start(sandbox: &Sandbox, config: &Value) -> Pipes {
    let mut command = sandbox.program(config["command"].as_str().unwrap());
    let words = config["args"].as_array().unwrap().iter();
    command.args(words.map(|word| word.as_str().unwrap()));
    command.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    for (name, value) in config["env"].as_object().unwrap() {
        command.env(name, value.as_str().unwrap());
    }
    let mut server = Pipes::of(command);
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "a client", "version": "1"},
    });
    let answer = request(&mut server, "initialize", &params);
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    server.send(br#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#);
    server
}

fn request(server: &mut Pipes, method: &str, params: &Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    server.send(message.to_string().as_bytes());
    loop {
        let answer = server.receive();
        if answer["id"] == 1 {
            return answer;
        }
    }
}

fn call(server: &mut Pipes, name: &str, arguments: &Value) -> String {
    let params = json!({"name": name, "arguments": arguments});
    let answer = request(server, "tools/call", &params);
    let text = &answer["result"]["content"][0]["text"];
    text.as_str()
        .unwrap_or_else(|| panic!("{answer}"))
        .trim()
        .to_owned()
}

#[test]
fn examples_with_mcpd_itself_are_unpacked_started_and_called() {
    let sandbox = Sandbox::new();
    let Some(tools) = tools() else { return };
    let examples = repository().join("examples/scripts");
    let config = launch(&sandbox, &tools, &[examples.to_str().unwrap()], &json!({}));
    let mut server = start(&sandbox, &config);
    let listed = request(&mut server, "tools/list", &json!({}));
    let names = listed["result"]["tools"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(
        names.contains(&"greet") && names.contains(&"math_calc"),
        "{names:?}"
    );
    let greeting = call(&mut server, "greet", &json!({"name": "Ada"}));
    assert!(greeting.contains("Ada"), "{greeting}");
}

#[test]
fn settings_of_the_user_reach_the_scripts() {
    let program = format!("#!/bin/sh\nexec '{}' \"$@\"\n", binary().display());
    let sandbox = Sandbox::new()
        .with_script("api", API)
        .with_script("../program", &program);
    let Some(tools) = tools() else { return };
    let arguments = ["scripts", "--program", "program"];
    let settings = json!({"api_key": "s3cret-key1"});
    let config = launch(&sandbox, &tools, &arguments, &settings);
    // The official code leaves the placeholder of a setting that the user leaves out.
    assert_eq!(config["env"]["REGION"], "${user_config.region}");
    let mut server = start(&sandbox, &config);
    let arguments = json!({});
    assert_eq!(call(&mut server, "api", &arguments), "key=11 region=none");
}
