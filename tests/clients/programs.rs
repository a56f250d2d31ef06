//! Programs on the official SDKs and the Inspector, as `setup` beside this file installs and lists
//! them.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use mcpd_tests::{Daemon, Sandbox, TwoFronts, binary, output_within, repository};
use serde_json::{Value, json};

use crate::roots;

/// Fallback time limit; every program has an earlier deadline and cleans up after itself.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(240);

/// Clients that are installed or missing together.
#[derive(Clone, Copy)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// Number of programs: the versions times the revisions.
    pub(crate) size: usize,
}

pub(crate) const PYTHON: Family = Family {
    name: "Python",
    size: 3,
};

pub(crate) const TYPESCRIPT: Family = Family {
    name: "TypeScript",
    size: 3,
};

const INSPECTOR: Family = Family {
    name: "Inspector",
    size: 4,
};

/// Client as listed by `setup`.
pub(crate) struct Program {
    family: String,
    pub(crate) revision: String,
    pub(crate) interpreter: String,
    pub(crate) file: String,
}

/// Revision without sessions.
const STATELESS: &str = "2026-07-28";

#[derive(Debug, Clone, Copy)]
enum Transport {
    Stdio,
    Http,
    /// Through a balancer with two fronts of a cluster behind it, whose worker has the scripts.
    Fronts,
    /// Over stdio with `mcpd connect`, which is over HTTP with the server.
    Connect,
}

/// Runs every program of a family.
#[track_caller]
fn check(family: Family, transport: Transport) {
    match installed_programs(family) {
        Ok(programs) => programs.iter().for_each(|program| run(program, transport)),
        Err(reason) => skip(family, &reason),
    }
}

/// Returns the programs of a family, or the reason that `setup` gave for their absence.
#[track_caller]
pub(crate) fn installed_programs(family: Family) -> Result<Vec<Program>, String> {
    let setup = setup();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&setup.stdout), text(&setup.stderr));
    if !setup.status.success() {
        // Without a network nothing can be installed, so a developer's machine may lack the
        // clients.
        assert!(std::env::var_os("CI").is_none(), "setup failed:\n{stderr}");
        return Err(format!("setup failed:\n{stderr}"));
    }
    let mut reasons = stderr
        .lines()
        .filter(|line| line.contains("CLIENT TESTS SKIPPED"));
    if let Some(reason) = reasons.find(|line| line.contains(family.name)) {
        return Err(reason.to_owned());
    }
    let programs = stdout.lines().map(program);
    let programs: Vec<_> = programs
        .filter(|program| program.family == family.name)
        .collect();
    assert_eq!(programs.len(), family.size, "setup lists\n{stdout}");
    Ok(programs)
}

/// Returns the interpreter with the newest SDK, if any is installed.
#[track_caller]
pub(crate) fn python() -> Option<String> {
    match installed_programs(PYTHON) {
        Ok(programs) => programs
            .into_iter()
            .last()
            .map(|program| program.interpreter),
        Err(reason) => {
            skip(PYTHON, &reason);
            None
        }
    }
}

fn run(program: &Program, transport: Transport) {
    let sandbox = Sandbox::new();
    let mut command = sandbox.program(&program.interpreter);
    // The programs must not write to the repository.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.args([&program.file, &program.revision]);
    let arguments = arguments();
    let start = || {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        Daemon::start(&sandbox, &arguments)
    };
    let output = match transport {
        Transport::Stdio => {
            command.arg("stdio").arg(binary()).arg("stdio");
            command.args(&arguments);
            output_within(PROGRAM_TIMEOUT, command, b"")
        }
        Transport::Http => {
            let daemon = start();
            let token = daemon.token().expect("it has a token");
            command.args(["http", &daemon.url(), token]);
            output_within(PROGRAM_TIMEOUT, command, b"")
        }
        Transport::Fronts => {
            let arguments: Vec<_> = roots().to_vec();
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            let cluster = TwoFronts::start(&sandbox, &arguments, &["--enable", "runs"]);
            let Some(cluster) = cluster else { return };
            let token = cluster.fronts[0].token().expect("it has a token");
            // Clients with sessions use what is a front's own, such as subscriptions.
            let balancer = match program.revision.as_str() {
                STATELESS => &cluster.blind,
                _ => &cluster.balancer,
            };
            command.args(["http", &balancer.url(), token]);
            output_within(PROGRAM_TIMEOUT, command, b"")
        }
        Transport::Connect => {
            let daemon = start();
            let token = sandbox.path().join("state/mcpd/agent-token");
            command.arg("stdio").arg(binary()).arg("connect");
            command.arg(daemon.url()).arg("--token-file").arg(token);
            output_within(PROGRAM_TIMEOUT, command, b"")
        }
    };
    assert!(output.status.success(), "{}", sandbox.transcript(&output));
    let seen: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!(seen["revision"], program.revision);
    assert_eq!(seen["cannot"], cannot(&seen["client"]));
}

