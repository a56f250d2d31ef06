//! `mcpd check`.

use std::fs;
use std::os::unix::fs::symlink;

use insta::assert_snapshot;
use mcpd_tests::Sandbox;
use serde_json::Value;

use crate::{BROKEN, HELLO};

mod clients;
mod explain;
mod fixes;
mod formats;

/// Returns a script with these options.
fn with_options(options: &str) -> String {
    format!(
        "#!/bin/sh\necho '{{\"description\": \"Takes options\"}}'\ncat >&2 <<'EOF'\n{options}\nEOF\n"
    )
}

#[test]
fn success_is_reported() {
    let sandbox = Sandbox::new().with_script("hello", HELLO);
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    no faults in 1 script
    ");
}

#[test]
fn fault_is_shown_within_the_output() {
    let options = "{\n  \"größe\": {\"description\": \"How big\", \"value_type\": \"integr\", \"required\": true}\n}";
    let sandbox = Sandbox::new().with_script("deep/size", &with_options(options));
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @r#"
    exit code: 1
    ----- stdout -----
    warning[unportable-option-name]: some models refuse the name `größe`, so it is listed as `grosse`
     --> scripts/deep/size --help (stderr):2:3
      |
    2 |   "größe": {"description": "How big", "value_type": "integr", "required": true}
      |   ^^^^^^^
      |
      = help: use at most 64 of the characters `A-Z a-z 0-9 _ . -`

    error[unknown-value-type]: unknown value type `integr`
     --> scripts/deep/size --help (stderr):2:53
      |
    2 |   "größe": {"description": "How big", "value_type": "integr", "required": true}
      |                                                     ^^^^^^^^
      |
      = help: did you mean `integer`?

    1 error, 1 warning in 1 script
    "#);
}

#[test]
fn failing_script_is_shown_with_its_stderr() {
    let sandbox = Sandbox::new().with_script("broken", BROKEN);
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @"
    exit code: 1
    ----- stdout -----
    error[help-failed]: `--help` ended with exit code 3
    --> scripts/broken
     = note: from its stderr: no such module: frobnicate
     = help: if the first argument is `--help`, print the metadata and exit with 0, or describe the script in `NAME.mcpd.toml` beside it

    1 error in 1 script
    ");
}

#[test]
fn control_characters_of_scripts_are_escaped() {
    let evil =
        "#!/bin/sh\n# MCPD_OPT_x\nprintf '\\033[2Jgone\\r\\n' >&2\nprintf '\\033]0;title\\007'\n";
    let failing = format!("{evil}exit 1\n");
    let sandbox = Sandbox::new()
        .with_script("evil", evil)
        .with_script("failing", &failing);
    let transcript = sandbox.run(&["check", "scripts"]);
    let is_obeyed = |char: char| char.is_control() && char != '\n';
    assert!(
        transcript.contains("gone") && !transcript.contains(is_obeyed),
        "{transcript:?}"
    );
}

#[test]
fn warning_is_an_error_only_if_denied() {
    let sandbox = Sandbox::new().with_script("quiet", "#!/bin/sh\necho '{}'\n");
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    warning[missing-description]: the script has no description
     --> scripts/quiet --help (stdout):1:1
      |
    1 | {}
      | ^
      |
      = help: describe in a sentence or two what the script does and when to use it

    1 warning in 1 script
    ");
    for format in ["human", "short", "json", "sarif", "github"] {
        let check = ["check", "scripts", "--format", format];
        let (tolerated, denied) = (
            sandbox.run(&check),
            sandbox.run(&[&check[..], &["--deny", "warnings"]].concat()),
        );
        assert!(tolerated.starts_with("exit code: 0\n"), "{tolerated}");
        assert_eq!(denied, tolerated.replacen("code: 0", "code: 1", 1));
    }
}

