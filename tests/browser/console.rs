//! Web console in a real browser: each view and action, the keyboard, accessibility, and attacks
//! by scripts and by other sites. The steps are in `console/*.mjs`; screenshots are kept below
//! `target`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use mcpd_tests::{Daemon, Sandbox, binary, output_within, repository, write_audit_log};
use ring::digest::{SHA256, digest};

use crate::{browser, hostile, records, set_up, shots};

/// Time limit of a scenario, on a busy machine.
const SCENARIO_TIMEOUT: Duration = Duration::from_secs(300);

const ADD: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"title": "Add numbers", "description": "Adds the numbers of a list.", "tags": ["math"], "output": "json", "annotations": {"read_only": true}}'
  echo '{
    "numbers": {"value_type": "array", "items": {"value_type": "integer"}, "required": true, "description": "Numbers to add."},
    "scale": {"value_type": "float", "default_value": 2, "size": {"min": 0, "max": 10}, "description": "Factor of the sum."},
    "mode": {"value_type": {"enum": ["plain", "loud"]}, "default_value": "plain", "description": "Form of the answer."}
  }' >&2
  exit
fi
tr -d ' \n' | sed 's/.*"numbers":\[\([0-9,]*\)\].*/\1/' | awk -F, '{
  for (i = 1; i <= NF; i++) { sum += $i; rows = rows (i > 1 ? "," : "") "{\"index\":" i - 1 ",\"number\":" $i "}" }
  printf "{\"sum\": %d, \"items\": [%s]}\n", sum, rows
}'
"#;

const BUILD: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Builds a report.", "tags": ["report"]}'; exit; }
for page in 1 2 3 4 5 6 7 8; do
  echo "PROGRESS $page/8 page $page" >&2
  echo "WARNING page $page has no title" >&2
  sleep 0.4
done
"#;

const FAIL: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Fails, always.", "tags": ["report"]}'; exit; }
echo 'the disk is full' >&2
exit 3
"#;

const SLOW: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Waits for a minute."}'; exit; }
echo 'INFO waiting' >&2
sleep 60
"#;

/// A picture of one pixel, and a page that says that it is one.
const PICTURE: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Draws.", "output": "mcp"}'; exit; }
echo '{"content": [
  {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="},
  {"type": "image", "mimeType": "image/png", "data": "PHNjcmlwdD53aW5kb3cuaGFja2VkPTE8L3NjcmlwdD4="}
]}'
"#;

/// Asks for a name before it greets.
const ASK: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Asks for a name.", "output": "mcp"}'; exit; }
if [ -n "$MCPD_INPUT_RESPONSES" ]; then
  name=$(sed 's/.*"name" *: *"\([^"]*\)".*/\1/' "$MCPD_INPUT_RESPONSES")
  echo "{\"content\": [{\"type\": \"text\", \"text\": \"Hello, $name.\"}]}"
  exit
fi
echo '{"inputRequests": {"who": {"method": "elicitation/create", "params": {
  "message": "Who is there?",
  "requestedSchema": {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}
}}}}'
"#;

/// Returns its arguments, which are of all kinds.
const FORM: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  cat <<'END'
{"description": "Returns its arguments.", "output": "json", "input_schema": {"type": "object", "properties": {
  "text": {"type": "string", "description": "A word.", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
  "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "title": "Note"},
  "count": {"type": "integer", "minimum": 1, "maximum": 9, "description": "How many."},
  "ratio": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}]},
  "is_loud": {"type": "boolean"},
  "day": {"type": "string", "format": "date"},
  "file": {"type": "string", "contentEncoding": "base64"},
  "page": {"type": "string"},
  "place": {"type": "object", "properties": {"city": {"type": "string"}, "floor": {"type": "integer", "minimum": 0}}, "required": ["city"]},
  "people": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]}},
  "more": {"description": "Anything."}
}, "required": ["count"]}}
END
  exit
fi
cat
"#;

/// Asks to open an address, and returns the answer.
const SIGN_IN: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Asks where to sign in.", "output": "mcp"}'; exit; }
if [ -n "$MCPD_INPUT_RESPONSES" ]; then
  action=$(tr -d ' \n' < "$MCPD_INPUT_RESPONSES" | sed 's/.*"action":"\([a-z]*\)".*/\1/')
  echo "{\"content\": [{\"type\": \"text\", \"text\": \"The answer is $action.\"}]}"
  exit