/// Returns the arguments of mcpd for these clients.
fn arguments() -> Vec<String> {
    let enabled = ["--enable", "runs"].map(str::to_owned);
    roots().into_iter().chain(enabled).collect()
}

/// Returns the abilities a client lacks. An ability that a newer version has must be tested.
fn cannot(client: &Value) -> Value {
    match client.as_str() {
        // This version forgets a cancelled call and does not notify the server.
        Some("python mcp 1.30.0") => json!(["cancel"]),
        // Each of its processes makes one request and prints the result.
        Some("@modelcontextprotocol/inspector --cli") => json!([
            "progress",
            "logs",
            "elicitation",
            "updates",
            "completion",
            "cancel"
        ]),
        // It requests no progress, and an interrupted command leaves its call running.
        Some("@modelcontextprotocol/inspector mcpdo") => json!(["progress", "cancel"]),
        _ => json!([]),
    }
}

/// Returns the output of `setup`, which runs once.
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
    let [family, revision, interpreter, file] = line.split('\t').collect::<Vec<_>>()[..] else {
        panic!("setup lists `{line}`")
    };
    let [family, revision, interpreter, file] =
        [family, revision, interpreter, file].map(str::to_owned);
    Program {
        family,
        revision,
        interpreter,
        file,
    }
}

pub(crate) fn skip(Family { name, size }: Family, reason: &str) {
    mcpd_tests::skip(&format!("{size} {name} clients: {reason}"));
}

#[test]
fn python_over_stdio() {
    check(PYTHON, Transport::Stdio);
}

#[test]
fn python_over_http() {
    check(PYTHON, Transport::Http);
}

#[test]
fn python_through_two_fronts() {
    check(PYTHON, Transport::Fronts);
}

#[test]
fn typescript_through_two_fronts() {
    check(TYPESCRIPT, Transport::Fronts);
}

#[test]
fn python_over_connect() {
    check(PYTHON, Transport::Connect);
}

#[test]
fn typescript_over_stdio() {
    check(TYPESCRIPT, Transport::Stdio);
}

#[test]
fn typescript_over_http() {
    check(TYPESCRIPT, Transport::Http);
}

#[test]
fn typescript_over_connect() {
    check(TYPESCRIPT, Transport::Connect);
}

#[test]
fn the_inspector_over_stdio() {
    check(INSPECTOR, Transport::Stdio);
}

#[test]
fn the_inspector_over_http() {
    check(INSPECTOR, Transport::Http);
}

/// Runs `file` from the programs of a family, with a connection that breaks in the middle of a
/// call.
#[track_caller]
fn check_resumption(family: Family, file: &str) {
    let programs = match installed_programs(family) {
        Ok(programs) => programs,
        Err(reason) => return skip(family, &reason),
    };
    let mut interpreters: Vec<_> = programs
        .iter()
        .map(|program| &program.interpreter)
        .collect();
    interpreters.dedup();
    let program = Path::new(&programs[0].file).with_file_name(file);
    for interpreter in interpreters {
        let sandbox = Sandbox::new();
        let arguments = arguments();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let daemon = Daemon::start(&sandbox, &arguments);
        let mut command = sandbox.program(interpreter);
        command.env("PYTHONDONTWRITEBYTECODE", "1").arg(&program);
        command.args([&daemon.url(), daemon.token().expect("it has a token")]);
        let output = output_within(PROGRAM_TIMEOUT, command, b"");
        assert!(output.status.success(), "{}", sandbox.transcript(&output));
    }
}

#[test]
fn python_resumes_a_broken_call() {
    check_resumption(PYTHON, "resume.py");
}

#[test]
fn typescript_resumes_a_broken_call() {
    check_resumption(TYPESCRIPT, "resume.mjs");
}
