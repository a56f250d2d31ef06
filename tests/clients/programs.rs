//! Programs on the official SDKs, as `setup` beside this file installs and lists them.

use std::io::Write as _;
use std::process::{Command, Output};
use std::sync::OnceLock;

use mcpd_tests::{Daemon, Sandbox, binary, output, repository};
use serde_json::{Value, json};

use crate::roots;

/// How many programs there are of each SDK: the versions times the revisions.
const PROGRAMS: usize = 3;

/// A client as `setup` lists it.
struct Program {
    revision: String,
    interpreter: String,
    file: String,
}

#[derive(Debug, Clone, Copy)]
enum Transport {
    Stdio,
    Http,
}

/// Runs every program of an SDK.
#[track_caller]
fn check(sdk: &str, extension: &str, transport: Transport) {
    match installed(sdk, extension) {
        Ok(programs) => programs.iter().for_each(|program| run(program, transport)),
        Err(reason) => skip(sdk, &reason),
    }
}

/// The programs of an SDK, told by their extension; or why there are none, which `setup` must say.
#[track_caller]
fn installed(sdk: &str, extension: &str) -> Result<Vec<Program>, String> {
    let setup = setup();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&setup.stdout), text(&setup.stderr));
    if !setup.status.success() {
        // Without a network nothing can be installed, and whoever develops has to do without.
        assert!(std::env::var_os("CI").is_none(), "setup failed:\n{stderr}");
        return Err(format!("setup failed:\n{stderr}"));
    }
    let absence = format!("the {sdk} clients need");
    if let Some(reason) = stderr.lines().find(|line| line.contains(&absence)) {
        return Err(reason.to_owned());
    }
    let programs = stdout.lines().map(program);
    let programs: Vec<_> = programs
        .filter(|program| program.file.ends_with(extension))
        .collect();
    assert_eq!(programs.len(), PROGRAMS, "setup lists\n{stdout}");
    Ok(programs)
}

fn run(program: &Program, transport: Transport) {
    let sandbox = Sandbox::new();
    let mut command = sandbox.program(&program.interpreter);
    // The repository is not theirs to write to.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.args([&program.file, &program.revision]);
    let output = match transport {
        Transport::Stdio => {
            command
                .arg("stdio")
                .arg(binary())
                .arg("stdio")
                .args(roots());
            output(command, b"")
        }
        Transport::Http => {
            let daemon = Daemon::start(&sandbox, &roots().each_ref().map(String::as_str));
            command.args([
                "http",
                &daemon.url(),
                daemon.token().expect("it has a token"),
            ]);
            output(command, b"")
        }
    };
    assert!(output.status.success(), "{}", sandbox.transcript(&output));
    let seen: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!(seen["revision"], program.revision);
    assert_eq!(seen["cannot"], cannot(&seen["client"]));
}

/// What a client has no means for: when a newer version does, it is to be tested.
fn cannot(client: &Value) -> Value {
    match client.as_str() {
        // It forgets a cancelled call and does not tell the server.
        Some("python mcp 1.30.0") => json!(["cancel"]),
        _ => json!([]),
    }
}

/// What `setup` said. It runs once.
#[expect(clippy::disallowed_methods, reason = "the setup is no script")]
fn setup() -> &'static Output {
    static SETUP: OnceLock<Output> = OnceLock::new();
    SETUP.get_or_init(|| {
        let setup = repository().join("tests/clients/setup");
        Command::new(setup)
            .current_dir(repository())
            .output()
            .expect("setup runs")
    })
}

fn program(line: &str) -> Program {
    let [revision, interpreter, file] = line.split('\t').collect::<Vec<_>>()[..] else {
        panic!("setup lists `{line}`")
    };
    let [revision, interpreter, file] = [revision, interpreter, file].map(str::to_owned);
    Program {
        revision,
        interpreter,
        file,
    }
}

/// Says so where the test harness does not swallow it.
fn skip(sdk: &str, reason: &str) {
    let mut stderr = std::io::stderr().lock();
    writeln!(stderr, "\n*** SKIPPED {PROGRAMS} {sdk} clients: {reason}\n").ok();
}

#[test]
fn python_over_stdio() {
    check("Python", ".py", Transport::Stdio);
}

#[test]
fn python_over_http() {
    check("Python", ".py", Transport::Http);
}

#[test]
fn typescript_over_stdio() {
    check("TypeScript", ".mjs", Transport::Stdio);
}

#[test]
fn typescript_over_http() {
    check("TypeScript", ".mjs", Transport::Http);
}
