//! `mcpd test`, and `mcpd call --record`.

mod kinds;

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use insta::assert_snapshot;
use mcpd_tests::{Sandbox, output_within, repository};
use serde_json::{Value, json};

/// Script that refuses some arguments, and writes a file if a variable names one.
const GREET: &str = r#"#!/bin/sh
# /// mcpd
# description = "Greets"
# [options.name]
# description = "Who"
# value_type = "string"
# size = { max = 9 }
# required = true
# [options.loud]
# description = "Greet in capitals"
# value_type = "boolean"
# default_value = false
# [options.key]
# description = "A key"
# value_type = "string"
# default_value = ""
# secret = true
# ///
[ -n "$MCPD_OPT_name" ] || { echo 'ERROR no name' >&2; exit 2; }
echo "Hello, $MCPD_OPT_name!"
[ -z "$GREET_FILE" ] || echo "$MCPD_OPT_name" >"$GREET_FILE"
[ -z "$MCPD_OPT_key" ] || echo "with $MCPD_OPT_key"
"#;

/// Script that asks a question.
const BOOK: &str = r#"#!/bin/sh
# /// mcpd
# description = "Books"
# output = "mcp"
# ///
if [ -z "$MCPD_INPUT_RESPONSES" ]; then
  echo '{"inputRequests": {"who": {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}}}}'
else
  printf '{"content": [{"type": "text", "text": "booked"}], "structuredContent": %s}' "$(cat "$MCPD_INPUT_RESPONSES")"
fi
"#;

fn sandbox(cases: &str) -> Sandbox {
    let sandbox = Sandbox::new().with_script("greet", GREET);
    fs::write(sandbox.path().join("scripts/greet.test.toml"), cases).unwrap();
    sandbox
}

/// Transcript without durations.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let transcript = sandbox.run(arguments);
    let time = regex::Regex::new(r"\(\d+ ms\)|\d+\.\d{3}").unwrap();
    time.replace_all(&transcript, "@@TIME@@").into_owned()
}

const CASES: &str = r#"# Cases of the greeting.
[[case]]
name = "greets"
arguments = { name = "Eve" }
text = "Hello, Eve!"

[[case]]
name = "refuses an empty name"
arguments = { name = "" }
exit = 2

[[case]]
name = "refuses a long name"
arguments = { name = "0123456789" }
refused = true
contains = "name"

[[case]]
name = "writes a file"
arguments = { name = "Eve" }
environment = { GREET_FILE = "greeting.txt" }
matches = "^Hello, [A-Z]"
files = { "greeting.txt" = "Eve\n" }
"#;