fi
echo '{"inputRequests": {"where": {"method": "elicitation/create", "params": {"mode": "url", "elicitationId": "1", "message": "Sign in first.", "url": "https://login.example/start"}}}}'
"#;

/// Asks for approval.
const DELETE: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Deletes.", "annotations": {"destructive": true}}'; exit; }
echo 'deleted it'
"#;

/// Returns its argument: the server that its app tries to reach.
const HOSTILE_APP: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Brings a hostile app.", "output": "json", "_meta": {"ui": {"csp": {"connectDomains": ["http://127.0.0.1"]}}}}'
  echo '{"target": {"description": "Where to go."}}' >&2
  exit
fi
cat
"#;

/// Duration of the flood, in seconds, unless the variable of this name has another.
const FLOOD_SECONDS: (&str, &str) = ("MCPD_FLOOD_SECONDS", "10");

/// Prints 100 lines in each tenth of a second, however long that takes.
const FLOOD: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Prints a thousand lines a second."}'; exit; }
exec awk 'function now(text) {
  getline text < "/proc/uptime"
  close("/proc/uptime")
  return text + 0
}
BEGIN {
  begin = now()
  for (tick = 0; tick < SECONDS * 10; tick++) {
    for (line = 0; line < 100; line++) print "INFO line " tick * 100 + line > "/dev/stderr"
    fflush("/dev/stderr")
    rest = begin + (tick + 1) / 10 - now()
    if (rest > 0) system("sleep " rest)
  }
}'
"#;

fn flood_seconds() -> String {
    let (variable, default) = FLOOD_SECONDS;
    std::env::var(variable).unwrap_or_else(|_| default.to_owned())
}

/// Works in the background.
const BACKGROUND: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Works in the background.", "task": "required"}'; exit; }
echo 'INFO half done' >&2
sleep 60
"#;

/// Asks for a name in the background.
const GREETER: &str = r#"#!/bin/sh
[ "$1" = --help ] && { echo '{"description": "Greets in the background.", "output": "mcp", "task": "required"}'; exit; }
if [ -n "$MCPD_INPUT_RESPONSES" ]; then
  name=$(sed 's/.*"name" *: *"\([^"]*\)".*/\1/' "$MCPD_INPUT_RESPONSES")
  echo "{\"content\": [{\"type\": \"text\", \"text\": \"Hello, $name.\"}]}"
  exit
fi
echo '{"inputRequests": {"who": {"method": "elicitation/create", "params": {
  "message": "Who is there?",
  "requestedSchema": {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}
}}}}'
"#;

/// Token of a caller that is no operator.
const TEAM: &str = "a-token-of-team-a-that-is-long";

/// Table of that caller, with more keys.
fn team_table(more: &str) -> String {
    let hash = digest(&SHA256, TEAM.as_bytes());
    let digits = hash.as_ref().iter().map(|byte| format!("{byte:02x}"));
    let hash: String = digits.collect();
    format!("[[token]]\nname = \"team-a\"\nsha256 = \"{hash}\"\n{more}")
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new()
        .with_script("math/add", ADD)
        .with_script("report/build", BUILD)
        .with_script("report/fail", FAIL)
        .with_script("slow", SLOW)
        .with_script("picture", PICTURE)
        .with_script("ask", ASK)
        .with_script("broken", "#!/bin/sh\necho '{\"description\": 5,}'\n")
        .with_counter("count");
    let forgotten = sandbox.path().join("scripts/forgotten.sh");
    fs::write(forgotten, "#!/bin/sh\necho hello\n").unwrap();
    sandbox
}

/// Runs a scenario in a browser, and returns what it prints. Does nothing without a browser.
#[track_caller]
fn run(sandbox: &Sandbox, daemon: &Daemon, scenario: &str) -> Option<String> {
    let (browser, packages) = (browser()?, packages()?);
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser/console");
    let directory = target().join("console").join(scenario);
    shots::clear(&directory);
    let mut command = sandbox.program("node");
    command
        .arg(here.join(format!("{scenario}.mjs")))
        .env("BROWSER", browser)
        .env("PACKAGES", packages)
        .env("SHOTS", &directory)
        .env("LINK", link(sandbox, daemon))
        .env("NOW", records::NOW)
        .env("MCPD", binary())
        .env("SERVER", daemon.id().to_string())
        .env("FLOOD_SECONDS", flood_seconds())
        .env("TEAM", TEAM)
        .env("TOKEN", daemon.token().unwrap_or_default());
    let output = output_within(SCENARIO_TIMEOUT, command, b"");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario}: {error}");
    shots::check(&directory, scenario);
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Link that opens the console once: that of the start may be used already.
fn link(sandbox: &Sandbox, daemon: &Daemon) -> String {
    let announced = daemon.announcement().contains("  console: ");
    assert!(announced, "{}", daemon.announcement());
    let token = "state/mcpd/agent-token";
    let printed = sandbox.stdout(&["console", &daemon.url(), "--token-file", token]);
    String::from_utf8(printed).unwrap().trim().to_owned()
}

