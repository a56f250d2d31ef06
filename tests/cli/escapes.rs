//! Hostile scripts and names in all that mcpd prints about them: no control sequence and no hidden
//! character reaches the terminal of an operator.

use std::fs;

use mcpd_tests::{Sandbox, output};

/// Title of the window, an erased screen, an 8-bit sequence, a turned text, and a tag.
const EVIL: &str = "\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{200b}\u{e0041}";

fn sandbox() -> Sandbox {
    let help = |printed: &str| format!("#!/bin/sh\n# MCPD_\n{printed}\n");
    let sandbox = Sandbox::new()
        .with_script("good", &help("echo '{\"description\": \"Fine\"}'"))
        .with_script(
            "raw",
            &help(&format!("printf '{{\"description\": \"{EVIL}\"}}'")),
        )
        .with_script("failing", &help(&format!("echo '{EVIL}' >&2; exit 2")))
        .with_script(
            "header",
            &format!("#!/bin/sh\n# /// mcpd\n# ti{EVIL} = 1\n# ///\n"),
        )
        .with_script("interpreter", &format!("#!/none{EVIL}\n# MCPD_\n"))
        .with_script(&format!("name{EVIL}"), &help("exit 1"))
        .with_script(&format!("dir{EVIL}/tool"), &help("exit 1"));
    let library = sandbox.path().join("scripts/library");
    fs::write(library, format!("#!/bin/sh\n{EVIL}\n")).unwrap();
    sandbox
}

/// Returns whether a terminal obeys or hides something in a text besides colours.
fn is_obeyed(text: &str) -> bool {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain += before;
        let end = after.find(|char: char| !char.is_ascii_digit() && char != ';');
        let is_colour = end.is_some_and(|end| after[end..].starts_with('m'));
        if !is_colour {
            return true;
        }
        rest = &after[end.map_or(after.len(), |end| end + 1)..];
    }
    plain += rest;
    plain.contains(|char| is_hidden(char) && !matches!(char, '\n' | '\t'))
}

fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{e0000}'..='\u{e0fff}')
}

#[track_caller]
fn check(arguments: &[&str]) {
    let sandbox = sandbox();
    let mut command = sandbox.command(arguments);
    command.env("CLICOLOR_FORCE", "1");
    let output = output(command, b"");
    for text in [output.stdout, output.stderr] {
        let text = String::from_utf8(text).unwrap();
        assert!(!is_obeyed(&text), "{arguments:?}: {}", text.escape_debug());
    }
}

#[test]
fn nothing_of_a_script_reaches_the_terminal_as_it_is() {
    check(&["list", "scripts"]);
    check(&["list", "scripts", "--all"]);
    check(&["check", "scripts"]);
    check(&["check", "scripts", "--static"]);
    check(&["check", "scripts", "--format", "short"]);
    check(&["check", "scripts", "--format", "github"]);
    check(&["describe", "scripts", "raw"]);
    check(&[
        "describe",
        "scripts",
        &format!("name{}", EVIL.replace('\u{1b}', "")),
    ]);
    check(&["call", "scripts", "header"]);
    check(&["doctor", "scripts"]);
    check(&["lock", "scripts"]);
    check(&["approve", "--root-directory", "scripts"]);
}
