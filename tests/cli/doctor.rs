//! `mcpd doctor`. The findings depend on the machine; the tests check that it looks, and that it
//! reports what is missing.

use std::fs;

use mcpd_tests::Sandbox;
use serde_json::Value;

#[test]
fn levels_are_tried_and_their_gaps_are_named() {
    let report = Sandbox::new().stdout(&["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&report).unwrap();
    let levels = report["levels"].as_array().unwrap();
    let names: Vec<_> = levels.iter().map(|level| &level["level"]).collect();
    assert_eq!(names, ["none", "guarded", "strict"]);
    assert_eq!(levels[0]["available"], true);
    assert_eq!(levels[0]["missing"], Value::Array(Vec::new()));
    for level in &levels[1..] {
        let is_whole = level["landlock"].is_u64() && level["seccomp"] == true;
        let missing = level["missing"].as_array().unwrap();
        assert!(is_whole || !missing.is_empty(), "{level}");
    }
}

#[test]
fn backends_are_tried_and_missing_programs_are_named() {
    let report = Sandbox::new().stdout(&["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&report).unwrap();
    let backends = report["backends"].as_array().unwrap();
    let names: Vec<_> = backends.iter().map(|backend| &backend["backend"]).collect();
    assert_eq!(names, ["bwrap", "gvisor", "podman", "firejail"]);
    for backend in backends {
        let missing = backend["missing"].as_str().unwrap_or_default();
        assert_eq!(
            backend["available"] == true,
            missing.is_empty(),
            "{backend}"
        );
        if backend["available"] == true && report["memory"]["counts_processes"] == false {
            let gaps = backend["gaps"].as_array().unwrap();
            let mut gaps = gaps.iter().map(|gap| &gap["mechanism"]);
            assert!(gaps.any(|gap| gap == "process limit"), "{backend}");
        }
    }
    let nowhere = Sandbox::new().with_variable("PATH", "/no/such/directory");
    let report = String::from_utf8(nowhere.stdout(&["doctor"])).unwrap();
    let expected = "\n  bwrap    `bwrap` is not in the PATH of this process; install the package `bubblewrap`\n";
    assert!(report.contains(expected), "{report}");
}

#[test]
fn report_is_text_for_people() {
    let report = String::from_utf8(Sandbox::new().stdout(&["doctor"])).unwrap();
    for expected in ["\nnone ", "\nguarded ", "\nstrict ", "limits per run"] {
        assert!(report.contains(expected), "{report}");
    }
}

#[test]
fn too_few_open_files_are_named() {
    let few = Sandbox::new().with_open_files(256);
    let report = String::from_utf8(few.stdout(&["doctor"])).unwrap();
    let expected = "\n`mcpd serve` has at most 192 connections, because only 256 files may be open";
    assert!(report.contains(expected), "{report}");
}

#[test]
fn the_control_group_that_is_named_is_tried() {
    let sandbox = Sandbox::new();
    let check = |sandbox: &Sandbox, arguments: &[&str]| {
        let said = sandbox.run(&[&["doctor"], arguments].concat());
        let is_tried = said.starts_with("exit code: 1") && said.contains("@@ROOT@@/scripts");
        assert!(is_tried, "{said}");
    };
    let group = sandbox.path().join("scripts").display().to_string();
    check(&sandbox, &["--cgroup", &group]);
    fs::write(sandbox.path().join("mcpd.toml"), "cgroup = \"scripts\"\n").unwrap();
    check(&sandbox, &[]);
}

#[test]
fn interpreter_that_only_the_shell_finds_is_named() {
    let sandbox = Sandbox::new()
        .with_script(
            "odd",
            "#!/usr/bin/env odd-shell\n# /// mcpd\n# description = \"Odd\"\n# ///\n",
        )
        .with_script("bin/odd-shell", "#!/bin/sh\nexec sh \"$@\"\n");
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", sandbox.path().join("scripts/bin").display());
    let sandbox = sandbox.with_variable("PATH", &path);
    let report = sandbox.run(&["doctor", "scripts", "--client", "claude-desktop"]);
    assert!(
        report.contains("  this shell: every interpreter is found\n"),
        "{report}"
    );
    let desktop = report
        .split("  Claude Desktop (PATH=/usr/bin:")
        .nth(1)
        .unwrap_or(&report);
    assert!(
        desktop.contains("its interpreter `odd-shell` cannot be executed"),
        "{report}"
    );

    // An installation writes the directories of the shell, and the client finds it too.
    sandbox.run(&["install", "claude-desktop", "scripts", "--yes"]);
    let report = sandbox.run(&["doctor", "scripts", "--client", "claude-desktop"]);
    assert!(
        report.contains("  Claude Desktop: every interpreter is found\n"),
        "{report}"
    );
}

#[test]
fn library_that_scripts_source_is_not_made_a_program() {
    let sandbox = Sandbox::new().with_script("tool", "#!/bin/sh\necho '{}'\n");
    let library = sandbox.path().join("scripts/library");
    fs::write(library, "#!/bin/sh\ngreet() { echo hi; }\n").unwrap();
    let fixed = sandbox.run(&["doctor", "scripts", "--fix"]);
    assert!(fixed.contains("nothing to correct"), "{fixed}");
}

#[cfg(unix)]
#[test]
fn fix_corrects_what_is_safe_and_nothing_twice() {
    use std::os::unix::fs::PermissionsExt as _;

    let header = "# /// mcpd\r\n# description = \"Says it\"\r\n# ///\r\necho hi\r\n";
    let sandbox = Sandbox::new().with_script("crlf", &format!("#!/bin/sh\r\n{header}"));
    let path = |name: &str| sandbox.path().join(name);
    let mode = |name: &str| path(name).metadata().unwrap().permissions().mode() & 0o777;
    let set_mode = |name: &str, mode| {
        fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode("scripts/crlf", 0o644);
    fs::create_dir_all(path("state/mcpd")).unwrap();
    fs::write(path("state/mcpd/agent-token"), "token").unwrap();
    set_mode("state/mcpd/agent-token", 0o644);
    fs::create_dir_all(path("home/.cursor")).unwrap();
    let entry = r#"{"mcpServers": {"mcpd": {"command": "/gone/mcpd", "args": ["stdio", "scripts"], "disabled": true}}}"#;
    fs::write(path("home/.cursor/mcp.json"), entry).unwrap();

    let report = sandbox.run(&["doctor", "scripts"]);
    for expected in [
        "/scripts/crlf: a carriage return is part of its `#!` line, and it begins with `#!` and is not executable; take the carriage returns out of 5 lines, and make it executable",
        "agent-token: other users can read this secret; make it readable for its owner alone",
        "`mcpd` of Cursor: its program `/gone/mcpd` is gone, and it sets no PATH",
    ] {
        assert!(report.contains(expected), "{report}");
    }
    let report: Value =
        serde_json::from_slice(&sandbox.stdout(&["doctor", "scripts", "--json"])).unwrap();
    assert_eq!(
        report["corrections"].as_array().unwrap().len(),
        3,
        "{report}"
    );

    let refused = sandbox.run(&["doctor", "scripts", "--fix"]);
    assert!(refused.contains("-#!/bin/sh^M\n"), "{refused}");
    assert!(refused.contains("add `--yes` to change it"), "{refused}");
    assert_eq!(mode("scripts/crlf"), 0o644);

    let corrected = sandbox.run(&["doctor", "scripts", "--fix", "--yes"]);
    assert!(corrected.starts_with("exit code: 0"), "{corrected}");
    assert_eq!(
        (mode("scripts/crlf"), mode("state/mcpd/agent-token")),
        (0o755, 0o600)
    );
    let script = fs::read_to_string(path("scripts/crlf")).unwrap();
    assert!(
        script.starts_with("#!/bin/sh\n") && !script.contains('\r'),
        "{script:?}"
    );
    let text = fs::read_to_string(path("home/.cursor/mcp.json")).unwrap();
    let entry: Value = serde_json::from_str(&text).unwrap();
    let entry = &entry["mcpServers"]["mcpd"];
    assert!(
        entry["command"].as_str().unwrap().ends_with("/mcpd"),
        "{text}"
    );
    assert!(
        entry["env"]["PATH"].is_string() && entry["disabled"] == true,
        "{text}"
    );
    let checked = sandbox.run(&["install", "cursor", "--check"]);
    assert!(checked.contains("1 tool\n  crlf\n"), "{checked}");

    let again = sandbox.run(&["doctor", "scripts", "--fix"]);
    assert!(again.contains("nothing to correct"), "{again}");
}
