//! `mcpd stdio` as a command; the exchange over the pipes is tested in the server's crate.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Stdio};

use insta::assert_snapshot;
use mcpd_tests::{Sandbox, assert_group_ends, eventually};
use rustix::process::{Pid, Signal, kill_process};

use crate::{HELLO, STUBBORN, sandbox};

#[test]
fn piped_line_gets_its_answer() {
    let call =
        r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hello"}}"#;
    let sandbox = Sandbox::new().with_script("hello", HELLO);
    assert_snapshot!(sandbox.run_with_stdin(&["stdio", "scripts"], call), @r#"
    exit code: 0
    ----- stdout -----
    {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"message\": \"Hello, World!\"}"}],"isError":false}}
    "#);
}

#[test]
fn faulty_scripts_are_in_the_log_and_nowhere_else() {
    let call =
        r#"{"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "hello"}}"#;
    let arguments = ["stdio", "scripts", "--log-format", "json"];
    let transcript = sandbox().run_with_stdin(&arguments, &format!("{call}\n"));
    let (stdout, stderr) = transcript.split_once("----- stderr -----\n").unwrap();
    assert_snapshot!(stdout, @r#"
    exit code: 0
    ----- stdout -----
    {"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"{\"message\": \"Hello, World!\"}"}],"isError":false}}
    "#);
    let events = stderr.lines().map(serde_json::from_str);
    let events: Vec<serde_json::Value> = events.map(Result::unwrap).collect();
    let [event, hint] = &events[..] else {
        panic!("{stderr}");
    };
    assert_eq!(event["code"], "help-failed");
    assert_eq!(event["script"], "broken");
    assert_eq!(
        hint["message"],
        "the catalog is incomplete: 1 faulty script; run `mcpd check @@ROOT@@/scripts` for details"
    );
}

/// Script whose description has words that some model providers refuse.
const MEASURE: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Measures"}'
  echo '{"größe": {"description": "In cm", "required": true, "value_type": "float"}}' >&2
  exit 0
fi
cat
"#;

#[test]
fn option_name_is_listed_portably_and_taken_in_both_spellings() {
    let request = |id: u8, arguments: &str| {
        format!(
            r#"{{"jsonrpc": "2.0", "id": {id}, "method": "tools/call", "params": {{"name": "measure", "arguments": {arguments}}}}}"#
        )
    };
    let requests = [
        r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#.to_owned(),
        request(2, r#"{"grosse": 1.50}"#),
        request(3, r#"{"größe": 1.50}"#),
        request(4, r#"{"grosse": 1, "größe": 2}"#),
    ];
    let sandbox = Sandbox::new().with_script("measure", MEASURE);
    let transcript = sandbox.run_with_stdin(&["stdio", "scripts"], &requests.join("\n"));
    let mut answers: Vec<&str> = transcript
        .lines()
        .filter(|line| line.starts_with('{'))
        .collect();
    answers.sort_unstable();
    assert_snapshot!(answers.join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"measure","title":"measure","description":"Measures","inputSchema":{"type":"object","properties":{"grosse":{"type":"number","description":"In cm. Called `größe`."}},"required":["grosse"],"additionalProperties":false},"_meta":{"mcpd/path":"measure"}}]}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"größe\":1.50}"}],"isError":false}}
    {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"{\"größe\":1.50}"}],"isError":false}}
    {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"Invalid arguments: option `größe`: expected each key once, got `größe` twice"}],"isError":true}}
    "#);
    let paths = ["stdio", "scripts", "--tool-names", "path"];
    let transcript = sandbox.run_with_stdin(&paths, &requests[0]);
    assert!(
        transcript.contains(r#""größe":{"type":"number","description":"In cm"}"#),
        "{transcript}"
    );
}