fn target() -> PathBuf {
    let target = binary().ancestors().nth(2);
    target.expect("target/<profile>/mcpd").to_owned()
}

/// Directory of the npm packages, or `None` if they are not available.
fn packages() -> Option<&'static Path> {
    static PACKAGES: OnceLock<Option<PathBuf>> = OnceLock::new();
    PACKAGES.get_or_init(|| set_up("packages")).as_deref()
}

#[test]
fn console_shows_tools_runs_and_server() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &["--console"]);
    run(&sandbox, &daemon, "tour");
}

#[test]
fn console_is_usable_by_keyboard() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &["--console"]);
    run(&sandbox, &daemon, "keyboard");
}

#[test]
fn console_makes_forms_of_schemas_and_lines_for_a_shell() {
    let sandbox = Sandbox::new()
        .with_script("form", FORM)
        .with_script("asks", SIGN_IN)
        .with_script("delete", DELETE)
        .with_script("slow", SLOW);
    let file = "[approval]\nask = \"destructive\"\n";
    fs::write(sandbox.path().join("mcpd.toml"), file).unwrap();
    let daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml", "--console"]);
    run(&sandbox, &daemon, "form");
    run(&sandbox, &daemon, "actions");
}

#[test]
fn console_shows_hostile_texts_as_text() {
    let sandbox = hostile::fill(sandbox());
    let daemon = Daemon::start(&sandbox, &["--console"]);
    run(&sandbox, &daemon, "hostile");
}

#[test]
fn operator_cancels_and_sees_as_others() {
    let sandbox = sandbox().with_script("background", BACKGROUND);
    let skills = repository().join("examples/apps/skills/dice-odds");
    let scripts = sandbox.path().join("scripts/skills/dice-odds");
    fs::create_dir_all(scripts.join("references")).unwrap();
    for name in ["SKILL.md", "references/limits.md"] {
        fs::copy(skills.join(name), scripts.join(name)).unwrap();
    }
    let more = "tools = [\"background\", \"slow\"]\n[profile.small]\ntools = [\"slow\"]\n";
    fs::write(sandbox.path().join("mcpd.toml"), team_table(more)).unwrap();
    let daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml", "--console"]);
    run(&sandbox, &daemon, "operator");
}

#[test]
fn call_in_the_background_is_followed_and_cancelled() {
    let sandbox = Sandbox::new()
        .with_script("background", BACKGROUND)
        .with_script("greeter", GREETER);
    fs::write(sandbox.path().join("mcpd.toml"), team_table("")).unwrap();
    let daemon = Daemon::start(&sandbox, &["--config", "mcpd.toml", "--console"]);
    run(&sandbox, &daemon, "background");
}

