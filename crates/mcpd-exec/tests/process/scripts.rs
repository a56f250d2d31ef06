//! Scripts as in the script specification run unchanged at every level, with a directory to write
//! to. The one that keeps state needs write access to its file as well.

use std::fs;
use std::path::Path;

use mcpd_exec::{Command, Level, Outcome, Sandbox};

use crate::support::{World, exit_code, levels, skip, within};

const GREETING: &str = r#"#!/usr/bin/env sh

if [ "$1" = "--help" ]; then
  echo '{"description": "Welcomes somebody"}'
  echo '{"who": {"required": true, "value_type": "string"}}' >&2
  exit 0
fi

echo "{\"welcome\": \"Welcome, ${MCPD_OPT_who}!\"}"
"#;

const CALCULATOR: &str = r#"#!/usr/bin/env sh

if [ "$1" = "--help" ]; then
  echo '{"description": "Calculates", "version": "1.0"}'
  cat >&2 << 'EOF'
{
  "how": {"required": true, "value_type": {"enum": ["plus", "times"]}},
  "x": {"required": true, "value_type": "float"}
}
EOF
  exit 0
fi

x="$MCPD_OPT_x"
case "$MCPD_OPT_how" in
  plus)  result=$(echo "$x + $x" | bc -l) ;;
  times) result=$(echo "$x * $x" | bc -l) ;;
esac

echo "{\"result\": $result}"
"#;

/// A script that counts its calls in a file. Each test passes another file.
const COUNTER: &str = r#"#!/usr/bin/env sh

FILE="$MCPD_OPT_file"

if [ "$1" = "--state" ]; then
  [ -f "$FILE" ] && cat "$FILE" || echo '{"seen": 0}'
  exit 0
fi

seen=$(cat "$FILE" 2>/dev/null | grep -o '"seen":[ 0-9]*' | grep -o '[0-9]*' || echo 0)
more="${MCPD_OPT_more:-1}"
now=$((seen + more))

echo "{\"seen\": $now}" > "$FILE"
echo "{\"seen\": $now, \"more\": $more}"
"#;

const READER: &str = r#"#!/usr/bin/env sh

file="$MCPD_OPT_file"

if [ ! -f "$file" ]; then
  echo "ERROR No such file: $file" >&2
  echo '{"error": "No such file"}'
  exit 4
fi

echo "INFO Reading: $file" >&2
cat "$file"
"#;

const PYTHON: &str = r#"#!/usr/bin/env python3
import sys
import json
import os

if len(sys.argv) > 1 and sys.argv[1] == "--help":
    print(json.dumps({"description": "Looks at a text"}))
    print(json.dumps({"text": {"required": True, "value_type": "string"}}), file=sys.stderr)
    sys.exit(0)

text = os.environ.get("MCPD_OPT_text", "")
if os.environ.get("MCPD_OPT_loud", "false").lower() == "true":
    text = text.upper()

with open("last.json", "w") as last:
    json.dump({"text": text}, last)
print(json.dumps({"text": text, "given": json.load(sys.stdin)["text"]}))
"#;

/// Runs a script in a directory of its own, which it may write besides the paths of `sandbox`.
async fn run(world: &World, sandbox: Sandbox, command: Command) -> Outcome {
    let work = world.directory().join("work");
    fs::create_dir_all(&work).unwrap();
    let command = command.current_dir(&work).sandbox(sandbox.write(&work));
    within(world.executor.run(command)).await.unwrap()
}

/// Checks the exit code, output and errors of a script at each level.
async fn check(script: &str, change: impl Fn(Command) -> Command, expected: (i32, &str, &str)) {
    for level in levels().await {
        let world = World::new();
        let command = change(world.command(world.file(script, 0o755)));
        let outcome = run(&world, Sandbox::at(level), command).await;
        let [stdout, stderr] =
            [&outcome.stdout, &outcome.stderr].map(|output| output.to_text_lossy());
        let said = (exit_code(&outcome).unwrap(), &*stdout, &*stderr);
        assert_eq!(said, expected, "at {level}");
    }
}

/// Checks what a script prints when it is asked for its description.
async fn check_help(script: &str, stdout: &str, stderr: &str) {
    check(script, |script| script.arg("--help"), (0, stdout, stderr)).await;
}

