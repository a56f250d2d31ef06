//! `mcpd new`: every script that it creates works as it is.

use std::fs;

use insta::assert_snapshot;
use mcpd_tests::{Sandbox, skip};

/// Languages, each with the file that it makes of `x` and the program that it needs.
const LANGUAGES: [(&str, &str, &str); 10] = [
    ("sh", "x", "sh"),
    ("bash", "x", "bash"),
    ("python", "x", "python3"),
    ("uv", "x", "uv"),
    ("node", "x.mjs", "node"),
    ("ts", "x.ts", "bun"),
    ("perl", "x", "perl"),
    ("ruby", "x", "ruby"),
    ("rust-script", "x.rs", "rust-script"),
    ("basic", "x.bas", "mcpd"),
];

/// Creates a script in a directory of its own, and returns its text.
fn create(sandbox: &Sandbox, language: &str, file: &str, kind: &[&str]) -> String {
    let path = format!("{language}/x");
    let arguments = [&["new", &path, "--lang", language], kind].concat();
    let printed = sandbox.run(&arguments);
    let created = format!("created {language}/{file}\n");
    assert!(printed.contains(&created), "{printed}");
    fs::read_to_string(sandbox.path().join(language).join(file)).unwrap()
}

#[test]
fn created_tool_works_in_every_language() {
    for (language, file, program) in LANGUAGES {
        let sandbox = Sandbox::new();
        create(&sandbox, language, file, &[]);
        let read = sandbox.run(&["check", language, "--static", "--deny", "warnings"]);
        assert!(!read.contains("warning["), "{language}: {read}");
        if !sandbox
            .run(&["check", language])
            .starts_with("exit code: 0")
        {
            skip(&format!(
                "no tool in {language} is called, as `{program}` is not installed"
            ));
            continue;
        }
        let name = file.trim_end_matches(".bas");
        let called = sandbox.run(&["call", language, name, "name=World"]);
        assert!(called.contains("\nHello, World!\n"), "{language}: {called}");
        let tested = sandbox.run(&["test", language]);
        assert!(
            tested.contains("\n1 passed, 0 failed\n"),
            "{language}: {tested}"
        );
        let refused = sandbox.run(&["call", language, name]);
        assert!(
            refused.contains("option `name`: expected"),
            "{language}: {refused}"
        );
    }
}

#[test]
fn created_prompt_and_resource_work() {
    for (language, file, _) in [LANGUAGES[0], LANGUAGES[1], LANGUAGES[2]] {
        let sandbox = Sandbox::new();
        create(&sandbox, language, file, &["--prompt"]);
        let prompt = sandbox.run(&["prompt", language, file, "name=World"]);
        assert!(prompt.contains("Hello, World!"), "{prompt}");
        fs::remove_dir_all(sandbox.path().join(language)).unwrap();
        create(&sandbox, language, file, &["--resource"]);
        let resource = sandbox.run(&["read", language, "notes://x"]);
        assert!(resource.contains("\nHello!\n"), "{resource}");
    }
}

#[test]
fn created_scripts_read_well() {
    let sandbox = Sandbox::new();
    let texts = LANGUAGES.map(|(language, file, _)| {
        let text = create(&sandbox, language, file, &[]);
        format!("=== {language}\n{text}")
    });
    assert_snapshot!(texts.join("\n"));
}

#[test]
fn existing_file_and_unusable_name_are_refused() {
    let sandbox = Sandbox::new().with_script("taken", "#!/bin/sh\necho mine\n");
    assert_snapshot!(sandbox.run(&["new", "scripts/taken"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to create `scripts/taken`: the file exists; remove it first, or choose another name
    ");
    assert_snapshot!(sandbox.run(&["new", "scripts/.hidden"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to use the name `.hidden`: files with such names are not served
    ");
    assert_snapshot!(sandbox.run(&["new", "scripts/x.bas", "--prompt"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to create `scripts/x.bas`: a script in BASIC is a tool; choose another language for a prompt or a resource
    ");
    let text = fs::read_to_string(sandbox.path().join("scripts/taken")).unwrap();
    assert_eq!(text, "#!/bin/sh\necho mine\n");
}
