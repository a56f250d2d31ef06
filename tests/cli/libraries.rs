//! `mcpd lib`: tools on each helper library, run with real interpreters.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use mcpd_tests::{Sandbox, repository, skip};

/// Returns whether the program is installed, and reports it if not.
fn has(program: &str) -> bool {
    let sandbox = Sandbox::new();
    let found = sandbox
        .program(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let is_there = found.is_ok();
    if !is_there {
        skip(&format!(
            "no tool on the library is called, as `{program}` is not installed"
        ));
    }
    is_there
}

/// A sandbox with the library and a tool on it.
fn with_tool(language: &str, library: &str, name: &str, text: &str) -> Sandbox {
    let sandbox = Sandbox::new().with_script(name, text);
    let printed = sandbox.stdout(&["lib", language]);
    fs::write(sandbox.path().join("scripts").join(library), printed).unwrap();
    sandbox
}

/// Answers of a client that asks no person: the file that a second round gets.
fn answer(sandbox: &Sandbox, script: &str, response: &str) -> String {
    let file = sandbox.path().join("responses.json");
    fs::write(&file, response).unwrap();
    let mut command = sandbox.program(sandbox.path().join("scripts").join(script));
    let output = command
        .env("MCPD_INPUT_RESPONSES", &file)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    format!(
        "{} {}",
        output.status,
        String::from_utf8_lossy(&output.stdout)
    )
}

#[test]
fn library_is_the_file_of_the_examples_and_no_tool() {
    let sandbox = Sandbox::new();
    for (language, file) in [
        ("python", "mcpd.py"),
        ("javascript", "mcpd.mjs"),
        ("js", "mcpd.mjs"),
        ("sh", "mcpd.sh"),
    ] {
        let printed = sandbox.stdout(&["lib", language]);
        assert_eq!(
            printed,
            fs::read(repository().join("examples/lib").join(file)).unwrap()
        );
        fs::write(sandbox.path().join("scripts").join(file), printed).unwrap();
    }
    let listed = sandbox.run(&["list", "--all", "scripts"]);
    assert_eq!(listed.matches("passed over").count(), 3, "{listed}");
    assert!(
        sandbox
            .run(&["check", "scripts", "--deny", "warnings"])
            .starts_with("exit code: 0")
    );
}

#[test]
fn examples_pass_the_check_and_answer() {
    let examples = repository().join("examples/lib");
    let examples = examples.to_str().unwrap();
    let sandbox = Sandbox::new();
    if !(has("python3") && has("node")) {
        return;
    }
    let checked = sandbox.run(&["check", examples, "--deny", "warnings"]);
    assert!(checked.starts_with("exit code: 0"), "{checked}");
    let call = |arguments: &[&str]| sandbox.run(&[&["call", examples], arguments].concat());
    assert!(call(&["greet", "name=Ada", "times=2"]).contains("Hello, Ada!\nHello, Ada!\n"));
    assert!(call(&["chart.mjs", "numbers:=[1, 3]"]).contains("\n*\n***\n"));
    assert!(call(&["chart.mjs", "numbers:=[-1]"]).contains("exit code 2 (bad-request)"));
    assert!(call(&["lines", "file=README.md", "kind=empty"]).contains("stdout -----\n"));
    assert!(call(&["lines", "file=/nowhere"]).contains("exit code 4 (not-found)"));
}

/// Tool with every type of parameter, in the ways that Python has for them.
const PYTHON: &str = r#"#!/usr/bin/env python3
import enum, logging, pathlib
from typing import Annotated, Literal, Optional
from mcpd import fail, tool, track

class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"

@tool(read_only=True, title="Wide", timeout=5)
async def wide(file: pathlib.Path, mode: Literal["a", "b"] = "a", size: Size = Size.SMALL,
         ratio: float = 1, tags: "list[str]" = [], note: Optional[str] = None,
         limit: Annotated[int, "At most", {"size": {"min": 1, "max": 9}}] = 3) -> dict:
    """Does many things.

    Args:
        file: The file
            to read.
        mode (str): The mode.
    """
    logging.getLogger("x").warning("two\nlines %s", mode)
    for tag in track(tags, "tagging"):
        pass
    if note == "fail":
        fail("no way", "conflict")
    if note == "crash":
        raise KeyError(note)
    if mode == "b":
        file.read_text()
    return {"file": file.name, "size": size.name, "ratio": repr(ratio), "limit": limit, "note": note}
"#;

#[test]
fn python_function_becomes_a_tool() {
    if !has("python3") {
        return;
    }
    let sandbox = with_tool("python", "mcpd.py", "wide", PYTHON);
    let checked = sandbox.run(&["check", "scripts"]);
    assert!(!checked.contains("optional-without-default"), "{checked}");
    let described = sandbox.run(&["describe", "scripts", "wide"]);
    for expected in [
        "wide - Wide\n\nDoes many things.\n\nHints: read-only\n",
        "file: string, required\n      The file to read.\n",
        "mode: \"a\" | \"b\", default \"a\"\n      The mode.\n",
        "size: \"small\" | \"large\", default \"small\"\n",
        "tags: array, each: string, default []\n",
        "note: string\n",
        "limit: integer from 1 to 9, default 3\n      At most\n",
        "time limit 5s",
    ] {
        assert!(described.contains(expected), "{expected:?} in {described}");
    }
    let call = |arguments: &[&str]| {
        sandbox.run(&[&["call", "scripts", "wide", "file=/nowhere/x"], arguments].concat())
    };
    let called = call(&["ratio=2", "tags:=[\"é\", \"b\"]", "size=large"]);
    assert!(
        called.contains(
            r#"{"file": "x", "size": "LARGE", "ratio": "2.0", "limit": 3, "note": null}"#
        ),
        "{called}"
    );
    assert!(
        called
            .contains("WARNING two\nWARNING lines a\nPROGRESS 1/2 tagging\nPROGRESS 2/2 tagging\n"),
        "{called}"
    );
    assert!(
        call(&["note=fail"])
            .contains("ERROR no way\nmcpd: error: `wide` failed: exit code 8 (conflict)")
    );
    let crashed = call(&["note=crash"]);
    assert!(
        crashed.contains("KeyError: 'crash'") && crashed.contains("exit code 1 (internal-error)"),
        "{crashed}"
    );
    assert!(call(&["mode=b"]).contains("exit code 4 (not-found)"));
    assert!(call(&["mode=c"]).contains("expected one of"));
}

/// Tool that asks, prints and returns an image.
const PICTURE: &str = r#"#!/usr/bin/env python3
import base64
from mcpd import Image, ask, tool

@tool
def picture(guest: str = ask("Who comes?")) -> "list[Image]":
    """Draws a guest."""
    print("drawn")
    return [guest, Image(data=b"GIF89a"), Image("/tmp/x.png")]
"#;

#[test]
fn python_tool_asks_and_returns_images() {
    if !has("python3") {
        return;
    }
    let sandbox = with_tool("python", "mcpd.py", "picture", PICTURE);
    let asked = answer(&sandbox, "picture", "{}");
    assert!(
        asked.contains(r#"{"inputRequests": {"guest": {"method": "elicitation/create""#),
        "{asked}"
    );
    let drawn = answer(
        &sandbox,
        "picture",
        r#"{"guest": {"action": "accept", "content": {"guest": "Eve"}}}"#,
    );
    assert!(drawn.contains(r#"[{"type": "text", "text": "drawn"}, {"type": "text", "text": "Eve"}, {"type": "image", "data": "R0lGODlh"}, {"type": "image", "path": "/tmp/x.png"}]"#), "{drawn}");
    let declined = answer(&sandbox, "picture", r#"{"guest": {"action": "decline"}}"#);
    assert_eq!(declined.trim(), "exit status: 6");
    // A test imports the module, and nothing runs.
    fs::rename(
        sandbox.path().join("scripts/picture"),
        sandbox.path().join("scripts/picture.py"),
    )
    .unwrap();
    let mut import = sandbox.program("python3");
    let import = import.current_dir(sandbox.path().join("scripts"));
    let imported = import
        .args(["-c", "import picture; print(picture.picture('Ada')[0])"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&imported.stdout), "drawn\nAda\n");
}

/// Tool with questions and an image.
const PICTURE_JS: &str = r#"#!/usr/bin/env node
import { image, progress, tool } from "./mcpd.mjs";

tool({
  description: "Draws a guest.",
  options: { size: ["small", "large"], scale: Number },
  ask: { guest: { message: "Who comes?", minLength: 1 } },
  run: async ({ guest, scale = 1 }) => {
    console.log("not in the result");
    progress(1, 2, "half");
    return [guest, image("/tmp/x.png"), { scale }];
  },
});
"#;

#[test]
fn javascript_tool_asks_and_returns_images() {
    if !has("node") {
        return;
    }
    let sandbox = with_tool("javascript", "mcpd.mjs", "picture.mjs", PICTURE_JS);
    let described = sandbox.run(&["describe", "scripts", "picture.mjs"]);
    assert!(
        described.contains("size: \"small\" | \"large\", required\n  scale: number, required\n"),
        "{described}"
    );
    let asked = answer(&sandbox, "picture.mjs", "{}");
    assert!(asked.contains(r#"{"message":"Who comes?","requestedSchema":{"type":"object","properties":{"guest":{"type":"string","minLength":1}},"required":["guest"]}"#), "{asked}");
    let drawn = answer(
        &sandbox,
        "picture.mjs",
        r#"{"guest": {"action": "accept", "content": {"guest": "Eve"}}}"#,
    );
    assert!(drawn.contains(r#"{"content":[{"type":"text","text":"Eve"},{"type":"image","path":"/tmp/x.png"},{"type":"text","text":"{\"scale\":1}"}]}"#), "{drawn}");
    let declined = answer(
        &sandbox,
        "picture.mjs",
        r#"{"guest": {"action": "decline"}}"#,
    );
    assert_eq!(declined.trim(), "exit status: 6");
}

/// Tool in sh with an option of each kind.
const SHELL: &str = r#"#!/bin/sh
. "${0%/*}/mcpd.sh"
mcpd_tool 'Says "several" things: \ $(id)' title='"Sayer"'
mcpd_option text string "What	to \"say\"" required size='{"max": 20}'
mcpd_option times integer "How often" default=2
mcpd_option mood 'good|so so' "Mood" default='so so'
mcpd_begin "$@"
mcpd_progress 1 2 half
mcpd_log WARNING "two
lines"
[ "$MCPD_OPT_mood" != good ] || mcpd_fail conflict "too good"
echo "$MCPD_OPT_mood $MCPD_OPT_times $MCPD_OPT_text"
"#;

#[test]
fn shell_functions_describe_and_report() {
    for shell in ["sh", "bash", "dash", "busybox sh"] {
        let program = shell.split(' ').next().unwrap();
        // Some shells have no `--version`, and fail.
        if !has(program) {
            continue;
        }
        let text = SHELL.replace("#!/bin/sh", &format!("#!/usr/bin/env -S {shell}"));
        let sandbox = with_tool("sh", "mcpd.sh", "say", &text);
        let checked = sandbox.run(&["check", "scripts", "--deny", "warnings"]);
        assert!(checked.starts_with("exit code: 0"), "{shell}: {checked}");
        let described = sandbox.run(&["describe", "scripts", "say"]);
        assert!(
            described.contains("say - Sayer\n\nSays \"several\" things: \\ $(id)\n"),
            "{shell}: {described}"
        );
        assert!(
            described.contains("What\tto \"say\"")
                || described.contains("What to \"say\"")
                || described.contains("What\u{fffd}to"),
            "{described}"
        );
        let called = sandbox.run(&["call", "scripts", "say", "text=a \"b\" $c"]);
        assert!(called.contains("so so 2 a \"b\" $c\n"), "{shell}: {called}");
        assert!(
            called.contains("PROGRESS 1/2 half\nWARNING two\nWARNING lines\n"),
            "{shell}: {called}"
        );
        let failed = sandbox.run(&["call", "scripts", "say", "text=a", "mood=good"]);
        assert!(
            failed.contains("ERROR too good\n") && failed.contains("exit code 8 (conflict)"),
            "{shell}: {failed}"
        );
    }
}

#[test]
fn shell_tool_asks_and_returns_images() {
    let text = "#!/bin/sh\n. \"${0%/*}/mcpd.sh\"\nmcpd_tool Draws output='\"mcp\"'\nmcpd_ask guest 'Who comes?'\nmcpd_begin \"$@\"\nmcpd_image /tmp/x.png \"$mcpd_answer_guest\"\n";
    let sandbox = with_tool("sh", "mcpd.sh", "picture", text);
    let asked = answer(&sandbox, "picture", "{}");
    let mut plain = sandbox.program(sandbox.path().join("scripts/picture"));
    let output = plain.stdin(Stdio::null()).output().unwrap();
    let requests: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        requests["inputRequests"]["guest"]["params"]["message"],
        "Who comes?"
    );
    if !has("jq") {
        return;
    }
    assert!(asked.starts_with("exit status: 6"), "{asked}");
    let drawn = answer(
        &sandbox,
        "picture",
        r#"{"guest": {"action": "accept", "content": {"guest": "Eve \"E\""}}}"#,
    );
    assert!(drawn.contains(r#"{"content": [{"type": "text", "text": "Eve \"E\""}, {"type": "image", "path": "/tmp/x.png"}]}"#), "{drawn}");
}

#[cfg(unix)]
#[test]
fn shell_tool_without_jq_says_so_before_it_asks() {
    let text = "#!/bin/sh\n. \"${0%/*}/mcpd.sh\"\nmcpd_tool Draws output='\"mcp\"'\nmcpd_ask guest 'Who comes?'\nmcpd_begin \"$@\"\n";
    let sandbox = with_tool("sh", "mcpd.sh", "picture", text);
    let programs = sandbox.path().join("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["sed", "awk", "tr", "cat"] {
        let place = ["/usr/bin", "/bin"].map(|directory| Path::new(directory).join(name));
        let place = place.iter().find(|place| place.exists()).unwrap();
        std::os::unix::fs::symlink(place, programs.join(name)).unwrap();
    }
    let mut plain = sandbox.program(sandbox.path().join("scripts/picture"));
    let plain = plain.env("PATH", &programs).stdin(Stdio::null());
    let output = plain.output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        stderr,
        "ERROR The questions of this script need the program jq: install it.\n"
    );
    assert!(output.stdout.is_empty(), "{output:?}");
}
