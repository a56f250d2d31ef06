//! `mcpd call`.

use std::fs;
use std::process::Stdio;

use insta::assert_snapshot;
use mcpd_tests::{Sandbox, assert_group_ends, eventually};
use rustix::process::{Pid, Signal, kill_process};

use crate::{STUBBORN, sandbox};

/// Script that prints the options it received: stdin first, then the variables.
const ECHO: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Echoes"}'
  echo '{"value": {"description": "Anything", "required": true, "value_type": "any"}}' >&2
  exit 0
fi
cat
printf '\n%s' "$MCPD_OPT_value"
"#;

/// The operator sees the causes behind the error.
#[test]
fn start_failure_is_logged_with_all_causes() {
    let sandbox = sandbox();
    // A description that is in the cache is not probed again.
    sandbox.run(&["list", "--sandbox", "guarded", "scripts"]);
    let mut command = sandbox.command(&["call", "--sandbox", "guarded", "scripts", "hello"]);
    let output = command.env("TMPDIR", "/nowhere").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("failed to prepare its sandbox: "), "{said}");
    assert!(said.contains("No such file or directory"), "{said}");
}

/// A script that hangs during the probe would add five seconds to every call.
#[test]
fn other_scripts_are_not_probed() {
    let sandbox = sandbox().with_script(
        "failing",
        "#!/bin/sh\necho \"$MCPD_OPT_a\" >>asked\nexit 3\n",
    );
    let asked = sandbox.path().join("scripts/asked");
    for arguments in [
        &["call", "scripts", "hello"][..],
        &["call", "scripts", "hello"],
        &["call", "--no-cache", "scripts", "hello"],
        &["describe", "scripts", "math/calc"],
        &["state", "scripts", "hello"],
    ] {
        sandbox.run(arguments);
        assert!(!asked.exists(), "{arguments:?}");
    }
    assert_snapshot!(sandbox.run(&["call", "scripts", "failing"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no tool `failing`: the script is faulty; run `mcpd check @@ROOT@@/scripts/failing` for the reason
    ");
    assert_snapshot!(sandbox.run(&["call", "scripts", "helo"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no tool `helo`; did you mean `hello`?
    ");
}

#[test]
fn truncated_answer_is_reported() {
    let flood = "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{\"description\": \"Floods\"}'; exit; }\nhead -c 20000000 /dev/zero | tr '\\0' x\n";
    let sandbox = sandbox().with_script("flood", flood);
    let output = sandbox
        .command(&["call", "scripts", "flood"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.ends_with(" of 20000000 bytes omitted\n"), "{said}");
}

#[test]
fn answer_is_on_stdout() {
    assert_snapshot!(sandbox().run(&["call", "scripts", "hello"]), @r#"
    exit code: 0
    ----- stdout -----
    {"message": "Hello, World!"}
    "#);
}

#[test]
fn text_is_converted_to_numbers_and_booleans() {
    let arguments = [
        "call",
        "scripts",
        "math/calc",
        "operation=add",
        "a=1.50",
        "strict=true",
        "unit=5",
    ];
    assert_snapshot!(sandbox().run(&arguments), @r#"
    exit code: 0
    ----- stdout -----
    {"operation":"add","a":1.50,"digits":2,"unit":"5","strict":true}
    "#);
}

/// Checks an echoed argument: `json` is its value on stdin, `variable` its value in the
/// environment.
#[track_caller]
fn check_echo(arguments: &[&str], stdin: &str, json: &str, variable: &str) {
    let sandbox = Sandbox::new().with_script("echo", ECHO);
    let arguments = [&["call", "scripts", "echo"], arguments].concat();
    let answer = format!("{{\"value\":{json}}}\n{variable}");
    let transcript = sandbox.run_with_stdin(&arguments, stdin);
    assert_eq!(
        transcript,
        format!("exit code: 0\n----- stdout -----\n{answer}\n")
    );
}

#[test]
fn value_is_text_unless_json_is_requested() {
    check_echo(&["value=5"], "", r#""5""#, "5");
    check_echo(&["value:=[1, true]"], "", "[1,true]", "[1,true]");
    check_echo(
        &["value:=1234567890123456789.10"],
        "",
        "1234567890123456789.10",
        "1234567890123456789.10",
    );
    check_echo(&["--arguments", r#"{"value": "-x"}"#], "", r#""-x""#, "-x");
    check_echo(&["--arguments", r#"{"value": 1e3}"#], "", "1e3", "1000");
    check_echo(&["--arguments", "-"], r#"{"value": null}"#, "null", "null");
}

#[test]
fn hostile_value_arrives_byte_for_byte() {
    let hostile = r#"O'Brien "x" $(id) `id` \n %s ; & | < > * ~ é"#;
    let sandbox = Sandbox::new().with_script("echo", ECHO);
    let stdout = sandbox.stdout(&["call", "scripts", "echo", &format!("value={hostile}")]);
    let (json, variable) = std::str::from_utf8(&stdout)
        .unwrap()
        .split_once('\n')
        .unwrap();
    assert_eq!(variable, format!("{hostile}\n"));
    let stdin: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(stdin["value"], hostile);
}

/// Script that prints its command line, one word on each line.
const WORDS: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Repeats its command line"}'
  echo '{"files": {"description": "A", "value_type": "array", "argument": "positional", "default_value": []},
         "user": {"description": "B", "required": true, "value_type": "string", "argument": "--user", "variable": "WHO"},
         "n": {"description": "C", "value_type": "integer", "argument": "-n", "default_value": -1},
         "loud": {"description": "D", "value_type": "boolean", "argument": "--loud", "default_value": true}}' >&2
  exit 0
fi
printf '<%s>\n' "$WHO" "$@"
"#;

#[test]
fn options_stand_on_the_command_line_word_by_word() {
    let sandbox = Sandbox::new().with_script("words", WORDS);
    let arguments = [
        "call",
        "scripts",
        "words",
        "user=$(id) 'x'; *",
        r#"files:=["--loud", "", "a b\nc"]"#,
    ];
    assert_snapshot!(sandbox.run(&arguments), @r"
    exit code: 0
    ----- stdout -----
    <$(id) 'x'; *>
    <--user=$(id) 'x'; *>
    <-n-1>
    <--loud>
    <-->
    <--loud>
    <>
    <a b
    c>
    ");
}

#[test]
fn argument_too_long_for_a_command_line_is_refused() {
    let sandbox = Sandbox::new().with_script("words", WORDS);
    let call = |user: &str| {
        let arguments = format!(r#"{{"user": "{user}"}}"#);
        sandbox.run_with_stdin(
            &["call", "scripts", "words", "--arguments", "-"],
            &arguments,
        )
    };
    assert_snapshot!(call(r"a\u0000b"), @"
    exit code: 5
    ----- stdout -----
    Invalid arguments: option `user`: expected text without a NUL character, because it is passed on the command line, got one
    ----- stderr -----
    mcpd: error: `words` failed
    ");
    assert_snapshot!(call(&"x".repeat(128 * 1024)), @"
    exit code: 5
    ----- stdout -----
    Invalid arguments: option `user`: expected at most 131071 bytes, and 262144 for all arguments together, because it is passed on the command line, got more
    ----- stderr -----
    mcpd: error: `words` failed
    ");
    // The longest value allowed exceeds what a variable can hold, and still starts.
    let longest = "x".repeat(128 * 1024 - "--user=".len() - 1);
    let said = call(&longest);
    assert!(
        said.starts_with("exit code: 0\n----- stdout -----\n<>\n<--user=xxx"),
        "{said}"
    );
}

#[test]
fn a_value_larger_than_a_command_line_comes_from_stdin() {
    let value = "x".repeat(4 << 20);
    let sandbox =
        Sandbox::new().with_script("length", &ECHO.replace("cat\nprintf", "wc -c\n: printf"));
    let arguments = ["call", "scripts", "length", "--arguments", "-"];
    let transcript = sandbox.run_with_stdin(&arguments, &format!(r#"{{"value": "{value}"}}"#));
    let length = value.len() + r#"{"value":""}"#.len();
    assert_eq!(
        transcript,
        format!("exit code: 0\n----- stdout -----\n{length}\n")
    );
}

#[test]
fn the_log_of_the_script_is_on_stderr() {
    assert_snapshot!(sandbox().run(&["call", "scripts", "exit", "code=0"]), @"
    exit code: 0
    ----- stderr -----
    ERROR it broke
    WARNING it bends
    INFO no level
    PROGRESS 1/2 halfway
    The script succeeded and printed nothing.
    ");
    assert_snapshot!(sandbox().run(&["call", "scripts", "exit", "code=0", "--quiet"]), @"
    exit code: 0
    ----- stderr -----
    ERROR it broke
    PROGRESS 1/2 halfway
    ");
}

#[test]
fn script_failure_names_the_script() {
    assert_snapshot!(sandbox().run(&["call", "scripts", "exit", "code=4", "-q"]), @r#"
    exit code: 5
    ----- stdout -----
    {"error": "as asked"}
    ----- stderr -----
    ERROR it broke
    PROGRESS 1/2 halfway
    mcpd: error: `exit` failed: exit code 4 (not-found)
    "#);
}

#[test]
fn json_output_is_the_result_that_clients_get() {
    assert_snapshot!(sandbox().run(&["call", "scripts", "exit", "code=8", "-q", "--json"]), @r#"
    exit code: 5
    ----- stdout -----
    {
      "content": [
        {
          "type": "text",
          "text": "{\"error\": \"as asked\"}"
        },
        {
          "type": "text",
          "text": "The script failed with exit code 8 (conflict). The end of its stderr:\nERROR it broke\nWARNING: it bends\nDEBUG x=5\nno level\nPROGRESS 1/2 halfway",
          "_meta": {
            "mcpd/note": true
          }
        }
      ],
      "isError": true,
      "resultType": "complete",
      "_meta": {
        "io.modelcontextprotocol/serverInfo": {
          "name": "mcpd",
          "version": "0.1.0"
        },
        "mcpd/exit": {
          "code": 8,
          "name": "conflict"
        }
      }
    }
    ----- stderr -----
    ERROR it broke
    PROGRESS 1/2 halfway
    mcpd: error: `exit` failed: exit code 8 (conflict)
    "#);
}

#[test]
fn invalid_arguments_are_explained() {
    let arguments = [
        "call",
        "scripts",
        "math/calc",
        "operation=divide",
        "digits=10",
        "b=1",
    ];
    assert_snapshot!(sandbox().run(&arguments), @r#"
    exit code: 5
    ----- stdout -----
    Invalid arguments: option `operation`: expected one of "add", "subtract", got the string "divide"
    option `a`: expected a number, got nothing
    option `digits`: expected an integer from 0 to 9, got the number 10
    option `b`: expected a declared option such as `a`, got an unknown name
    (If the client adds this argument to every call by itself, the operator can have it dropped with `[arguments] ignore` in mcpd.toml.)
    ----- stderr -----
    mcpd: error: `math/calc` failed
    "#);
}

#[test]
fn malformed_arguments_are_a_usage_error() {
    assert_snapshot!(sandbox().run(&["call", "scripts", "math/calc", "add"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the argument `add`: expected NAME=TEXT or NAME:=JSON
    ");
    assert_snapshot!(sandbox().run(&["call", "scripts", "math/calc", "--arguments", "{a: 1}"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the arguments as JSON: key must be a string at line 1 column 2
    ");
    assert_snapshot!(sandbox().run(&["call", "scripts", "math/calc", "--arguments", "[]"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the arguments as JSON: expected an object
    ");
}

#[test]
fn unknown_tool_gets_a_suggestion() {
    assert_snapshot!(sandbox().run(&["call", "scripts", "helo"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no tool `helo`; did you mean `hello`?
    ");
    assert_snapshot!(sandbox().run(&["call", "scripts", "calc"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no tool `calc`; did you mean `math/calc`?
    ");
}

#[test]
fn unanswerable_question_is_reported() {
    let script = r#"#!/bin/sh
if [ "$1" = --help ]; then echo '{"output": "mcp"}'; exit 0; fi
echo '{"inputRequests": {"where": {"method": "roots/list"}}}'
"#;
    let sandbox = Sandbox::new().with_script("ask", script);
    assert_snapshot!(sandbox.run(&["call", "scripts", "ask"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: the script requires `roots`, which this command does not support
    ");
}

#[test]
fn output_of_a_stopped_script_is_part_of_the_answer() {
    let script = r#"#!/bin/sh
if [ "$1" = --help ]; then echo '{}'; exit 0; fi
echo 'WARN the disk is slow' >&2
exec sleep 60
"#;
    let sandbox = Sandbox::new().with_script("slow", script);
    assert_snapshot!(sandbox.run(&["call", "scripts", "slow", "--timeout", "1", "-q"]), @"
    exit code: 5
    ----- stderr -----
    The script was stopped because it ran longer than its limit of 1 s.
    WARN the disk is slow
    mcpd: error: `slow` failed: exit code 143 (time-limit)
    ");
}

#[test]
fn script_timeout_ends_the_script() {
    let sandbox = Sandbox::new().with_script("stubborn", STUBBORN);
    assert_snapshot!(sandbox.run(&["call", "scripts", "stubborn", "--timeout", "1"]), @"
    exit code: 5
    ----- stderr -----
    The script was stopped because it ran longer than its limit of 1 s. It printed nothing.
    mcpd: error: `stubborn` failed: exit code 137 (time-limit)
    ");
    assert_group_ends(&sandbox.path().join("scripts/number"));
}

#[test]
fn interrupted_call_leaves_no_process() {
    let sandbox = Sandbox::new().with_script("stubborn", STUBBORN);
    let mut call = sandbox.command(&["call", "scripts", "stubborn"]);
    let child = call
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let number = sandbox.path().join("scripts/number");
    eventually("the script to run", || number.exists().then_some(()));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_snapshot!(sandbox.transcript(&child.wait_with_output().unwrap()), @"
    exit code: 130
    ----- stderr -----
    The script was stopped because the call was cancelled. It printed nothing.
    mcpd: error: `stubborn` failed: exit code 137 (cancelled)
    ");
    assert_group_ends(&number);
}

/// Calls every example script as its description says.
#[test]
fn example_scripts_answer() {
    let sandbox = Sandbox::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/scripts");
    fs::write(sandbox.path().join("file"), "a line\n").unwrap();
    let file = format!("path={}", sandbox.path().join("file").display());
    for (arguments, answer) in [
        (&["hello"][..], "Hello, World!\n"),
        (
            &["greet", r#"name=O'Brien "x" $(id) \n"#],
            "Hello, O'Brien \"x\" $(id) \\n!\n",
        ),
        (
            &["math/calc", "operation=multiply", "a=6", "b=7"],
            "{\"result\": 42}\n",
        ),
        (&["files/read", &file], "a line\n"),
    ] {
        let answered = sandbox.stdout(&[&["call", examples], arguments].concat());
        assert_eq!(String::from_utf8_lossy(&answered), answer, "{arguments:?}");
    }
}

/// Clients such as n8n add arguments of their own to every call.
#[test]
fn ignored_argument_is_left_out_where_no_option_has_its_name() {
    let sandbox = sandbox();
    let config = "[arguments]\nignore = [\"toolCallId\", \"name\"]\n";
    fs::write(sandbox.path().join("mcpd.toml"), config).expect("it can be written");
    let call = |argument: &str| {
        let arguments = [
            "call",
            "scripts",
            "hello",
            "name=Ada",
            argument,
            "--config",
            "mcpd.toml",
        ];
        sandbox.run(&arguments)
    };
    assert!(
        call("toolCallId=7").contains("exit code: 0"),
        "{}",
        call("toolCallId=7")
    );
    assert!(call("toolCallID=7").contains("got an unknown name"));
}

/// A sandbox with `find`, as a program that knows nothing of mcpd.
fn with_find() -> Sandbox {
    let sandbox = Sandbox::new().with_script("find", "#!/bin/sh\nexec /usr/bin/find \"$@\"\n");
    let sidecar = r#"description = "Finds files"
command_line = ["{path}", "{}"]
options.path = { description = "Where", required = true, value_type = "string", argument = "{}" }
options.name = { description = "Pattern", value_type = "string", argument = "-name {}" }
options.size = { description = "Size", value_type = "string", argument = "-size {}" }
options.files = { description = "Files alone", value_type = "boolean", argument = "-type f" }
options.token = { description = "Unused", value_type = "string", secret = true, variable = "FIND_TOKEN" }
"#;
    fs::write(sandbox.path().join("scripts/find.mcpd.toml"), sidecar).unwrap();
    sandbox
}

#[test]
fn ordinary_program_gets_its_own_words() {
    let sandbox = with_find();
    fs::write(sandbox.path().join("scripts/a b.txt"), "").unwrap();
    fs::write(sandbox.path().join("scripts/-delete"), "").unwrap();
    let found = |name: &str| {
        sandbox.run(&[
            "call",
            "scripts",
            "find",
            "path=.",
            name,
            "files=true",
            "size=-10k",
        ])
    };
    assert!(
        found("name=* b.txt").contains("./a b.txt"),
        "{}",
        found("name=* b.txt")
    );
    assert!(found("name=-delete").contains("./-delete"));
    let refused = sandbox.run(&["call", "scripts", "find", "path=-delete"]);
    assert!(refused.contains("does not begin with `-`"), "{refused}");
    assert!(sandbox.path().join("scripts/-delete").exists());
}

#[test]
fn show_prints_the_command_without_running_it() {
    let sandbox = with_find();
    let arguments = [
        "call",
        "scripts",
        "find",
        "path=.",
        "name=it's *",
        "token=s3cret-token",
        "--show",
    ];
    let shown = sandbox.run(&arguments);
    let (command, remarks) = shown.split_once("\n# ").unwrap();
    assert_snapshot!(command, @r#"
    exit code: 0
    ----- stdout -----
    (cd @@ROOT@@/scripts &&
    printf '%s' "{\"path\":\".\",\"name\":\"it's *\",\"token\":\"[redacted]\"}" |
    env 'FIND_TOKEN=[redacted]' "MCPD_OPT_name=it's *" 'MCPD_OPT_path=.' 'MCPD_OPT_token=[redacted]' 'MCPD_TOOL=find' 'PYTHONUNBUFFERED=1' "TOOL_ARGS={\"path\":\".\",\"name\":\"it's *\",\"token\":\"[redacted]\"}" \
      @@ROOT@@/scripts/find . -name "it's *")
    "#);
    assert!(
        remarks.starts_with("Sandbox: none\n# Limits: time limit 60s\n# Inherits: "),
        "{remarks}"
    );
    assert!(!shown.contains("s3cret"), "{shown}");
    let object = sandbox.run(&[&arguments[..], &["--json"]].concat());
    assert!(
        !object.contains("s3cret") && object.contains(r#""variables": {"#),
        "{object}"
    );
}

#[test]
fn shown_command_does_the_same_in_a_shell() {
    let sandbox = with_find();
    fs::write(sandbox.path().join("scripts/it's $(x)"), "").unwrap();
    let call = ["call", "scripts", "find", "path=.", "name=it's $(x)"];
    let mut show = sandbox.command(&[&call[..], &["--show"]].concat());
    let shown = show.output().unwrap();
    let line = String::from_utf8(shown.stdout).unwrap();
    let ran = sandbox.program("sh").arg("-c").arg(&line).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "./it's $(x)\n",
        "{line}"
    );
    let called = sandbox.command(&call).output().unwrap();
    assert_eq!(called.stdout, ran.stdout);
}

#[test]
fn show_reports_faulty_arguments_and_tools_that_are_no_scripts() {
    let sandbox = with_find();
    assert_snapshot!(sandbox.run(&["call", "scripts", "find", "--show"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: Invalid arguments: option `path`: expected a string, got nothing
    ");
    let other = ["call", "scripts", "runs_list", "--enable", "runs", "--show"];
    assert!(
        sandbox.run(&other).contains("no script of this machine"),
        "{}",
        sandbox.run(&other)
    );
}
