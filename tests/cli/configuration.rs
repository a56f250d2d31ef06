//! `mcpd.toml` and the flags beside it: where it is found, what is said of a mistake in it, and the page that
//! explains it.

use std::fs;

use insta::assert_snapshot;
use mcpd_tests::{Sandbox, output};

use crate::HELLO;

/// Prints two variables.
const PRINTER: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo "{\"description\": \"Knows ${SECRET:-nothing}\"}"
  exit 0
fi
echo "INFO it is $SECRET" >&2
printf '%s|%s' "$SECRET" "$PLAIN"
"#;

fn sandbox() -> Sandbox {
    Sandbox::new()
        .with_script("hello", HELLO)
        .with_script("printer", PRINTER)
}

/// Starts with a configuration that is wrong, and gives what is said of it.
#[track_caller]
fn mistake(configuration: &str) -> String {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let transcript = sandbox.run(&["list", "scripts"]);
    let said = transcript.strip_prefix("exit code: 1\n----- stderr -----\nmcpd: error: failed to ");
    said.unwrap_or_else(|| panic!("{transcript}"))
        .trim_end()
        .to_owned()
}

/// Calls the printer under a configuration.
#[track_caller]
fn printed(configuration: &str, arguments: &[&str]) -> String {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let arguments = [&["call", "scripts", "printer"], arguments].concat();
    let mut command = sandbox.command(&arguments);
    command.env("SECRET", "inherited-secret");
    sandbox.transcript(&output(command, b""))
}

#[test]
fn an_unknown_key_is_told_with_its_place_and_the_key_that_was_meant() {
    assert_snapshot!(mistake("[tools]\n"), @"use the configuration: mcpd.toml:1:2: in [tools]: unknown key `tools`; did you mean `tool`?");
    assert_snapshot!(mistake("# first\n[sandbox.x]\n  levle = \"strict\"\n"), @"use the configuration: mcpd.toml:3:3: in [sandbox.x]: unknown key `levle`; did you mean `level`?");
    assert_snapshot!(mistake("[[tool]]\nmatch = \"*\"\n[tool.env]\nA = { fil = \"x\" }\n"), @"use the configuration: mcpd.toml:4:7: in [tool.env]: `A`: unknown key `fil`; did you mean `file`?");
    assert_snapshot!(mistake("[env]\nkeep = []\n"), @"use the configuration: mcpd.toml:2:1: in [env]: unknown key `keep`; known are pass, drop, set");
}

