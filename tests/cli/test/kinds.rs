//! `mcpd test` with cases of prompts and resources.

use std::fs;

use insta::assert_snapshot;
use mcpd_tests::Sandbox;

use super::run;

/// Prompt that refuses one language.
const REVIEW: &str = r#"#!/bin/sh
# /// mcpd
# kind = "prompt"
# description = "Asks for a review"
# [options.lang]
# description = "Language"
# value_type = "string"
# required = true
# ///
[ "$MCPD_OPT_lang" != C ] || { echo 'no C' >&2; exit 3; }
echo "Review this $MCPD_OPT_lang"
"#;

/// Prompt with two messages.
const TALK: &str = r#"#!/bin/sh
# /// mcpd
# kind = "prompt"
# description = "Begins a talk"
# output = "mcp"
# ///
echo '{"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}, {"role": "assistant", "content": {"type": "text", "text": "Ho"}}]}'
"#;

/// Family of resources.
const NOTE: &str = r#"#!/bin/sh
# /// mcpd
# kind = "resource"
# description = "A note"
# uri_template = "notes://{name}"
# [options.name]
# description = "Its name"
# value_type = "string"
# required = true
# ///
[ "$MCPD_OPT_name" != none ] || exit 4
printf '{"name": "%s"}' "$MCPD_OPT_name"
"#;

/// Resource that fails.
const BROKEN: &str = r#"#!/bin/sh
# /// mcpd
# kind = "resource"
# description = "A resource that fails"
# uri = "broken://one"
# ///
echo 'out of order' >&2
exit 1
"#;

const REVIEW_CASES: &str = r#"[[case]]
name = "asks"
arguments = { lang = "Rust" }
text = "Review this Rust"
messages = [{ role = "user", text = "Review this Rust" }]
[[case]]
name = "refuses C"
arguments = { lang = "C" }
exit = 3
contains = "no C"
[[case]]
name = "needs a language"
refused = true
contains = "lang"
[[case]]
name = "differs"
arguments = { lang = "Go" }
messages = [{ role = "assistant", text = "x" }]
"#;

const NOTE_CASES: &str = r#"[[case]]
name = "reads"
arguments = { name = "a b/{c}" }
json = { name = "a b/{c}" }
[[case]]
name = "has no such note"
arguments = { name = "none" }
exit = 4
[[case]]
name = "needs a name"
refused = true
[[case]]
name = "is no prompt"
arguments = { name = "x" }
messages = []
"#;

fn sandbox() -> Sandbox {
    let broken = "[[case]]\nname = \"has no arguments\"\narguments = { a = 1 }\n";
    let sandbox = Sandbox::new();
    for (name, script, cases) in [
        ("review", REVIEW, REVIEW_CASES),
        ("talk", TALK, "[[case]]\nname = \"talks\"\n"),
        ("note", NOTE, NOTE_CASES),
        ("broken", BROKEN, broken),
    ] {
        sandbox.write_script(name, script);
        let path = format!("scripts/{name}.test.toml");
        fs::write(sandbox.path().join(path), cases).unwrap();
    }
    sandbox
}

#[test]
fn prompts_and_resources_have_cases() {
    let sandbox = sandbox();
    assert_snapshot!(run(&sandbox, &["test", "scripts"]), @r#"
    exit code: 1
    ----- stdout -----
    scripts/broken.test.toml
      FAILED    has no arguments @@TIME@@
                the call was refused: a resource with one URI has no arguments
    scripts/note.test.toml
      ok        reads @@TIME@@
      ok        has no such note @@TIME@@
      ok        needs a name @@TIME@@
      FAILED    is no prompt @@TIME@@
                there are no messages; only prompts have them
    scripts/review.test.toml
      ok        asks @@TIME@@
      ok        refuses C @@TIME@@
      ok        needs a language @@TIME@@
      FAILED    differs @@TIME@@
                messages[0].role is "user"; expected "assistant"
                messages[0].text is "Review this Go"; expected "x"
    scripts/talk.test.toml
      ok        talks @@TIME@@
    7 passed, 3 failed
    "#);
}

#[test]
fn accepted_messages_pass() {
    let sandbox = sandbox();
    let accepted = run(&sandbox, &["test", "scripts", "--filter", "l", "--accept"]);
    assert!(accepted.contains("accepted  talks"), "{accepted}");
    let read = |name: &str| fs::read_to_string(sandbox.path().join(name)).unwrap();
    assert_snapshot!(read("scripts/talk.test.toml"), @r#"
    [[case]]
    name = "talks"
    messages = [{ role = "user", text = "Hi" }, { role = "assistant", text = "Ho" }]
    "#);
    assert!(!run(&sandbox, &["test", "scripts/talk"]).contains("FAILED"));
}

#[test]
fn generated_arguments_find_a_broken_resource_only() {
    let sandbox = sandbox();
    let tested = run(
        &sandbox,
        &["test", "scripts", "--generate", "20", "--filter", "-"],
    );
    assert_snapshot!(tested, @"
    exit code: 1
    ----- stdout -----
    scripts/broken.test.toml
      FAILED    generated call of broken
                the script crashed: exit code 1, which is an internal error
                the script `broken` failed with exit code 1 (internal-error). The end of its stderr:
                out of order
                arguments: {}
    scripts/note.test.toml
      ok        20 generated calls
    scripts/review.test.toml
      ok        20 generated calls
    scripts/talk.test.toml
      ok        1 generated call
    0 passed, 0 failed, 1 fault in 42 generated calls (1 refused)
    ");
}
