//! `mcpd describe`.

use std::fs;

use insta::assert_snapshot;
use mcpd_tests::Sandbox;

use crate::sandbox;

#[test]
fn a_tool_is_described_for_people() {
    assert_snapshot!(sandbox().run(&["describe", "scripts", "math/calc"]), @r#"
    exit code: 0
    ----- stdout -----
    math/calc - Calculator, version 1.0
    (listed to most clients as math_calc)

    Calculates.
    Slowly.

    Options:
      operation: "add" | "subtract", required
          What to do
      a: number, required
          First number
      digits: integer from 0 to 9, default 2
          Digits after the point
      unit: string of at most 8 characters, default ""
          What is counted
      strict: boolean, default false
          Whether to be strict

    Sandbox: none
    Limits: time limit 60s
    "#);
}

#[test]
fn option_is_shown_with_all_attributes() {
    let sandbox = sandbox();
    let sidecar = r#"description = "Books a room"
tags = ["travel", "hotel"]
annotations = { read_only = false, idempotent = true }

[options.arrival]
description = "First day"
required = true
value_type = "string"
format = "date"
examples = ["2026-12-24", "2026-12-31"]

[options.guests]
description = "Who comes"
required = true
value_type = "array"

[options.guests.items]
value_type = "object"

[options.guests.items.properties.name]
description = "Their name"
required = true
value_type = "string"
"#;
    let scripts = sandbox.path().join("scripts");
    fs::write(scripts.join("book.sh"), "true\n").unwrap();
    fs::write(scripts.join("book.sh.mcpd.toml"), sidecar).unwrap();
    assert_snapshot!(sandbox.run(&["describe", "scripts", "book.sh"]), @r#"
    exit code: 0
    ----- stdout -----
    book.sh
    (listed to most clients as book_sh)

    Books a room

    Hints: not read-only, idempotent

    Tags: travel, hotel

    Options:
      arrival: string in the format `date`, required
          First day
          for example "2026-12-24", "2026-12-31"
      guests: array, each: object, required
          Who comes
          name: string, required
              Their name

    Sandbox: none
    Limits: time limit 60s
    "#);
}

#[test]
fn requirements_and_permissions_are_shown() {
    let metadata = r#"{"requires": ["sampling"], "task": "auto", "timeout": 1.5}"#;
    let sandbox = Sandbox::new().with_script("render", &format!("#!/bin/sh\necho '{metadata}'\n"));
    let configuration = "[sandbox.small]\nlevel = \"none\"\nmemory = \"64 MiB\"\ncpu = 2\nprocesses = 9\n[[tool]]\nmatch = \"render\"\nsandbox = \"small\"\n";
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    assert_snapshot!(sandbox.run(&["describe", "scripts", "render"]), @"
    exit code: 0
    ----- stdout -----
    render

    Required client capabilities: sampling

    May run as a task

    No options.

    Sandbox: none
    Limits: time limit 1.5s, 2s of processor time, 64 MiB of memory, 9 processes
    ");
}

#[test]
fn a_tool_without_options_says_so() {
    assert_snapshot!(sandbox().run(&["describe", "scripts", "hello"]), @"
    exit code: 0
    ----- stdout -----
    hello

    Says hello

    No options.

    Sandbox: none
    Limits: time limit 60s
    ");
}

#[test]
fn json_is_the_definition_that_clients_get() {
    assert_snapshot!(sandbox().run(&["describe", "scripts", "count", "--json"]), @r#"
    exit code: 0
    ----- stdout -----
    {
      "name": "count",
      "title": "count",
      "description": "Persistent counter",
      "inputSchema": {"type":"object","properties":{"increment":{"type":"integer","description":"Amount to add","default":1}},"additionalProperties":false},
      "_meta": {
        "mcpd/path": "count"
      }
    }
    "#);
}

#[test]
fn every_spelling_of_a_name_is_the_tool() {
    let sandbox = sandbox();
    let path = sandbox.stdout(&["describe", "scripts", "math/calc"]);
    for spelling in ["math_calc", "math.calc"] {
        assert_eq!(sandbox.stdout(&["describe", "scripts", spelling]), path);
    }
}

#[test]
fn a_misspelt_name_gets_a_suggestion() {
    assert_snapshot!(sandbox().run(&["describe", "scripts", "math/cacl"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no tool `math/cacl`; did you mean `math/calc`?
    ");
}

#[test]
fn name_without_a_match_points_to_the_list() {
    assert_snapshot!(sandbox().run(&["describe", "scripts", "quux"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no tool `quux`; `mcpd list` shows all tools
    ");
}

#[test]
fn faulty_script_is_distinct_from_a_missing_one() {
    assert_snapshot!(sandbox().run(&["describe", "scripts", "broken"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no tool `broken`: the script is faulty; run `mcpd check @@ROOT@@/scripts/broken` for the reason
    ");
}

#[test]
fn script_that_is_no_tool_is_distinct_from_a_faulty_one() {
    let script = |metadata| format!("#!/bin/sh\necho '{metadata}'\n");
    let sandbox = Sandbox::new()
        .with_script("review", &script(r#"{"kind": "prompt"}"#))
        .with_script(
            "motd",
            &script(r#"{"kind": "resource", "uri": "my://motd"}"#),
        );
    assert_snapshot!(sandbox.run(&["call", "scripts", "review"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no tool `review`: it is a prompt; render it with `mcpd prompt`
    ");
    assert_snapshot!(sandbox.run(&["describe", "scripts", "motd"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no tool `motd`: it is the resource `my://motd`; read it with `mcpd read`
    ");
}

#[test]
#[cfg(unix)]
fn non_executable_file_is_distinct_from_a_missing_one() {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("scripts/hello.sh"), "#!/bin/sh\n").unwrap();
    assert_snapshot!(sandbox.run(&["describe", "scripts", "hello.sh"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no tool `hello.sh`: the file is not executable; run `chmod +x` on it
    ");
}

#[test]
#[cfg(target_os = "linux")]
fn description_shows_the_confinement_in_force() {
    let arguments = ["describe", "scripts", "hello", "--sandbox", "guarded"];
    let more = ["--no-network", "--allow-write", "scripts"];
    let transcript = sandbox().run(&[&arguments[..], &more].concat());
    let (_, confinement) = transcript.split_once("Sandbox: ").unwrap();
    let expected =
        "guarded, without a network\n  may write @@ROOT@@/scripts\n  enforced on this machine: ";
    assert!(confinement.starts_with(expected), "{transcript}");
}

#[test]
fn backend_of_a_tool_is_named_with_what_it_enforces() {
    let sandbox = sandbox();
    let configuration =
        "[sandbox.boxed]\nbackend = \"bwrap\"\n[[tool]]\nmatch = \"hello\"\nsandbox = \"boxed\"\n";
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let described = sandbox.run(&["describe", "scripts", "hello"]);
    let (_, rest) = described
        .split_once("\nSandbox: strict, by bwrap, without a network\n  ")
        .unwrap();
    let works = "enforced on this machine: bwrap, ";
    let fails = "calls will fail on this machine: failed to enforce the sandbox of ";
    assert!(
        rest.starts_with(works) || rest.starts_with(fails),
        "{described}"
    );
}