#[test]
fn a_value_of_the_wrong_kind_is_told_with_its_place() {
    assert_snapshot!(mistake("[sandbox.x]\nlevel = \"tight\"\n"), @"use the configuration: mcpd.toml:2:9: in [sandbox.x]: `level`: unknown value `tight`; known are none, guarded, strict");
    assert_snapshot!(mistake("[sandbox.x]\nlevel = \"strikt\"\n"), @"use the configuration: mcpd.toml:2:9: in [sandbox.x]: `level`: unknown value `strikt`; did you mean `strict`?");
    assert_snapshot!(mistake("[sandbox.x]\nmemory = \"64MB\"\n"), @r#"use the configuration: mcpd.toml:2:10: in [sandbox.x]: `memory`: `64MB` is no number of bytes; write one such as "64 MiB" (KiB, MiB, GiB, TiB)"#);
    assert_snapshot!(mistake("[sandbox.x]\nmemory = -1\n"), @"use the configuration: mcpd.toml:2:10: in [sandbox.x]: `memory`: a number of bytes is not negative");
    assert_snapshot!(mistake("[sandbox.x]\nwrite = \"here\"\n"), @r#"use the configuration: mcpd.toml:2:9: in [sandbox.x]: `write`: invalid type: string "here", expected an array"#);
    assert_snapshot!(mistake("[[tool]]\nmatch = \"*\"\ntimeout = 0\n"), @"use the configuration: mcpd.toml:3:11: in [[tool]]: `timeout`: expected a number of seconds above 0");
    assert_snapshot!(mistake("[[tool]]\nmatch = \"*\"\nconcurrency = 0\n"), @"use the configuration: mcpd.toml:3:15: in [[tool]]: `concurrency`: invalid value: integer `0`, expected a whole number above 0");
    assert_snapshot!(mistake("[[tool]]\nredact = true\n"), @"use the configuration: mcpd.toml:1:1: in [[tool]]: missing field `match`");
    assert_snapshot!(mistake("[sandbox.x\n"), @"use the configuration: mcpd.toml:1:11: unclosed table, expected `]`");
}

#[test]
fn a_value_that_means_nothing_is_told_with_its_place() {
    assert_snapshot!(mistake("[sandbox.strict]\nwrite = [\"x\"]\n"), @"use the configuration: mcpd.toml:1:10: in [sandbox.strict]: `strict` is always there; choose another name");
    assert_snapshot!(mistake("[sandbox.x]\nlevel = \"none\"\nnetwork = \"off\"\n"), @"use the configuration: mcpd.toml:1:10: in [sandbox.x]: `write`, `hide`, `network` and `missing` have no effect at the level `none`");
    assert_snapshot!(mistake("[sandbox.x]\nrun_as = \"no-such-user\"\n"), @"use the configuration: mcpd.toml:2:10: in [sandbox.x]: `run_as`: there is no user `no-such-user`");
    assert_snapshot!(mistake("[sandbox.reports]\n[[tool]]\nmatch = \"*\"\nsandbox = \"report\"\n"), @r#"use the configuration: mcpd.toml:4:11: in [[tool]]: `sandbox = "report"`: there is none; did you mean `reports`?"#);
    assert_snapshot!(mistake("[[tool]]\nmatch = \"a[\"\n"), @"use the configuration: mcpd.toml:2:9: in [[tool]]: `match`: failed to read the pattern `a[`: unclosed character class; missing ']'");
    assert_snapshot!(mistake("[env]\npass = [\"A-B\"]\n"), @"use the configuration: mcpd.toml:2:9: in [env]: `A-B` is no name of a variable");
    assert_snapshot!(mistake("[env.set]\nMCPD_TOOL = \"x\"\n"), @"use the configuration: mcpd.toml:2:1: in [env.set]: `MCPD_TOOL`: names that begin with `MCPD_` are mcpd's own");
}

/// A configuration with this as the value of a secret.
fn secret(value: &str) -> String {
    format!("[[tool]]\nmatch = \"*\"\n\n[tool.env]\nSECRET = {value}\n")
}

#[test]
fn a_secret_that_is_not_there_is_told_with_its_place() {
    assert_snapshot!(mistake(&secret("{ pass = true }")), @"use the configuration: mcpd.toml:5:10: in [tool.env]: `SECRET`: mcpd's own environment has no variable `SECRET`");
    assert_snapshot!(mistake(&secret("{ file = \"missing\" }")), @"use the configuration: mcpd.toml:5:10: in [tool.env]: `SECRET`: the file `@@ROOT@@/missing` can't be read: No such file or directory (os error 2)");
    assert_snapshot!(mistake(&secret("{ command = [\"sh\", \"-c\", \"echo hidden; exit 3\"] }")), @"use the configuration: mcpd.toml:5:10: in [tool.env]: `SECRET`: `sh` failed with the exit code 3");
    assert_snapshot!(mistake(&secret("{ command = [\"no-such-program\"] }")), @"use the configuration: mcpd.toml:5:10: in [tool.env]: `SECRET`: failed to start `no-such-program`: no such file or command");
    assert_snapshot!(mistake(&secret("{ command = [] }")), @r#"use the configuration: mcpd.toml:5:10: in [tool.env]: `SECRET`: expected a text, `{ pass = true }`, `{ variable = "…" }`, `{ file = "…" }` or `{ command = ["…"] }`"#);
    assert_snapshot!(mistake(&secret("{ file = \"a\", pass = true }")), @r#"use the configuration: mcpd.toml:5:10: in [tool.env]: `SECRET`: expected a text, `{ pass = true }`, `{ variable = "…" }`, `{ file = "…" }` or `{ command = ["…"] }`"#);
}

#[test]
fn no_mistake_repeats_a_secret() {
    for value in [
        "12345678",
        "[\"12345678\"]",
        "{ pass = 12345678 }",
        "1234.5678",
        "\"12345678\\u0000\"",
    ] {
        let said = mistake(&secret(value));
        assert!(!said.contains("5678"), "{said}");
    }
}

#[test]
fn a_secret_reaches_the_script_and_nobody_else() {
    let configuration = secret("\"s3cret-text\"");
    assert_snapshot!(printed(&configuration, &[]), @"
    exit code: 0
    ----- stdout -----
    [redacted SECRET]|
    ----- stderr -----
    INFO it is [redacted SECRET]
    ");
    assert_snapshot!(printed(&configuration.replace("[tool.env]", "redact = false\n[tool.env]"), &[]), @"
    exit code: 0
    ----- stdout -----
    s3cret-text|
    ----- stderr -----
    INFO it is s3cret-text
    ");
    assert_snapshot!(printed(&secret("{ pass = true }"), &[]), @"
    exit code: 0
    ----- stdout -----
    [redacted SECRET]|
    ----- stderr -----
    INFO it is [redacted SECRET]
    ");
}

#[test]
fn files_and_programs_give_secrets_without_the_last_newline() {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("token"), "from-a-file\n\n").unwrap();
    for (value, expected) in [
        ("{ file = \"token\" }", "from-a-file\n|\n"),
        (
            "{ command = [\"echo\", \"from a program\"] }",
            "from a program|\n",
        ),
    ] {
        let configuration = secret(value).replace("[tool.env]", "redact = false\n[tool.env]");
        fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
        let stdout = sandbox.stdout(&["call", "scripts", "printer", "-q"]);
        assert_eq!(String::from_utf8_lossy(&stdout), expected);
    }
}

#[test]
fn what_is_too_short_to_be_found_is_said() {
    assert_snapshot!(printed(&secret("\"12345\""), &["--log", "warn"]), @r#"
    exit code: 0
    ----- stdout -----
    12345|
    ----- stderr -----
     WARN the value of `SECRET` is too short to be redacted: a script that prints it gives it away tools="*"
    INFO it is 12345
    "#);
}

#[test]
fn a_description_names_variables_and_shows_none() {
    let sandbox = sandbox();
    fs::write(sandbox.path().join("mcpd.toml"), secret("\"s3cret-text\"")).unwrap();
    assert_snapshot!(sandbox.run(&["describe", "scripts", "printer"]), @"
    exit code: 0
    ----- stdout -----
    printer

    Knows nothing

    It takes no options.

    Sandbox: none
    Variables: SECRET
    ");
}

#[test]
fn the_environment_is_passed_dropped_and_set() {
    let configuration = "[env]\ndrop = [\"SEC*\"]\nset = { PLAIN = \"set\" }\n";
    assert_snapshot!(printed(configuration, &["-q"]), @"
    exit code: 0
    ----- stdout -----
    |set
    ");
    let configuration = "[env]\npass = [\"SECRET\"]\n";
    assert_snapshot!(printed(configuration, &["-q", "--sandbox", "guarded"]), @"
    exit code: 0
    ----- stdout -----
    inherited-secret|
    ");
    assert_snapshot!(printed("", &["-q", "--sandbox", "guarded"]), @"
    exit code: 0
    ----- stdout -----
    |
    ");
}

#[test]
fn the_first_configuration_there_is_counts() {
    let sandbox = sandbox();
    let own = sandbox.path().join("config/mcpd");
    fs::create_dir_all(&own).unwrap();
    let places = [
        own.join("mcpd.toml"),
        sandbox.path().join("mcpd.toml"),
        sandbox.path().join("named.toml"),
    ];
    for place in &places {
        let name = place.strip_prefix(sandbox.path()).unwrap().display();
        fs::write(place, format!("[env]\nset = {{ PLAIN = \"{name}\" }}\n")).unwrap();
    }
    let call = ["call", "scripts", "printer", "-q"];
    let ends_with = |arguments: &[&str], expected: &str| {
        let stdout = String::from_utf8(sandbox.stdout(arguments)).unwrap();
        assert!(stdout.trim_end().ends_with(expected), "{stdout}");
    };
    ends_with(
        &[&call[..], &["--config", "named.toml"]].concat(),
        "|named.toml",
    );
    ends_with(&call, "|mcpd.toml");
    fs::remove_file(&places[1]).unwrap();
    ends_with(&call, "|config/mcpd/mcpd.toml");
    assert_snapshot!(sandbox.run(&[&call[..], &["--config", "missing.toml"]].concat()), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to read the configuration `missing.toml`: No such file or directory (os error 2)
    ");
}

#[test]
fn a_flag_that_confines_nothing_is_refused() {
    let run = |arguments: &[&str]| sandbox().run(&[&["list", "scripts"], arguments].concat());
    assert_snapshot!(run(&["--sandbox", "gaurded"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to use the sandbox `gaurded`: there is none; did you mean `guarded`?
    ");
    assert_snapshot!(run(&["--sandbox", "none", "--no-network"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to use the sandbox `none`: it confines nothing, so `--allow-write` and `--no-network` have no effect
    ");
    assert_snapshot!(run(&["--allow-write", "x"]), @"
    exit code: 1
    ----- stderr -----
    error: the following required arguments were not provided:
      --sandbox <LEVEL>

    Usage: mcpd list --sandbox <LEVEL> --allow-write <PATH> <DIR|--root-directory <DIR>|--enable <TOOL>>

    For more information, try '--help'.
    ");
}
