//! Audit log: the commands that write it, its configuration, and `mcpd audit`, which reads it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::thread;

use insta::assert_snapshot;
use mcpd_tests::{Pipes, Sandbox, eventually, output};
use serde_json::{Value, json};

use crate::{EXIT, HELLO};

/// Default path of the log.
const LOG: &str = "state/mcpd/logs/mcp-audit.jsonl";

const ANOTHER: &str = r#"{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "exit", "arguments": {"code": 4}}}"#;

fn sandbox() -> Sandbox {
    Sandbox::new()
        .with_script("hello", HELLO)
        .with_script("exit", EXIT)
}

fn call(id: usize) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "hello"}})
}

/// Makes two calls one after the other with this configuration; the second fails.
fn make_calls(sandbox: &Sandbox, configuration: &str) -> [Value; 2] {
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let mut session = Pipes::start(sandbox, &["--config", "mcpd.toml"]);
    session.send(call(1).to_string().as_bytes());
    let first = session.receive();
    session.send(ANOTHER.as_bytes());
    let second = session.receive();
    session.close_input();
    assert_eq!(session.wait(), 0);
    [first, second]
}

fn records(sandbox: &Sandbox) -> Vec<Value> {
    let log = fs::read_to_string(sandbox.path().join(LOG)).unwrap_or_default();
    let lines = log.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns the transcript without times and hashes.
fn stable(transcript: &str) -> String {
    let words = transcript.split_inclusive(char::is_whitespace).map(|word| {
        let bare = word.trim_end();
        let stands_for = match bare.len() {
            24 if bare.starts_with("20") && bare.ends_with('Z') => "TIME",
            64 if bare.bytes().all(|byte| byte.is_ascii_hexdigit()) => "HASH",
            _ => return word.to_owned(),
        };
        word.replace(bare, stands_for)
    });
    let text: String = words.collect();
    let lines = text.lines().map(|line| match line.split_once(" ms") {
        Some((before, after)) => {
            let before = before.trim_end_matches(|char: char| char.is_ascii_digit());
            format!("{before}N ms{after}")
        }
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn log_is_written_by_serving_commands() {
    let sandbox = sandbox();
    sandbox.run(&["call", "scripts", "hello"]);
    sandbox.run(&["list", "scripts"]);
    assert_eq!(records(&sandbox).len(), 0);

    make_calls(&sandbox, "");
    let action = r#"{"action": "call_tool", "tool": "hello"}"#;
    sandbox.run_with_stdin(&["endpoint", "scripts"], action);
    let records = records(&sandbox);
    let seen =
        |field: &str| -> Value { records.iter().map(|record| record[field].clone()).collect() };
    assert_eq!(seen("tool"), json!(["hello", "exit", "hello"]));
    assert_eq!(seen("transport"), json!(["stdio", "stdio", "channel"]));
    assert_eq!(seen("principal"), json!(["local", "local", "local"]));
}

#[test]
fn log_is_shown_as_text() {
    let sandbox = sandbox();
    make_calls(&sandbox, "");
    assert_snapshot!(stable(&sandbox.run(&["audit", "tail"])), @"
    exit code: 0
    ----- stdout -----
    TIME  local  tools/call  hello  success  N ms
    TIME  local  tools/call  exit  not-found  N ms  exit code 4 (not-found)
    ");
    assert_snapshot!(stable(&sandbox.run(&["audit", "tail", "-n", "1"])), @"
    exit code: 0
    ----- stdout -----
    TIME  local  tools/call  exit  not-found  N ms  exit code 4 (not-found)
    ");
    assert_snapshot!(stable(&sandbox.run(&["audit", "verify"])), @"
    exit code: 0
    ----- stdout -----
    2 records, 1 to 2
    hash of the last record: HASH
    ");
    let raw = fs::read(sandbox.path().join(LOG)).unwrap();
    assert_eq!(sandbox.stdout(&["audit", "tail", "--json"]), raw);
}

#[track_caller]
fn check_found(sandbox: &Sandbox, arguments: &[&str], expected: &[&str]) {
    let arguments = [&["audit", "grep", "--json"], arguments].concat();
    let found = output(sandbox.command(&arguments), b"");
    let code = if expected.is_empty() { 1 } else { 0 };
    assert_eq!(found.status.code(), Some(code), "{arguments:?}");
    let text = String::from_utf8(found.stdout).unwrap();
    let tools = text.lines().map(|line| {
        let record: Value = serde_json::from_str(line).unwrap();
        record["tool"].as_str().unwrap().to_owned()
    });
    assert!(tools.eq(expected.iter().copied()), "{arguments:?}: {text}");
}

#[test]
fn records_are_found_by_field() {
    let sandbox = sandbox();
    make_calls(&sandbox, "");
    for (arguments, expected) in [
        (&[][..], &["hello", "exit"][..]),
        (&["--tool", "exit"], &["exit"]),
        (&["--tool", "exi"], &[]),
        (&["--principal", "local"], &["hello", "exit"]),
        (&["--principal", "agent"], &[]),
        (&["--outcome", "success"], &["hello"]),
        (&["--outcome", "not-found", "--tool", "hello"], &[]),
        (&["--since", "1h"], &["hello", "exit"]),
        (&["--since", "2999-01-01"], &[]),
        (&["--until", "1h"], &[]),
        (&["--until", "2999-01-01T00:00:00Z"], &["hello", "exit"]),
        (&[r#""code":4"#], &["exit"]),
        (&["nobody"], &[]),
    ] {
        check_found(&sandbox, arguments, expected);
    }
    assert_snapshot!(sandbox.run(&["audit", "grep", "--since", "soon"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to parse the time `soon`: expected a time such as `2026-11-22`, `2026-11-22T10:30`, `2026-11-22T10:30:00Z` or `2h`
    ");
    assert_snapshot!(sandbox.run(&["audit", "grep", "--outcome", "sucess"]), @"
    exit code: 1
    ----- stderr -----
    error: invalid value 'sucess' for '--outcome <OUTCOME>'
      [possible values: success, internal-error, bad-request, forbidden, not-found, service-unavailable, not-acceptable, not-implemented, conflict, timeout, failed, command-not-executable, command-not-found, killed-by-signal, time-limit, output-limit, memory-limit, cancelled, unknown, input-required, invalid-output, not-redacted, not-approved, unknown-tool, unknown-prompt, denied, no-approval, invalid-arguments, missing-capability, busy, not-started, shutting-down, not-recorded, unreachable, lost]

      tip: a similar value exists: 'success'

    For more information, try '--help'.
    ");
}

#[test]
fn records_are_found_by_text_that_json_writes_otherwise() {
    let sandbox = sandbox();
    let mut session = Pipes::start(&sandbox, &[]);
    let call = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hello", "arguments": {"a": ["say \"h\u00e4\""], "\u00e9": 1}}}"#;
    session.send(call.as_bytes());
    assert_eq!(session.receive()["id"], 1);
    session.close_input();
    assert_eq!(session.wait(), 0);
    for text in [r#"say "hä""#, "é", r#"\"h\u00e4"#] {
        check_found(&sandbox, &[text], &["hello"]);
    }
    check_found(&sandbox, &["hö"], &[]);
}

#[test]
fn tampering_is_detected() {
    let sandbox = sandbox();
    make_calls(&sandbox, "");
    make_calls(&sandbox, "");
    let log = sandbox.path().join(LOG);
    let text = fs::read_to_string(&log).unwrap();
    let hash = text.trim_end().rsplit('"').nth(1).unwrap();
    let found = sandbox.run(&["audit", "verify", "--hash", hash]);
    assert!(found.starts_with("exit code: 0"), "{found}");

    fs::write(&log, text.replacen("not-found", "forbidden", 1)).unwrap();
    assert_snapshot!(stable(&sandbox.run(&["audit", "verify"])), @"
    exit code: 1
    ----- stdout -----
    @@ROOT@@/state/mcpd/logs/mcp-audit.jsonl:2: the record was changed
    4 records, 1 to 4
    hash of the last record: HASH
    ");
    let lines: Vec<_> = text.lines().collect();
    fs::write(&log, format!("{}\n{}\n", lines[0], lines[3])).unwrap();
    assert_snapshot!(stable(&sandbox.run(&["audit", "verify"])), @"
    exit code: 1
    ----- stdout -----
    @@ROOT@@/state/mcpd/logs/mcp-audit.jsonl:2: records 2 to 3 are missing
    2 records, 1 to 4
    hash of the last record: HASH
    ");
    fs::write(&log, format!("{}\n", lines[..3].join("\n"))).unwrap();
    assert_snapshot!(stable(&sandbox.run(&["audit", "verify", "--hash", hash])), @"
    exit code: 1
    ----- stdout -----
    no record has this hash
    3 records, 1 to 3
    hash of the last record: HASH
    ");
    fs::write(&log, &text[..text.len() - 9]).unwrap();
    let torn = sandbox.run(&["audit", "verify", "--json"]);
    assert!(torn.starts_with("exit code: 1"), "{torn}");
    assert!(torn.contains("the record is incomplete"), "{torn}");
}

#[test]
fn torn_record_is_removed_by_the_next_writer() {
    let sandbox = sandbox();
    make_calls(&sandbox, "");
    let log = sandbox.path().join(LOG);
    let text = fs::read_to_string(&log).unwrap();
    let first = text.find('\n').unwrap() + 1;
    fs::write(&log, &text[..first + 100]).unwrap();
    make_calls(&sandbox, "");
    let verified = sandbox.run(&["audit", "verify"]);
    assert!(verified.contains("4 records, 1 to 4"), "{verified}");
    let note = &records(&sandbox)[1];
    assert_eq!(note["method"], "audit/recovered");
    assert_eq!(note["params"], json!({"bytes": 100}));
}

#[test]
fn missing_log_is_reported() {
    assert_snapshot!(Sandbox::new().run(&["audit", "tail"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the audit log `@@ROOT@@/state/mcpd/logs/mcp-audit.jsonl`: it does not exist yet; `mcpd serve` and `mcpd stdio` create it with the first call, and `--file` selects another log
    ");
}

#[test]
fn new_records_are_shown_as_they_are_written() {
    let sandbox = sandbox();
    make_calls(&sandbox, "");
    let mut follower = sandbox.command(&["audit", "tail", "-n", "0", "--follow", "--json"]);
    let mut follower = follower.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    // From here on, `--follow` may begin at any time.
    let record = thread::scope(|scope| {
        let line = scope.spawn(|| lines.next().unwrap().unwrap());
        eventually("a record", || {
            make_calls(&sandbox, "");
            line.is_finished().then_some(())
        });
        line.join().unwrap()
    });
    follower.kill().unwrap();
    follower.wait().unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["method"], "tools/call");
}

#[test]
fn recorded_fields_and_path_are_configurable() {
    let sandbox = sandbox();
    make_calls(&sandbox, "[audit]\nmode = \"off\"\n");
    assert!(!sandbox.path().join("state/mcpd/logs").exists());

    let settings = "[audit]\nargs = \"names\"\npath = \"elsewhere/audit\"\nmode = \"require\"\n";
    make_calls(&sandbox, settings);
    let text = fs::read_to_string(sandbox.path().join("elsewhere/audit")).unwrap();
    assert!(text.contains(r#""arguments":["code"]"#), "{text}");
    assert_eq!(text.matches(r#""event":"begin""#).count(), 2);
    // `mcpd audit` finds the log through the same configuration.
    let shown = sandbox.run(&["audit", "verify"]);
    assert!(shown.contains("4 records"), "{shown}");

    make_calls(&sandbox, "[audit]\nmax_size = \"1 KiB\"\nkeep = 2\n");
    for _ in 0..3 {
        make_calls(&sandbox, "[audit]\nmax_size = \"1 KiB\"\nkeep = 2\n");
    }
    let files = fs::read_dir(sandbox.path().join("state/mcpd/logs")).unwrap();
    assert_eq!(files.count(), 3);
}

#[test]
fn invalid_setting_is_reported() {
    let sandbox = sandbox();
    let mistake = |line: &str| {
        fs::write(
            sandbox.path().join("mcpd.toml"),
            format!("[audit]\n{line}\n"),
        )
        .unwrap();
        sandbox.run(&["audit", "verify"])
    };
    assert_snapshot!(mistake("args = \"all\""), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: mcpd.toml:2:8: in [audit]: `args`: unknown value `all`; known: none, names, hash, full
    ");
    assert_snapshot!(mistake("mode = \"required\""), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: mcpd.toml:2:8: in [audit]: `mode`: unknown value `required`; did you mean `require`?
    ");
    assert_snapshot!(mistake("keep = 0"), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: mcpd.toml:2:8: in [audit]: `keep`: invalid value: integer `0`, expected a whole number above 0
    ");
}

/// A place where no user, not even root, can create a file.
#[cfg(target_os = "linux")]
const NOWHERE: &str = "path = \"/proc/mcpd-audit.jsonl\"";

#[test]
#[cfg(target_os = "linux")]
fn calls_are_refused_if_the_required_log_is_unwritable() {
    let sandbox = sandbox();
    let settings = format!("[audit]\nmode = \"require\"\n{NOWHERE}\n");
    for answer in make_calls(&sandbox, &settings) {
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn unwritable_optional_log_is_reported_once() {
    let sandbox = sandbox();
    let settings = format!("[audit]\n{NOWHERE}\n");
    for answer in make_calls(&sandbox, &settings) {
        assert!(answer["result"].is_object(), "{answer}");
    }
    let calls = format!("{}\n{ANOTHER}\n", call(1));
    let arguments = [
        "stdio",
        "scripts",
        "--config",
        "mcpd.toml",
        "--log",
        "error",
    ];
    let transcript = sandbox.run_with_stdin(&arguments, &calls);
    let told = transcript.matches("failed to write the audit log").count();
    assert_eq!(told, 1, "{transcript}");
}

/// A file size limit stands for a disk that becomes full in the middle of a record.
#[test]
#[cfg(target_os = "linux")]
fn full_disk_leaves_no_torn_record() {
    let sandbox = sandbox();
    make_calls(&sandbox, "");
    let mut shell = sandbox.program("sh");
    let limited = r#"trap "" XFSZ; ulimit -f 4; exec "$0" stdio scripts --no-cache"#;
    shell.args(["-c", limited]).arg(mcpd_tests::binary());
    let calls: String = (0..20).map(|id| format!("{}\n", call(id))).collect();
    let transcript = sandbox.transcript(&output(shell, calls.as_bytes()));
    assert_eq!(
        transcript.matches("Hello, World!").count(),
        20,
        "{transcript}"
    );
    let before = records(&sandbox).len();
    assert!((2..22).contains(&before), "{before}");

    make_calls(&sandbox, "");
    let verified = sandbox.run(&["audit", "verify"]);
    assert!(verified.starts_with("exit code: 0"), "{verified}");
    assert_eq!(records(&sandbox).len(), before + 2);
}

#[test]
fn several_servers_write_one_log_and_take_turns_with_its_files() {
    let sandbox = sandbox();
    let settings = "[audit]\nmax_size = \"4 KiB\"\nkeep = 99\n";
    fs::write(sandbox.path().join("mcpd.toml"), settings).unwrap();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut session = Pipes::start(&sandbox, &["--config", "mcpd.toml"]);
                for id in 0..20 {
                    session.send(call(id).to_string().as_bytes());
                    assert!(session.receive()["result"].is_object());
                }
                session.close_input();
                assert_eq!(session.wait(), 0);
            });
        }
    });
    let verified = sandbox.run(&["audit", "verify"]);
    assert!(verified.contains("60 records, 1 to 60"), "{verified}");
    assert!(sandbox.path().join(format!("{LOG}.2")).exists());
}
