//! `mcpd list`.

use std::fs;

use insta::assert_snapshot;
use mcpd_tests::{Sandbox, output};
use serde_json::Value;

use crate::{BROKEN, HELLO, sandbox};

#[test]
fn tools_are_listed_by_path_and_faulty_ones_are_mentioned() {
    assert_snapshot!(sandbox().run(&["list", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    count(increment?: integer)                        Persistent counter
    exit(code: integer)                               Exits
    hello()                                           Says hello
    math/calc(operation, a, digits?, unit?, strict?)  Calculates.
    ----- stderr -----
    the catalog is incomplete: 1 faulty script; run `mcpd check scripts` for details
    ");
}

#[test]
#[cfg(unix)]
fn empty_list_mentions_the_executable_bit() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path().join("scripts")).unwrap();
    fs::write(sandbox.path().join("scripts/hello"), "echo hello\n").unwrap();
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"
    exit code: 0
    ----- stderr -----
    no tools found: scripts must be executable (`chmod +x`)
    ");
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    no faults in 0 scripts
    ----- stderr -----
    no scripts found: scripts must be executable (`chmod +x`)
    ");
}

#[test]
fn suggested_command_can_be_pasted_into_a_shell() {
    let sandbox = Sandbox::new().with_script("my tools/broken", BROKEN);
    assert_snapshot!(sandbox.run(&["list", "scripts/my tools"]), @"
    exit code: 0
    ----- stderr -----
    the catalog is incomplete: 1 faulty script; run `mcpd check 'scripts/my tools'` for details
    ");
}

#[test]
fn pattern_without_a_match_is_reported() {
    let file = r#"
roots = ["scripts"]

[[rule]]
deny = ["deep_hello", "deep/*"]

[[tool]]
match = "far/**"
timeout = 5

[[rule]]
allow = ["near/hello"]

[[upstream]]
name = "far"
command = ["true"]
"#;
    let sandbox = Sandbox::new().with_script("deep/hello", HELLO);
    fs::write(sandbox.path().join("mcpd.toml"), file).unwrap();
    assert_snapshot!(sandbox.run(&["list"]), @"
    exit code: 0
    ----- stdout -----
    deep/hello()  Says hello
    ----- stderr -----
    the catalog is incomplete: 1 faulty source; run `mcpd check @@ROOT@@/scripts` for details
    mcpd.toml:5:9: in [[rule]]: `deny`: `deep_hello` matches nothing; did you mean `deep/hello`?
    mcpd.toml:12:10: in [[rule]]: `allow`: `near/hello` matches nothing; did you mean `deep/hello`?
    ");
}

#[test]
fn json_is_the_definition_that_clients_get() {
    let sandbox = Sandbox::new().with_script("deep/hello", HELLO);
    assert_snapshot!(sandbox.run(&["list", "scripts", "--json"]), @r#"
    exit code: 0
    ----- stdout -----
    [
      {
        "name": "deep/hello",
        "title": "hello",
        "description": "Says hello",
        "inputSchema": {"type":"object","properties":{},"additionalProperties":false},
        "_meta": {
          "mcpd/path": "deep/hello"
        }
      }
    ]
    "#);
}

#[test]
fn first_directory_takes_precedence() {
    let sandbox = Sandbox::new()
        .with_script("hello", HELLO)
        .with_script("more/hello", &HELLO.replace("hello", "more"));
    assert_snapshot!(sandbox.run(&["list", "scripts/more", "--root-directory", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    hello()       Says more
    more/hello()  Says more
    ----- stderr -----
    the catalog is incomplete: 1 name conflict; run `mcpd check scripts/more scripts` for details
    ");
}

#[test]
fn description_is_cached_until_the_file_changes() {
    let counting = HELLO.replace("echo '{\"desc", "echo >>asked\n  echo '{\"desc");
    let sandbox = Sandbox::new().with_script("hello", &counting);
    // A confined probe could not write the file that counts it.
    fs::write(
        sandbox.path().join("mcpd.toml"),
        "[probe]\nsandbox = \"none\"\n",
    )
    .unwrap();
    let asked = |arguments: &[&str]| {
        sandbox.stdout(arguments);
        fs::read(sandbox.path().join("scripts/asked"))
            .unwrap()
            .len()
    };
    assert_eq!(asked(&["list", "scripts"]), 1);
    assert_eq!(asked(&["list", "scripts"]), 1);
    assert_eq!(asked(&["list", "scripts", "--no-cache"]), 2);
    sandbox.write_script("hello", &counting);
    assert_eq!(asked(&["list", "scripts"]), 3);
}

#[test]
fn a_directory_that_is_missing_is_an_error() {
    assert_snapshot!(Sandbox::new().run(&["list", "nowhere"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the root directory `nowhere`: No such file or directory (os error 2)
    ");
}

#[test]
fn a_file_in_the_place_of_a_directory_says_what_to_give() {
    let sandbox = Sandbox::new().with_script("hello", HELLO);
    assert_snapshot!(sandbox.run(&["list", "scripts/hello"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the root directory `scripts/hello`: it is a file; use the directory that contains it
    ");
}

#[test]
fn closed_stdout_is_no_error() {
    let sandbox = sandbox();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = sandbox
        .command(&["list", "scripts", "--json"])
        .stdout(writer)
        .status()
        .unwrap();
    assert!(status.success());
}

/// Clients start servers without a shell, which would expand the tilde.
#[test]
fn tilde_in_a_directory_is_the_home_directory() {
    let sandbox = sandbox();
    let listed = |directory: &str| {
        let mut command = sandbox.command(&["list", directory]);
        command.env("HOME", sandbox.path());
        output(command, b"").stdout
    };
    assert_eq!(listed("~/scripts"), listed("scripts"));
    assert!(!listed("~/scripts").is_empty());
}

#[test]
fn files_are_listed_with_their_status() {
    let sandbox = Sandbox::new()
        .with_script("greet", HELLO)
        .with_script("broken", BROKEN)
        .with_script("backup", "#!/bin/sh\necho 'usage: backup FILE'\n")
        .with_script("README.md", "# My tools\n")
        .with_script("venv/bin/pip", HELLO)
        .with_script("venv/pyvenv.cfg", "")
        .with_script("old/a", HELLO)
        .with_script("skipped", HELLO);
    let scripts = sandbox.path().join("scripts");
    fs::write(scripts.join(".mcpdignore"), "/old\n").unwrap();
    fs::write(scripts.join("notes"), "a note\n").unwrap();
    let file = "[[root]]\npath = \"scripts\"\nexclude = [\"skip*\"]\n";
    fs::write(sandbox.path().join("mcpd.toml"), file).unwrap();
    assert_snapshot!(sandbox.run(&["list", "--all"]), @"
    exit code: 0
    ----- stdout -----
    scripts/.mcpdignore  ignored: hidden: the name begins with a dot
    scripts/README.md    passed over: cannot be started: not a program, and without a `#!` line or an extension with an interpreter
    scripts/backup       passed over: not a tool: `--help` describes no tool, and the file does not mention mcpd
    scripts/broken       faulty: `--help` ended with exit code 3
    scripts/greet        served as `greet`
    scripts/notes        passed over: not executable, and without a description
    scripts/old/         ignored: `.mcpdignore` has `/old`
    scripts/skipped      ignored: excluded by `skip*` in `exclude` of mcpd.toml
    scripts/venv/        passed over: virtual environment
    ");
}

#[test]
fn cost_of_a_list_is_estimated_for_each_tool() {
    let long = "#!/bin/sh\nif [ \"$1\" = --help ]; then\n  echo '{\"description\": \"Counts the words of a text, and the lines, and the characters.\"}'\n  echo '{\"text\": {\"description\": \"Text to count.\"}}' >&2\n  exit\nfi\n";
    let sandbox = Sandbox::new()
        .with_script("hello", HELLO)
        .with_script("count", long);
    assert_snapshot!(sandbox.run(&["list", "scripts", "--cost"]), @"
    exit code: 0
    ----- stdout -----
     tokens    name  description  schema  tool
         50       1           16      25  count
         27       1            2      16  hello
         77       2           18      41  2 tools
    ");
    let printed = sandbox.stdout(&["list", "scripts", "--cost", "--json"]);
    let cost: Value = serde_json::from_slice(&printed).unwrap();
    let tools = cost["tools"].as_array().unwrap();
    let sum: u64 = tools
        .iter()
        .map(|tool| tool["total"].as_u64().unwrap())
        .sum();
    assert_eq!(tools[0]["path"], "count", "{cost}");
    assert_eq!(cost["total"], sum, "{cost}");
}
