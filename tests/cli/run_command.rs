//! `--enable run_command`: the tool as a client sees it, one message a line through pipes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;
use mcpd_tests::Sandbox;
use serde_json::{Value, json};

/// Returns the answer of mcpd to one message, with no script directory.
fn answer(sandbox: &Sandbox, arguments: &[&str], message: &Value) -> Value {
    let arguments = [&["stdio", "--enable", "run_command"], arguments].concat();
    let transcript = sandbox.run_with_stdin(&arguments, &message.to_string());
    let line = transcript
        .lines()
        .find(|line| line.starts_with('{'))
        .unwrap_or_else(|| panic!("{transcript}"));
    serde_json::from_str(line).unwrap()
}

fn call(arguments: &Value) -> Value {
    let params = json!({"name": "run_command", "arguments": arguments});
    json!({"jsonrpc": "2.0", "method": "tools/call", "id": "unique-id", "params": params})
}

/// Returns the texts of a result in order, preceded by `failed` if it is an error.
fn texts(answer: &Value) -> Vec<String> {
    let result = &answer["result"];
    assert_eq!(answer["id"], "unique-id", "{answer}");
    let failed = result["isError"]
        .as_bool()
        .unwrap_or_else(|| panic!("{answer}"));
    let mut texts: Vec<_> = failed.then(|| "failed".to_owned()).into_iter().collect();
    for block in result["content"].as_array().unwrap() {
        texts.push(block["text"].as_str().unwrap_or("no text").to_owned());
    }
    texts
}

#[track_caller]
fn check(arguments: &Value, expected: &[&str]) {
    let answer = answer(&Sandbox::new(), &[], &call(arguments));
    assert_eq!(texts(&answer), expected, "{arguments}");
}

#[test]
fn tool_description_is_short() {
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let answer = answer(&Sandbox::new(), &[], &list);
    let system = if cfg!(target_os = "linux") {
        "Linux"
    } else {
        "macOS"
    };
    let shown = answer.to_string().replace(system, "SYSTEM");
    assert_snapshot!(shown, @r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"run_command","description":"Run a command on this SYSTEM machine. It is run by `/bin/sh -c`. Background processes that it leaves are killed when the call ends.","inputSchema":{"type":"object","properties":{"command":{"type":"string","description":"Command with args"},"workdir":{"type":"string","description":"Optional, current working directory"},"stdin":{"type":"string","description":"Optional, text to pipe into the command's STDIN. For example, pass a python script to python3. Or, pass text for a new file to the cat command to create it!"},"timeout_ms":{"type":"integer","minimum":1,"maximum":600000,"description":"Optional, how long the command may run, in milliseconds"}},"required":["command"]},"_meta":{"mcpd/path":"run_command"}}]}}"#);
}

#[test]
fn tool_is_listed_only_if_enabled() {
    let sandbox = Sandbox::new();
    let transcript = sandbox.run_with_stdin(
        &["stdio", "scripts"],
        &call(&json!({"command": "ls"})).to_string(),
    );
    assert!(
        transcript.contains("unknown tool `run_command`"),
        "{transcript}"
    );
}

#[test]
fn tool_description_states_its_purpose() {
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
    }});
    let answer = answer(&Sandbox::new(), &[], &initialize);
    let instructions = answer["result"]["instructions"].as_str().unwrap();
    let system = if cfg!(target_os = "linux") {
        "Linux"
    } else {
        "macOS"
    };
    assert_eq!(
        instructions,
        format!("Run commands on this {system} machine")
    );
}

#[test]
fn output_is_the_result() {
    check(&json!({"command": "echo one; echo two"}), &["one\ntwo"]);
    check(&json!({"command": "printf a && printf b | cat"}), &["ab"]);
    check(
        &json!({"command": "echo out; echo err >&2"}),
        &["out", "err"],
    );
    check(&json!({"command": "echo err >&2"}), &["err"]);
    check(
        &json!({"command": "true"}),
        &["The command succeeded and printed nothing."],
    );
}

#[test]
fn text_is_piped_in() {
    check(
        &json!({"command": "tr a-z A-Z", "stdin": "hello\n"}),
        &["HELLO"],
    );
    check(
        &json!({"command": "cat", "stdin": ""}),
        &["The command succeeded and printed nothing."],
    );
    check(
        &json!({"command": "cat"}),
        &["The command succeeded and printed nothing."],
    );
    let long = "x".repeat(1_000_000);
    check(&json!({"command": "wc -c", "stdin": long}), &["1000000"]);
    // A command that does not read its stdin succeeds.
    check(&json!({"command": "echo done", "stdin": long}), &["done"]);
}