#[test]
fn resource_is_listed_and_read_at_its_normalized_uri() {
    let note = "#!/bin/sh\n[ \"$1\" = --help ] && echo '{\"description\": \"A note\", \"kind\": \"resource\", \"uri\": \"Note://Today/größe\"}' && exit\necho fixed\n";
    let uris = [
        "Note://Today/größe",
        "note://today/gr%C3%B6%C3%9Fe",
        "NOTE://today/gr%c3%b6%c3%9fe",
    ];
    let read = |(id, uri): (usize, &&str)| {
        format!(
            r#"{{"jsonrpc": "2.0", "id": {id}, "method": "resources/read", "params": {{"uri": "{uri}"}}}}"#
        )
    };
    let reads: Vec<String> = uris.iter().enumerate().map(read).collect();
    let sandbox = Sandbox::new().with_script("note", note);
    let transcript = sandbox.run_with_stdin(&["stdio", "scripts"], &reads.join("\n"));
    assert_eq!(
        transcript.matches(r#""text":"fixed""#).count(),
        3,
        "{transcript}"
    );
    let list = r#"{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}"#;
    let transcript = sandbox.run_with_stdin(&["stdio", "scripts"], list);
    assert!(
        transcript.contains(r#""uri":"note://today/gr%C3%B6%C3%9Fe""#),
        "{transcript}"
    );
    let check = sandbox.run(&["check", "scripts", "--format", "short"]);
    assert!(
        check.contains("the URI is listed as `note://today/gr%C3%B6%C3%9Fe`"),
        "{check}"
    );
}

#[test]
fn server_table_reaches_clients() {
    // Without a tool, the empty list would add to the instructions.
    let sandbox = Sandbox::new().with_counter("counter");
    let table = "[server]\nname = \"shop\"\nversion = \"2.1\"\ntitle = \"Stationery\"\ninstructions = \"Find it first.\"\nwebsite_url = \"https://shop.example\"\nicons = [{src = \"data:image/png;base64,AA==\", sizes = [\"any\"], theme = \"dark\"}]\n";
    fs::write(sandbox.path().join("mcpd.toml"), table).unwrap();
    let initialize = r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}}"#;
    let transcript =
        sandbox.run_with_stdin(&["stdio", "scripts", "--config", "mcpd.toml"], initialize);
    let (_, told) = transcript.split_once(r#""serverInfo":"#).unwrap();
    let told = told
        .lines()
        .next()
        .unwrap()
        .replace(env!("CARGO_PKG_VERSION"), "@@VERSION@@");
    assert_snapshot!(told, @r#"{"name":"shop","title":"Stationery","version":"2.1","websiteUrl":"https://shop.example","icons":[{"src":"data:image/png;base64,AA==","sizes":["any"],"theme":"dark"}]},"instructions":"Find it first."}}"#);
    fs::write(
        sandbox.path().join("mcpd.toml"),
        "[server]\nwebsite_url = \"shop.example\"\n",
    )
    .unwrap();
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: mcpd.toml:2:15: in [server]: expected an address that begins with one of `https:`, `http:`
    ");
}

#[test]
fn missing_tools_are_explained_in_the_log() {
    let list = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
    let transcript = Sandbox::new().run_with_stdin(&["stdio", "scripts"], list);
    let told = "no tools found: scripts must be executable (`chmod +x`)";
    assert!(transcript.contains(told), "{transcript}");
}

#[test]
fn script_failure_is_logged() {
    let failing = |said: &str| {
        format!(
            "#!/bin/sh\nif [ \"$1\" = --help ]; then\n  echo '{{\"kind\": \"prompt\", \"state\": true}}'\n  exit 0\nfi\n{said}\nexit 3\n"
        )
    };
    let get = r#"{"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "p"}}"#;
    let read = r#"{"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "mcpd://p/state"}}"#;
    for (said, request, told) in [
        ("", get, "the script failed with exit code 3 (forbidden)"),
        (
            "echo locked >&2",
            get,
            "the script failed with exit code 3 (forbidden): locked",
        ),
        ("", read, "`--state` failed with exit code 3 (forbidden)"),
    ] {
        let sandbox = Sandbox::new().with_script("p", &failing(said));
        let arguments = ["stdio", "scripts", "--log-format", "json"];
        let transcript = sandbox.run_with_stdin(&arguments, request);
        let told = format!(r#""message":"{told}""#);
        assert!(transcript.contains(&told), "{transcript}");
    }
}

#[test]
fn verbose_log_has_requests() {
    let call = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "exit", "arguments": {"code": 4}}}"#;
    let arguments = ["stdio", "scripts", "--log-format", "json"];
    let requests = |arguments: &[&str]| {
        let transcript = sandbox().run_with_stdin(arguments, &format!("{call}\n"));
        let (_, stderr) = transcript.split_once("----- stderr -----\n").unwrap();
        let events = stderr.lines().map(serde_json::from_str);
        let mut events: Vec<serde_json::Value> = events.map(Result::unwrap).collect();
        events.retain(|event| event["message"] == "tools/call");
        events
    };
    assert_eq!(requests(&arguments).len(), 0);
    let requests = requests(&[&arguments[..], &["-v"]].concat());
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert_eq!(requests[0]["name"], "exit");
    assert_eq!(requests[0]["error"], "tool_error");
    assert!(requests[0]["seconds"].is_f64());
}

#[test]
fn tool_name_injects_no_log_line() {
    let name = "x\n2026-01-01T00:00:00Z  WARN forged\r";
    let sandbox = Sandbox::new().with_script(name, HELLO);
    let list = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
    let transcript = sandbox.run_with_stdin(&["stdio", "scripts"], list);
    let (_, stderr) = transcript.split_once("----- stderr -----\n").unwrap();
    assert!(stderr.contains("forged"), "{stderr}");
    let forged = |line: &str| line.starts_with("2026-01-01") || line.contains('\r');
    assert!(!stderr.lines().any(forged), "{stderr}");
}

#[test]
fn unused_variable_is_logged() {
    let variable = |name| {
        let sandbox = Sandbox::new()
            .with_script("hello", HELLO)
            .with_variable(name, "1");
        sandbox.run_with_stdin(&["stdio", "scripts", "--log-format", "json"], "")
    };
    let transcript = variable("MCPD_TIMEUOT");
    let told = "unknown variable `MCPD_TIMEUOT`; did you mean `MCPD_TIMEOUT`?";
    assert_eq!(transcript.matches(told).count(), 1, "{transcript}");
    assert!(!variable("MCPD_TIMEOUT").contains("unknown"));
}

#[test]
fn tool_names_have_the_configured_spelling() {
    let list = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
    for (arguments, name) in [
        (&["stdio", "scripts"][..], r#""name":"math_calc""#),
        (
            &["stdio", "scripts", "--tool-names", "path"],
            r#""name":"math/calc""#,
        ),
    ] {
        let transcript = sandbox().run_with_stdin(arguments, list);
        assert!(transcript.contains(name), "{transcript}");
    }
}

#[test]
fn lists_have_the_configured_page_size() {
    let list = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
    for (size, cut) in [("1", true), ("4", false)] {
        let arguments = ["stdio", "scripts", "--page-size", size];
        let transcript = sandbox().run_with_stdin(&arguments, list);
        assert_eq!(transcript.contains("nextCursor"), cut, "{transcript}");
    }
    let transcript = sandbox().run(&["stdio", "scripts", "--page-size", "0"]);
    assert!(transcript.starts_with("exit code: 1"), "{transcript}");
}

#[test]
fn empty_input_ends_it_at_once() {
    let sandbox = Sandbox::new().with_script("hello", HELLO);
    assert_snapshot!(sandbox.run(&["stdio", "scripts"]), @"exit code: 0");
}

/// Ends a session while a script runs that refuses to end.
#[track_caller]
fn check_end(end: impl FnOnce(&mut Child)) {
    let sandbox = Sandbox::new().with_script("stubborn", STUBBORN);
    let mut command = sandbox.command(&["stdio", "scripts"]);
    let mut session = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let call =
        r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "stubborn"}}"#;
    writeln!(session.stdin.as_ref().unwrap(), "{call}").unwrap();
    let number = sandbox.path().join("scripts/number");
    eventually("the script to run", || number.exists().then_some(()));
    end(&mut session);
    let status = eventually("the end of mcpd", || session.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    assert_group_ends(&number);
}

#[test]
fn end_of_input_ends_running_scripts() {
    check_end(|session| drop(session.stdin.take()));
}

#[test]
fn sigterm_ends_scripts_and_exits_with_0() {
    check_end(|session| kill_process(Pid::from_child(session), Signal::TERM).unwrap());
}