#[test]
fn cases_pass() {
    let sandbox = sandbox(CASES);
    assert_snapshot!(run(&sandbox, &["test", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    scripts/greet.test.toml
      ok        greets @@TIME@@
      ok        refuses an empty name @@TIME@@
      ok        refuses a long name @@TIME@@
      ok        writes a file @@TIME@@
      options without a case: `loud`, `key`
    4 passed, 0 failed
    ");
    assert!(!sandbox.path().join("scripts/greeting.txt").exists());
    // The cases are no script, and nothing that an operator wonders about.
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    greet(name: string, loud?: boolean, key?: string)  Greets
    ");
    assert_snapshot!(sandbox.run(&["check", "scripts", "--deny", "warnings"]), @"
    exit code: 0
    ----- stdout -----
    no faults in 1 script
    ");
}

/// One case that fails, and one that expects nothing.
const FAILED_CASES: &str = r#"[[case]]
name = "greets" # with a comment
arguments = { name = "Eve" }
text = "Hello, Adam!" # to be replaced
exit = 3

[[case]]
name = "is slow"
arguments = { name = "Eve" }
"#;

#[test]
fn failed_case_shows_the_difference() {
    let sandbox = sandbox(FAILED_CASES);
    assert_snapshot!(run(&sandbox, &["test", "scripts"]), @"
    exit code: 1
    ----- stdout -----
    scripts/greet.test.toml
      FAILED    greets @@TIME@@
                exit code 0; expected 3
                the text differs:
                @@ -1 +1 @@
                -Hello, Adam!
                +Hello, Eve!
      ok        is slow @@TIME@@
      options without a case: `loud`, `key`
    1 passed, 1 failed
    ");
    let commands = run(&sandbox, &["test", "scripts/greet", "--github"]);
    let mark = regex::Regex::new("::[0-9a-f]+(::)?\n").unwrap();
    assert_snapshot!(mark.replace_all(&commands, "::@@MARK@@\n"), @"
    exit code: 1
    ----- stdout -----
    ::stop-commands::@@MARK@@
    scripts/greet.test.toml
      FAILED    greets @@TIME@@
                exit code 0; expected 3
                the text differs:
                @@ -1 +1 @@
                -Hello, Adam!
                +Hello, Eve!
      ok        is slow @@TIME@@
      options without a case: `loud`, `key`
    1 passed, 1 failed
    ::@@MARK@@
    ::error file=scripts/greet.test.toml,line=1,title=greet%3A greets::exit code 0; expected 3%0Athe text differs:%0A@@ -1 +1 @@%0A-Hello, Adam!%0A+Hello, Eve!
    ");
}

#[test]
fn unusable_files_with_cases_are_named_and_never_block() {
    let sandbox = sandbox("");
    let cases = sandbox.path().join("scripts/greet.test.toml");
    fs::remove_file(&cases).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &cases,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let refused = run(&sandbox, &["test", "scripts"]);
    assert!(refused.contains("no regular file"), "{refused}");
    fs::remove_file(&cases).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &cases).unwrap();
    let refused = run(&sandbox, &["test", "scripts"]);
    assert!(refused.contains("no regular file"), "{refused}");
}

#[test]
fn output_is_no_command_of_a_workflow() {
    let cases = "[[case]]\nname = \"a\\n::warning::b\"\ntext = \"x\"\n";
    let shown = run(&sandbox(cases), &["test", "scripts", "--github"]);
    let mark = shown.split("::stop-commands::").nth(1).unwrap();
    let mark = mark.split('\n').next().unwrap();
    assert!(shown.contains(&format!("\n::{mark}::\n")), "{shown}");
    assert!(!shown.contains("\n::warning"), "{shown}");
}

#[test]
fn filter_and_junit_name_the_cases() {
    let sandbox = sandbox(FAILED_CASES);
    assert_snapshot!(run(&sandbox, &["test", "scripts", "--filter", "is slow"]), @"
    exit code: 0
    ----- stdout -----
    scripts/greet.test.toml
      ok        is slow @@TIME@@
      options without a case: `loud`, `key`
    1 passed, 0 failed
    ");
    sandbox.run(&["test", "scripts", "--junit", "report.xml"]);
    let report = fs::read_to_string(sandbox.path().join("report.xml")).unwrap();
    assert!(
        report.contains("<testsuites name=\"mcpd\" tests=\"2\" failures=\"1\""),
        "{report}"
    );
}

#[test]
fn accepted_results_are_written_into_the_file() {
    let sandbox = sandbox(FAILED_CASES);
    assert_snapshot!(run(&sandbox, &["test", "scripts", "--accept"]), @"
    exit code: 0
    ----- stdout -----
    scripts/greet.test.toml
      accepted  greets @@TIME@@
                exit code 0; expected 3
                the text differs:
                @@ -1 +1 @@
                -Hello, Adam!
                +Hello, Eve!
      accepted  is slow @@TIME@@
      options without a case: `loud`, `key`
    0 passed, 0 failed, 2 accepted
    ");
    let cases = fs::read_to_string(sandbox.path().join("scripts/greet.test.toml")).unwrap();
    assert_snapshot!(cases, @r#"
    [[case]]
    name = "greets" # with a comment
    arguments = { name = "Eve" }
    text = "Hello, Eve!" # to be replaced
    exit = 0

    [[case]]
    name = "is slow"
    arguments = { name = "Eve" }
    text = "Hello, Eve!"
    "#);
    assert!(run(&sandbox, &["test", "scripts"]).starts_with("exit code: 0\n"));
}

#[test]
fn fault_of_cases_has_its_place() {
    let sandbox = sandbox("[[case]]\nname = \"a\"\nargument = {}\n");
    fs::write(sandbox.path().join("scripts/gone.test.toml"), "").unwrap();
    assert_snapshot!(run(&sandbox, &["test", "scripts"]), @"
    exit code: 1
    ----- stdout -----
    scripts/greet.test.toml
      FAILED    a @@TIME@@
                the call was refused: Invalid arguments: option `name`: expected a string of at most 9 characters, got nothing
      fault     scripts/greet.test.toml:3:1: `argument` is not a key of a case; did you mean `arguments`?
      options without a case: `name`, `loud`, `key`
    scripts/gone.test.toml:1:1: `scripts/gone` is no script; `mcpd check` tells why a file is no script
    0 passed, 1 failed, 2 faults of files
    ");
    let empty = Sandbox::new().with_script("greet", GREET);
    assert_snapshot!(empty.run(&["test", "scripts"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to test the scripts: there are no cases; write them into files such as `NAME.test.toml` beside the scripts, or record one with `mcpd call --record`
    ");
}

#[test]
fn question_is_answered() {
    let sandbox = Sandbox::new().with_script("book", BOOK);
    let cases = "[[case]]\nname = \"books\"\nanswers.who = { name = \"Eve\" }\njson = { who = { action = \"accept\", content = { name = \"Eve\" } } }\n\n[[case]]\nname = \"declines\"\nanswers.who = \"decline\"\njson = { who = { action = \"decline\" } }\n\n[[case]]\nname = \"without an answer\"\n";
    fs::write(sandbox.path().join("scripts/book.test.toml"), cases).unwrap();
    assert_snapshot!(run(&sandbox, &["test", "scripts"]), @r#"
    exit code: 1
    ----- stdout -----
    scripts/book.test.toml
      ok        books @@TIME@@
      ok        declines @@TIME@@
      FAILED    without an answer @@TIME@@
                the script asked `who` ("Who?"); add `answers.who` to the case
    2 passed, 1 failed
    "#);
}

#[test]
fn call_is_recorded_without_secrets() {
    let sandbox = Sandbox::new().with_script("greet", GREET);
    let record = |arguments: &[&str]| {
        let start = ["call", "scripts", "greet"];
        sandbox.run(&[&start[..], arguments].concat())
    };
    assert_snapshot!(record(&["--record", "name=Eve", "key=hunter2"]), @"
    exit code: 0
    ----- stdout -----
    Hello, Eve!
    with hunter2
    ----- stderr -----
    recorded in scripts/greet.test.toml
    ");
    assert_snapshot!(record(&["--record=no name", "name="]), @"
    exit code: 5
    ----- stderr -----
    ERROR no name
    recorded in scripts/greet.test.toml
    mcpd: error: `greet` failed: exit code 2 (bad-request)
    ");
    assert_snapshot!(record(&["--record=no name", "name="]), @"
    exit code: 1
    ----- stderr -----
    ERROR no name
    mcpd: error: failed to record the call: @@ROOT@@/scripts/greet.test.toml:1:1: there is a case with the name `no name`; choose another
    ");
    let cases = fs::read_to_string(sandbox.path().join("scripts/greet.test.toml")).unwrap();
    assert_snapshot!(cases, @r#"
    [[case]]
    name = "call 1"
    arguments = { key = "[secret]", name = "Eve" }
    text = """
    Hello, Eve!
    with [secret]"""

    [[case]]
    name = "no name"
    arguments = { name = "" }
    exit = 2
    "#);
    assert!(run(&sandbox, &["test", "scripts"]).starts_with("exit code: 0\n"));
}

/// Each script in `tests/scripts/planted` has one fault, and each is found, with the smallest
/// arguments.
/// Planted faults: the script, what is said of it, and the smallest arguments that show it.
fn planted_faults() -> [(&'static str, &'static str, Value); 10] {
    [
        (
            "initial",
            "exit code 1, which is an internal error",
            json!({"text": ""}),
        ),
        (
            "total",
            "the script hangs",
            json!({"numbers": vec![0; 101]}),
        ),
        (
            "sorted",
            "temporary files left behind",
            json!({"lines": "", "reverse": true}),
        ),
        ("weather", "is not valid", json!({"unit": "kelvin"})),
        (
            "page",
            "exit code 1, which is an internal error",
            json!({"number": 10}),
        ),
        (
            "base",
            "exit code 1, which is an internal error",
            json!({"path": "-r"}),
        ),
        (
            "latin",
            "exit code 70, which the contract of scripts does not have",
            json!({"text": "é"}),
        ),
        ("lines", "killed-by-signal", json!({"text": "\n"})),
        ("remind", "processes left behind", json!({"seconds": 1})),
        (
            "stock",
            "does not match the `output_schema`",
            json!({"item": "pear"}),
        ),
    ]
}

#[test]
fn planted_faults_are_found() {
    let sandbox = Sandbox::new();
    let planted = repository().join("tests/scripts/planted");
    let arguments = ["test", "--json", "--generate", "90", "--timeout", "4"];
    let mut command = sandbox.command(&arguments);
    command.arg(&planted);
    let output = output_within(Duration::from_secs(600), command, b"");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let suites = report["suites"].as_array().unwrap();
    let faults: BTreeMap<_, _> = suites
        .iter()
        .map(|suite| {
            let script = suite["script"].as_str().unwrap();
            let name = script.rsplit('/').next().unwrap();
            assert_eq!(suite["faults"], json!([]));
            let faults = suite["generated"]["faults"].as_array().unwrap();
            assert_eq!(faults.len(), 1, "{suite}");
            (name, &faults[0])
        })
        .collect();
    for (name, message, arguments) in planted_faults() {
        let fault = faults[name];
        let found = fault["message"].as_str().unwrap();
        assert!(found.contains(message), "{name}: {found}");
        assert_eq!(fault["arguments"], arguments, "{name}: {found}");
    }
    assert_eq!(faults.len(), 10);
    // The cases beside them pass: their authors did not think of these arguments.
    let cases = suites
        .iter()
        .flat_map(|suite| suite["cases"].as_array().unwrap());
    assert!(
        cases.clone().count() == 3 && cases.clone().all(|case| case["differences"] == json!([]))
    );
}

/// The commands of the workflow in `examples/ci` run as they are.
#[test]
fn workflow_of_the_example_runs() {
    let sandbox = sandbox(CASES);
    fs::rename(sandbox.path().join("scripts"), sandbox.path().join("tools")).unwrap();
    let workflow = repository().join("examples/ci/test-tools.yml");
    let workflow = fs::read_to_string(workflow).unwrap();
    let commands = workflow
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- run: mcpd "));
    let commands: Vec<_> = commands.collect();
    assert_eq!(commands.len(), 2, "{workflow}");
    for command in commands {
        let arguments: Vec<_> = command.split(' ').collect();
        let transcript = sandbox.run(&arguments);
        assert!(
            transcript.starts_with("exit code: 0\n"),
            "{command}\n{transcript}"
        );
    }
    assert!(sandbox.path().join("tools.xml").exists());
}