#[test]
fn failure_has_exit_code_and_output() {
    check(
        &json!({"command": "echo out; echo err >&2; exit 3"}),
        &[
            "failed",
            "The command failed with exit code 3.",
            "out",
            "err",
        ],
    );
    check(
        &json!({"command": "exit 1"}),
        &["failed", "The command failed with exit code 1."],
    );
    check(
        &json!({"command": "echo out; kill -9 $$"}),
        &[
            "failed",
            "The command was killed by signal SIGKILL (9).",
            "out",
        ],
    );
    check(
        &json!({"command": "echo out; sleep 600; echo never", "timeout_ms": 300}),
        &[
            "failed",
            "The command was stopped because it ran longer than its limit of 0.3 s. Its output before that follows.",
            "out",
        ],
    );
}

#[test]
#[cfg(target_os = "linux")]
fn background_process_is_ended_and_noted() {
    check(
        &json!({"command": "sleep 600 >/dev/null 2>&1 &"}),
        &[
            "The command succeeded and printed nothing.",
            "1 process that the command left running was ended with it.",
        ],
    );
    check(
        &json!({"command": "echo a; for i in 1 2; do sleep 600 >/dev/null 2>&1 & done"}),
        &[
            "a",
            "2 processes that the command left running were ended with it.",
        ],
    );
}

#[test]
fn description_mentions_background_processes() {
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let unconfined = Sandbox::new();
    let configuration = "[run_command]\nsandbox = 'none'\n";
    fs::write(unconfined.path().join("mcpd.toml"), configuration).unwrap();
    for (sandbox, arguments, expected) in [
        (
            Sandbox::new(),
            ["--enable", "runs"],
            "when the call ends; use `runs_start` for work that must continue.",
        ),
        (
            unconfined,
            ["--config", "mcpd.toml"],
            "keep running after the call.",
        ),
    ] {
        let answer = answer(&sandbox, &arguments, &list);
        let tools = answer["result"]["tools"].as_array().unwrap();
        let mut tools = tools.iter().filter(|tool| tool["name"] == "run_command");
        let description = tools.next().unwrap()["description"].as_str().unwrap();
        assert!(description.ends_with(expected), "{description}");
    }
}

#[test]
fn impossible_call_is_explained() {
    let invalid = |fault: &str| format!("Invalid arguments: {fault}");
    let missing = invalid("option `command`: expected a string, got nothing");
    check(&json!({}), &["failed", &missing]);
    let blank = invalid("option `command`: expected a command, got a blank string");
    check(&json!({"command": " \n"}), &["failed", &blank]);
    let number = invalid("option `command`: expected a string, got the number 7");
    check(&json!({"command": 7}), &["failed", &number]);
    let unknown = invalid(
        "option `cwd`: expected one of the options `command`, `workdir`, `stdin`, `timeout_ms`, got an unknown name\n(If the client adds this argument to every call by itself, the operator can have it dropped with `[arguments] ignore` in mcpd.toml.)",
    );
    check(&json!({"command": "ls", "cwd": "/"}), &["failed", &unknown]);
    let long =
        invalid("option `timeout_ms`: expected an integer from 1 to 600000, got the number 600001");
    check(
        &json!({"command": "ls", "timeout_ms": 600_001}),
        &["failed", &long],
    );
    check(
        &json!({"command": "ls", "workdir": "/no/such/place"}),
        &[
            "failed",
            "The command was not run: the working directory `/no/such/place` does not exist or is not accessible.",
        ],
    );
    check(
        &json!({"command": "echo \u{0}"}),
        &[
            "failed",
            "The command was not run: it contains a NUL character.",
        ],
    );
    let long = format!("echo {}", "x".repeat(200_000));
    check(
        &json!({"command": long}),
        &[
            "failed",
            "The command was not run: it is too long. Pass long text in `stdin`.",
        ],
    );
}

#[test]
fn a_long_output_is_cut_and_can_be_read_as_a_whole() {
    let answer = answer(
        &Sandbox::new(),
        &[],
        &call(&json!({"command": "seq 100000"})),
    );
    let content = &answer["result"]["content"];
    let text = content[0]["text"].as_str().unwrap();
    assert!(text.starts_with("1\n2\n") && text.ends_with("\n99999\n100000"));
    assert!(text.contains("bytes left out"));
    let note = content[1]["text"].as_str().unwrap();
    assert!(
        note.contains("a part of the 588895 bytes of output on stdout"),
        "{note}"
    );
    assert_eq!(content[2]["type"], "resource_link");
}

#[test]
fn command_runs_in_the_given_directory() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path().join("work/sub")).unwrap();
    let show = |arguments: &[&str], call_arguments: &Value| {
        sandbox.redact(&texts(&answer(&sandbox, arguments, &call(call_arguments))).join("|"))
    };
    let here = ["--workdir", "work"];
    assert_eq!(show(&here, &json!({"command": "pwd"})), "@@ROOT@@/work");
    assert_eq!(
        show(&here, &json!({"command": "pwd", "workdir": "sub"})),
        "@@ROOT@@/work/sub"
    );
    assert_eq!(show(&[], &json!({"command": "pwd", "workdir": "/"})), "/");
    assert_eq!(
        show(&here, &json!({"command": "echo x > file && cat file"})),
        "x"
    );
    // Without a working directory, the command gets an empty one of its own, which is removed at
    // the end.
    let own = show(&[], &json!({"command": "ls -A; echo x > file; pwd"}));
    assert!(own.contains("/mcpd-commands-"), "{own}");
    assert!(!fs::exists(&own).unwrap(), "{own}");
}

