//! Notes that the server adds to the result of a run, and the rendering of its output.

use mcpd_tests::Sandbox;

/// Returns a described script that runs `body` when called.
fn doing(body: &str) -> String {
    format!(
        "#!/bin/sh\n[ \"$1\" = --help ] && {{ echo '{{\"description\": \"Does\"}}'; exit; }}\n{body}\n"
    )
}

/// Checks the texts in the result of a script with this body.
#[track_caller]
fn check(body: &str, arguments: &[&str], expected: &[&str]) {
    let sandbox = Sandbox::new().with_script("does", &doing(body));
    let arguments = [&["call", "scripts", "does", "--json"], arguments].concat();
    let output = sandbox.command(&arguments).output().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let blocks = result["content"].as_array().unwrap().iter();
    let texts: Vec<_> = blocks
        .map(|block| block["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, expected, "{body}");
}

#[test]
fn failure_is_explained_after_what_was_printed() {
    check(
        "echo half; echo why >&2; exit 12",
        &[],
        &[
            "half",
            "The script failed with exit code 12. The end of its stderr:\nwhy",
        ],
    );
    check(
        "kill -SEGV $$",
        &[],
        &["The script was killed by signal SIGSEGV (11). It printed nothing."],
    );
    check(
        "echo half; sh -c 'kill -ABRT $$' 2>/dev/null; exit $?",
        &[],
        &[
            "half",
            "The script failed with exit code 134 (128 + SIGABRT).",
        ],
    );
    let long = "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line $i >&2; done; exit 1";
    let sandbox = Sandbox::new().with_script("does", &doing(long));
    let output = sandbox
        .command(&["call", "scripts", "does", "--json"])
        .output()
        .unwrap();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap();
    let (sentence, end) = text.split_once('\n').unwrap();
    assert_eq!(
        sentence,
        "The script failed with exit code 1 (internal-error). The end of its stderr:"
    );
    assert!(end.starts_with("line ") && end.ends_with("line 2000") && end.len() <= 4096);
}

#[test]
fn silent_success_has_a_note() {
    check("true", &[], &["The script succeeded and printed nothing."]);
    check("echo", &[], &["The script succeeded and printed nothing."]);
}

#[test]
#[cfg(target_os = "linux")]
fn process_left_behind_has_a_note() {
    check(
        "echo a; sleep 600 >/dev/null 2>&1 &",
        &["--sandbox", "guarded"],
        &[
            "a",
            "1 process that the script left running was ended with it.",
        ],
    );
}

#[test]
fn nul_is_shown_as_a_replacement_character() {
    check("printf 'a\\0b'", &[], &["a\u{fffd}b"]);
    check(
        "printf 'a\\0b' >&2; exit 1",
        &[],
        &[
            "The script failed with exit code 1 (internal-error). The end of its stderr:\na\u{fffd}b",
        ],
    );
}

#[test]
fn output_is_rendered_like_in_a_terminal() {
    check(
        r"printf '\033[32mgo\033[0m\r\n1%%\r2%%\nend'; printf '\033[31mERROR\033[0m no\n' >&2; exit 4",
        &[],
        &[
            "go\r\n2%\nend",
            "The script failed with exit code 4 (not-found). The end of its stderr:\nERROR no",
        ],
    );
    check(r"printf 'a\r\nb\r\n'", &[], &["a\r\nb"]);
}

#[test]
fn escape_sequences_are_kept_if_configured() {
    let sandbox = Sandbox::new().with_script("does", &doing(r"printf '\033[1ma\rb'"));
    let configuration = "[[tool]]\nmatch = '**'\nterminal = 'raw'\n";
    std::fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let output = sandbox
        .command(&["call", "scripts", "does"])
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"\x1b[1ma\rb\n");
}

#[test]
fn secret_that_escape_sequences_break_up_is_redacted() {
    let sandbox = Sandbox::new().with_script("does", &doing(r#"printf "${KEY%66}\033[0m66""#));
    let configuration = "[[tool]]\nmatch = '**'\nenv.KEY = 'secret-4466'\n";
    std::fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    let output = sandbox
        .command(&["call", "scripts", "does"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[redacted KEY]\n");
}