/// Returns whether there is such a program, and reports the skipped test if not.
async fn is_here(program: &str) -> bool {
    let found = World::new().run(&format!("command -v {program}")).await;
    if !found.success() {
        skip(&format!("scripts that need `{program}`"));
    }
    found.success()
}

#[tokio::test]
async fn greeting_script_runs() {
    check_help(
        GREETING,
        "{\"description\": \"Welcomes somebody\"}\n",
        "{\"who\": {\"required\": true, \"value_type\": \"string\"}}\n",
    )
    .await;
    let ada = |script: Command| script.env("MCPD_OPT_who", "Ada").stdin(r#"{"who":"Ada"}"#);
    check(GREETING, ada, (0, "{\"welcome\": \"Welcome, Ada!\"}\n", "")).await;
}

#[tokio::test]
async fn calculator_script_runs() {
    if !is_here("bc").await {
        return;
    }
    check_help(
        CALCULATOR,
        "{\"description\": \"Calculates\", \"version\": \"1.0\"}\n",
        "{
  \"how\": {\"required\": true, \"value_type\": {\"enum\": [\"plus\", \"times\"]}},
  \"x\": {\"required\": true, \"value_type\": \"float\"}
}\n",
    )
    .await;
    for (how, result) in [("plus", "3.0"), ("times", "2.25")] {
        let options = |script: Command| script.env("MCPD_OPT_how", how).env("MCPD_OPT_x", "1.5");
        let result = format!("{{\"result\": {result}}}\n");
        check(CALCULATOR, options, (0, &result, "")).await;
    }
}

#[tokio::test]
async fn python_script_runs() {
    if !is_here("python3").await {
        return;
    }
    check_help(
        PYTHON,
        "{\"description\": \"Looks at a text\"}\n",
        "{\"text\": {\"required\": true, \"value_type\": \"string\"}}\n",
    )
    .await;
    let options = |script: Command| {
        let script = script
            .env("MCPD_OPT_text", "shout")
            .env("MCPD_OPT_loud", "true");
        script.stdin(r#"{"text": "shout", "loud": true}"#)
    };
    let said = "{\"text\": \"SHOUT\", \"given\": \"shout\"}\n";
    check(PYTHON, options, (0, said, "")).await;
}

#[tokio::test]
async fn file_reading_script_runs() {
    let file = |path: &'static str| move |script: Command| script.env("MCPD_OPT_file", path);
    let missing = "ERROR No such file: /no/such\n";
    let told = (4, "{\"error\": \"No such file\"}\n", missing);
    check(READER, file("/no/such"), told).await;
    let said = "INFO Reading: ../script-0\n";
    check(READER, file("../script-0"), (0, READER, said)).await;
}

/// Returns what a counter prints in three calls, and its file afterwards. `allow` adds writable
/// paths.
async fn count_calls(level: Level, allow: impl Fn(Sandbox, &Path) -> Sandbox) -> (String, String) {
    let world = World::new();
    let file = world.directory().join("state.json");
    fs::write(&file, "{\"seen\": 40}\n").unwrap();
    let script = world.command(world.file(COUNTER, 0o755));
    let script = script.env("MCPD_OPT_file", &file);
    let calls = [
        script.clone(),
        script.clone().env("MCPD_OPT_more", "2"),
        script.arg("--state"),
    ];
    let mut said = String::new();
    for call in calls {
        let outcome = run(&world, allow(Sandbox::at(level), &file), call).await;
        said.push_str(&outcome.stdout.to_text_lossy());
    }
    (said, fs::read_to_string(file).unwrap())
}

#[tokio::test]
async fn counter_counts_in_its_writable_file() {
    for level in levels().await {
        let (said, kept) = count_calls(level, |sandbox, file| sandbox.write(file)).await;
        let calls = "{\"seen\": 41, \"more\": 1}\n{\"seen\": 43, \"more\": 2}\n{\"seen\": 43}\n";
        assert_eq!((&*said, &*kept), (calls, "{\"seen\": 43}\n"), "at {level}");
    }
}

/// It does not check whether its write succeeded, so only the next call tells.
#[tokio::test]
async fn counter_keeps_nothing_in_a_read_only_file() {
    for level in levels().await {
        let (said, kept) = count_calls(level, |sandbox, _| sandbox).await;
        let seen = if level == Level::None { 43 } else { 40 };
        let state = format!("{{\"seen\": {seen}}}\n");
        assert_eq!(kept, state, "at {level}");
        assert!(said.ends_with(&state), "at {level}: {said}");
    }
}