#[test]
fn a_script_for_fish_is_piped_to_it() {
    let sandbox = Sandbox::new();
    let stand_in = "#!/bin/sh\n# Reads a script as fish does.\nexec sh -s\n";
    let bin = sandbox.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("fish"), stand_in).unwrap();
    fs::set_permissions(bin.join("fish"), fs::Permissions::from_mode(0o755)).unwrap();
    let script = "echo \"it's\" '$HOME' `echo \\\"quoted\\\"`\n";
    let command = format!("PATH={}:$PATH; fish", bin.display());
    let answer = answer(
        &sandbox,
        &[],
        &call(&json!({"command": command, "stdin": script})),
    );
    assert_eq!(texts(&answer), ["it's $HOME \"quoted\""]);
}

#[track_caller]
fn check_configured(configuration: &str, arguments: &Value, expected: &[&str]) {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let answer = answer(&sandbox, &["--config", "mcpd.toml"], &call(arguments));
    assert_eq!(texts(&answer), expected, "{configuration}");
}

#[test]
fn shell_and_timeout_are_configurable() {
    let rules = "[run_command]\nallow = [\"echo *\", \"git *\"]\ndeny = [\"git push *\"]\n";
    check_configured(rules, &json!({"command": "echo a | echo b"}), &["b"]);
    check_configured(
        rules,
        &json!({"command": "echo a; rm b"}),
        &[
            "failed",
            "The command was not run: `rm b` is not allowed. Allowed commands: `echo *`, `git *`.",
        ],
    );
    check_configured(
        rules,
        &json!({"command": "echo; git push"}),
        &[
            "failed",
            "The command was not run: `git push` is denied by the rule `git push *`.",
        ],
    );
    let limit = |seconds: &str| {
        format!(
            "The command was stopped because it ran longer than its limit of {seconds} s. It had printed nothing before."
        )
    };
    let timeout = "[run_command]\ntimeout = 0.3\nmax_timeout = 0.4\n";
    check_configured(
        timeout,
        &json!({"command": "sleep 600"}),
        &["failed", &limit("0.3")],
    );
    let long = json!({"command": "sleep 600", "timeout_ms": 400});
    check_configured(timeout, &long, &["failed", &limit("0.4")]);
    let shell = "[run_command]\nshell = [\"/bin/echo\", \"run:\"]\n";
    check_configured(shell, &json!({"command": "a b"}), &["run: a b"]);
}

#[test]
fn configuration_error_is_located() {
    let mistake = |configuration: &str| {
        let sandbox = Sandbox::new();
        fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
        let arguments = ["stdio", "--enable", "run_command", "--config", "mcpd.toml"];
        let transcript = sandbox.run(&arguments);
        let (_, said) = transcript.split_once("error: failed to ").unwrap();
        said.trim_end().to_owned()
    };
    assert_snapshot!(mistake("[run_command]\nsandbox = \"x\"\n"), @r#"apply the configuration: mcpd.toml:2:11: in [run_command]: `sandbox = "x"`: no such sandbox; known: guarded, none, strict"#);
    assert_snapshot!(mistake("[run_command]\nallow = []\n"), @"apply the configuration: mcpd.toml:2:9: in [run_command]: `allow`: an empty array allows nothing; without `allow` everything is allowed");
    assert_snapshot!(mistake("[run_command]\ndeny = [\"rm [\"]\n"), @"apply the configuration: mcpd.toml:2:9: in [run_command]: `deny`: failed to parse the pattern `rm [`: unclosed character class; missing ']'");
    assert_snapshot!(mistake("[run_command]\nshell = [\"fish\", \"-c\"]\ndeny = [\"rm *\"]\n"), @"apply the configuration: mcpd.toml:2:9: in [run_command]: `shell`: `allow` and `deny` require a known POSIX shell, and `fish` is not one");
    assert_snapshot!(mistake("[run_command]\nworkdir = \"nowhere\"\n"), @"serve the tool `run_command`: use `@@ROOT@@/nowhere`: No such file or directory (os error 2)");
}

#[test]
fn tool_is_callable_from_the_command_line() {
    let sandbox = Sandbox::new();
    let call = [
        "call",
        "scripts",
        "run_command",
        "--enable",
        "run_command",
        "command=echo a; exit 2",
    ];
    assert_snapshot!(sandbox.run(&call), @"
    exit code: 5
    ----- stdout -----
    The command failed with exit code 2.
    a
    ----- stderr -----
    mcpd: error: `run_command` failed: exit code 2 (failed)
    ");
    let list = sandbox.run(&["list", "--enable", "run_command"]);
    assert!(
        list.contains(
            "run_command(command, workdir?, stdin?, timeout_ms?)  Run a command on this "
        ),
        "{list}"
    );
}