#[test]
fn a_single_script_is_checked_alone() {
    let sandbox = Sandbox::new()
        .with_script("a/broken", BROKEN)
        .with_script("a/hello", HELLO);
    assert_snapshot!(sandbox.run(&["check", "scripts/a/hello"]), @"
    exit code: 0
    ----- stdout -----
    no faults in 1 script
    ");
    fs::write(sandbox.path().join("notes"), "").unwrap();
    assert_snapshot!(sandbox.run(&["check", "notes"]), @"
    exit code: 1
    ----- stdout -----
    error[unusable-file]: not executable; run `chmod +x` on it
    --> notes

    1 error in 0 scripts
    ");
}

#[test]
fn clashing_names_and_leaving_links_are_reported() {
    let sandbox = Sandbox::new()
        .with_script("a/b", HELLO)
        .with_script("a_b", HELLO);
    symlink("/bin/sh", sandbox.path().join("scripts/shell")).unwrap();
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @"
    exit code: 1
    ----- stdout -----
    error[unusable-file]: link to a target outside of the root
    --> scripts/shell

    warning[name-conflict]: `a/b` (@@ROOT@@/scripts/a/b) is listed as `a_b_3a8e75c1`, because `a_b` (@@ROOT@@/scripts/a_b) is listed as `a_b`
    --> scripts/a/b
     = help: rename one of the two

    1 error, 1 warning in 2 scripts
    ");
}

#[test]
fn probable_scripts_are_mentioned() {
    let sandbox = Sandbox::new().with_script("hello", HELLO);
    let at = |name: &str| sandbox.path().join("scripts").join(name);
    fs::write(at("forgotten"), HELLO).unwrap();
    fs::write(at("notes"), "# notes").unwrap();
    symlink("gone", at("link")).unwrap();
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    warning[overlooked-file]: it begins with `#!` but is not executable; run `chmod +x` on it
    --> scripts/forgotten

    warning[overlooked-file]: broken link to `gone`
    --> scripts/link

    2 warnings in 1 script
    ----- stderr -----
    1 of them can be fixed with `--fix`
    ");
}

#[test]
fn a_path_that_is_missing_is_an_error() {
    let sandbox = Sandbox::new().with_script("broken", BROKEN);
    assert_snapshot!(sandbox.run(&["check", "nowhere"]), @"
    exit code: 1
    ----- stdout -----
    error[unusable-file]: not readable: No such file or directory (os error 2)
    --> nowhere

    1 error in 0 scripts
    ");
    // A broken link does not hide the other files.
    symlink("gone", sandbox.path().join("scripts/link")).unwrap();
    let paths = [
        "check",
        "scripts/link",
        "scripts/broken",
        "--format",
        "short",
    ];
    assert_snapshot!(sandbox.run(&paths), @"
    exit code: 1
    ----- stdout -----
    scripts/broken: error[help-failed]: `--help` ended with exit code 3
    scripts/link: error[unusable-file]: not readable: No such file or directory (os error 2)
    ");
}

#[test]
fn duplicate_paths_are_checked_once() {
    let sandbox = Sandbox::new()
        .with_script("sub/hello", HELLO)
        .with_script("bare", "#!/bin/sh\n");
    let scripts = sandbox.path().join("scripts");
    fs::write(scripts.join("bare.mcpd.toml"), "description = \"Bare\"\n").unwrap();
    fs::write(scripts.join("notes.txt"), "notes\n").unwrap();
    symlink("hello", scripts.join("sub/hi")).unwrap();
    for paths in [
        &["scripts/bare", "scripts/bare.mcpd.toml"][..],
        &["scripts/sub/hello", "scripts/sub/hi"],
        &["scripts/sub/hello", "scripts/sub/hello"],
    ] {
        let seen = sandbox.run(&[&["check"], paths].concat());
        assert_eq!(
            seen, "exit code: 0\n----- stdout -----\nno faults in 1 script\n",
            "{paths:?}"
        );
    }
    assert_snapshot!(sandbox.run(&["check", "scripts", "scripts/sub", "scripts/sub/hello", "scripts/bare.mcpd.toml"]), @"
    exit code: 0
    ----- stdout -----
    no faults in 3 scripts
    ");
    assert_snapshot!(sandbox.run(&["check", "scripts/notes.txt", "scripts/notes.txt"]), @"
    exit code: 1
    ----- stdout -----
    error[unusable-file]: not executable; run `chmod +x` on it
    --> scripts/notes.txt

    1 error in 0 scripts
    ");
}

/// Each script in `tests/scripts/faulty` has one fault, and each is found.
#[test]
fn faulty_scripts_are_all_reported() {
    let faulty = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/faulty");
    let transcript = Sandbox::new().run(&["check", faulty, "--format", "json"]);
    let json = transcript
        .strip_prefix("exit code: 1\n----- stdout -----\n")
        .unwrap();
    let findings: Vec<Value> = serde_json::from_str(json).unwrap();
    let errors = findings
        .iter()
        .filter(|finding| finding["severity"] == "error");
    let mut found: Vec<_> = errors
        .map(|finding| {
            format!(
                "{}: {}",
                finding["path"].as_str().unwrap(),
                finding["code"].as_str().unwrap()
            )
        })
        .collect();
    found.dedup();
    assert_snapshot!(found.join("\n"), @"
    crlf: help-not-started
    exits-1: help-failed
    floods: help-too-large
    hangs: help-timed-out
    no-interpreter: help-not-started
    no-shebang: help-not-started
    not-json: help-not-json
    says-nothing: missing-metadata
    swapped: swapped-streams
    wrong-types: field-type-mismatch
    wrong-types: unknown-value-type
    ");
}

#[test]
fn ordinary_directory_is_no_list_of_errors() {
    let sandbox = Sandbox::new()
        .with_script("greet", HELLO)
        .with_script("backup", "#!/bin/sh\necho 'usage: backup FILE'\nexit 2\n")
        .with_script("data.json", "{}")
        .with_script("target/debug/build", HELLO);
    let tag = "Signature: 8a477f597d28d172789f06886806bc55\n";
    fs::write(sandbox.path().join("scripts/target/CACHEDIR.TAG"), tag).unwrap();
    assert_snapshot!(sandbox.run(&["check", "scripts", "--format", "short"]), @"
    exit code: 0
    ----- stdout -----
    scripts/backup: info[no-tool]: not a tool: `--help` ended with exit code 2, and the file does not mention mcpd
    scripts/data.json: info[passed-over-file]: cannot be started: not a program, and without a `#!` line or an extension with an interpreter
    scripts/target: info[passed-over-file]: cache directory: contains a `CACHEDIR.TAG`
    ");
}

#[test]
fn static_check_runs_nothing() {
    let tripwire = "#!/bin/sh\necho tripped >\"${0%/*}/tripped\"\n";
    let sandbox = Sandbox::new()
        .with_script("trip", tripwire)
        .with_script("greet", "#!/no/such/interpreter\n");
    let sidecar = sandbox.path().join("scripts/greet.mcpd.toml");
    fs::write(sidecar, "description = \"Greets\"\n").unwrap();
    let file = "[probe]\nsandbox = \"none\"\n";
    fs::write(sandbox.path().join("mcpd.toml"), file).unwrap();
    assert_snapshot!(sandbox.run(&["check", "scripts", "--static"]), @"
    exit code: 0
    ----- stdout -----
    no faults in 1 script
    ----- stderr -----
    1 file is not checked, because only `--help` shows what they are; run without `--static` to check them
    ");
    assert!(!sandbox.path().join("scripts/tripped").exists());
    // Proves that the script trips without `--static`.
    sandbox.run(&["check", "scripts"]);
    assert!(sandbox.path().join("scripts/tripped").exists());
}

#[test]
fn more_tools_than_clients_pass_on_are_a_warning() {
    let sandbox = (0..81).fold(Sandbox::new(), |sandbox, number| {
        sandbox.with_script(&format!("hello{number}"), HELLO)
    });
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    no faults in 81 scripts
    ----- stderr -----
    warning: 81 tools are too many for some clients: Cursor at most 80, including those of other servers; serve them with `--search`, which lists only two
    ");
    fs::write(
        sandbox.path().join("mcpd.toml"),
        "[search]\nenabled = true\n",
    )
    .unwrap();
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    no faults in 81 scripts
    ");
}
