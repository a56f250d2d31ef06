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