#[test]
fn app_shows_results_and_reaches_nothing_else() {
    let sandbox = sandbox().with_script("hostile", HOSTILE_APP);
    let (scripts, examples) = (
        sandbox.path().join("scripts"),
        repository().join("examples/apps"),
    );
    for name in ["dice", "dice.ui.html"] {
        fs::copy(examples.join(name), scripts.join(name)).unwrap();
    }
    let page = include_str!("console/hostile.ui.html");
    fs::write(scripts.join("hostile.ui.html"), page).unwrap();
    let daemon = Daemon::start(&sandbox, &["--console"]);
    let Some(outcomes) = run(&sandbox, &daemon, "apps") else {
        return;
    };
    // The values that a beacon and a form return say nothing: the scenario asserts that nothing
    // arrived.
    insta::assert_snapshot!(outcomes, @r#"
    {
      "cookie": "SecurityError",
      "storage": "SecurityError",
      "database": "SecurityError",
      "parent document": "SecurityError",
      "parent variable": "SecurityError",
      "parent storage": "SecurityError",
      "own frame": "hidden",
      "top": "SecurityError",
      "window": "blocked",
      "fetch": "TypeError",
      "fetch of the server": "TypeError",
      "call of the server": "TypeError",
      "beacon": "true",
      "request": "Error",
      "socket": "blocked",
      "events": "blocked",
      "worker": "blocked",
      "image": "blocked",
      "script": "blocked",
      "style": "blocked",
      "prefetch": "blocked",
      "object": "blocked",
      "form": "asked",
      "eval": "EvalError",
      "unknown tool": "-32000 there is no such tool for apps",
      "prototype": "-32000 there is no such tool for apps",
      "resource": "-32601 the console does not have resources/read",
      "link": "-32000 the console opens no links, and has no conversation",
      "message": "-32000 the console opens no links, and has no conversation"
    }
    "#);
}

#[test]
fn console_stays_responsive_in_a_flood() {
    let script = FLOOD.replace("SECONDS", &flood_seconds());
    let sandbox = sandbox().with_script("flood", &script);
    let daemon = Daemon::start(&sandbox, &["--console", "--timeout", "300"]);
    let figures = run(&sandbox, &daemon, "stream");
    println!("{}", figures.unwrap_or_default());
}

#[test]
fn console_takes_thousands_of_tools_and_runs() {
    const RUNS: usize = 100_000;
    let sandbox = Sandbox::new().with_counter("count");
    let many = sandbox.path().join("scripts/many");
    fs::create_dir_all(&many).unwrap();
    for number in 0..2000 {
        let sidecar = format!("description = \"Number {number}.\"\n");
        sandbox.write_script(&format!("many/tool{number}"), "#!/bin/sh\n");
        fs::write(many.join(format!("tool{number}.mcpd.toml")), sidecar).unwrap();
    }
    let state = sandbox.path().join("state");
    write_audit_log(&state, RUNS, |number| format!("many/tool{}", number % 2000));
    let daemon = Daemon::start(&sandbox, &["--console"]);
    run(&sandbox, &daemon, "many");
}

#[test]
fn console_finds_runs_in_few_clicks() {
    let sandbox = sandbox();
    let log = sandbox.path().join("state/mcpd/logs");
    fs::create_dir_all(&log).unwrap();
    fs::write(log.join("mcp-audit.jsonl"), records::three_days()).unwrap();
    let daemon = Daemon::start(&sandbox, &["--console"]);
    run(&sandbox, &daemon, "runs");
    run(&sandbox, &daemon, "tasks");
}

#[test]
fn other_site_reaches_nothing_of_the_console() {
    let sandbox = sandbox();
    let daemon = Daemon::start(&sandbox, &["--console"]);
    let Some(outcomes) = run(&sandbox, &daemon, "sites") else {
        return;
    };
    insta::assert_snapshot!(outcomes, @r#"
    {
      "other port": {
        "call": "blocked",
        "simple call": "unreadable",
        "data": "blocked",
        "simple data": "blocked",
        "sign-in": "unreadable",
        "cancel": "blocked",
        "simple cancel": "unreadable",
        "script": "blocked",
        "socket": "blocked",
        "frame": "chrome-error://chromewebdata/",
        "form to /mcp": "this Origin is not allowed; see --allow-origin",
        "form to /console/session": "this Origin is not allowed; see --allow-origin",
        "form to /console/api/cancel?run=1": "this Origin is not allowed; see --allow-origin"
      },
      "other site": {
        "call": "blocked",
        "simple call": "unreadable",
        "data": "blocked",
        "simple data": "blocked",
        "sign-in": "unreadable",
        "cancel": "blocked",
        "simple cancel": "unreadable",
        "script": "blocked",
        "socket": "blocked",
        "frame": "chrome-error://chromewebdata/",
        "form to /mcp": "this Origin is not allowed; see --allow-origin",
        "form to /console/session": "this Origin is not allowed; see --allow-origin",
        "form to /console/api/cancel?run=1": "this Origin is not allowed; see --allow-origin"
      }
    }
    "#);
    assert_eq!(sandbox.runs(), 0);
}

#[test]
fn console_scripts_pass_the_type_check() {
    let Some(packages) = packages() else { return };
    let assets = repository().join("crates/mcpd-console/assets");
    let sandbox = Sandbox::new();
    let mut command = sandbox.program("node");
    command
        .arg(packages.join("node_modules/typescript/bin/tsc"))
        .arg("--project")
        .arg(assets);
    let output = output_within(SCENARIO_TIMEOUT, command, b"");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
