//! Script Kit scripts on the runtimes that run them, as `setup` beside this file installs and
//! lists them.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::fs;
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::Duration;

use mcpd_tests::{Sandbox, output_within, repository};
use serde_json::json;

/// Time limit of the setup, which installs runtimes the first time.
const SETUP_TIMEOUT: Duration = Duration::from_secs(600);

/// Script that imports the package, and asks `metadata.mcp` before it opens a window.
const PACKAGE: (&str, &str) = (
    "package",
    r#"
import "@scriptkit/sdk"
metadata = { name: "Package", description: "Doubles a number" }
const { input, output } = defineSchema({ input: { count: { type: "number", required: true } } })
const { count } = await input()
output({ twice: 2 * count })
if (!metadata.mcp) await div("no window here")
"#,
);

/// Script that imports names of the older package.
const NAMES: (&str, &str) = (
    "names",
    r#"
// Name: Names
import { defineSchema as define } from "@johnlindquist/kit"
export const schema = { input: { count: { type: "number", required: true } } }
const { input, output } = define(schema)
output({ thrice: 3 * (await input()).count })
"#,
);

/// Script that awaits at its top level and imports nothing.
const AWAIT: (&str, &str) = (
    "await",
    r#"
// Name: Await
schema = { input: { count: { type: "number", required: true } } }
const count = await Promise.resolve(process.env.MCPD_OPT_count)
console.log("counted", count)
"#,
);

/// Script that assigns its schema and could be CommonJS as well.
const PLAIN: (&str, &str) = (
    "plain",
    r#"
// Name: Plain
schema = { input: { count: { type: "number", required: true } } }
console.log("plain", process.env.MCPD_OPT_count)
"#,
);

/// Script that is CommonJS: it requires, and awaits in a function.
const COMMON: (&str, &str) = (
    "common",
    r#"
// Name: Common
const { sep } = require("node:path")
schema = { input: { count: { type: "number", required: true } } }
const print = async count => console.log(sep, await count)
print(process.env.MCPD_OPT_count)
"#,
);

/// One line of what `setup` lists.
struct Runtime<'a> {
    /// Directory that `PATH` begins with.
    directory: &'a str,
    extension: &'a str,
    command: Vec<&'a str>,
}

/// Calls each script on the runtime of this name, unless the machine lacks it.
#[track_caller]
fn check(name: &str, scripts: &[((&str, &str), &str)]) {
    let Some((sandbox, extension)) = prepare(name) else {
        return;
    };
    for ((script, text), printed) in scripts {
        let file = format!("scripts/{script}.{extension}");
        fs::write(sandbox.path().join(file), text.trim_start()).unwrap();
        let tool = format!("scripts/{script}");
        let seen = sandbox.run(&["call", "scripts", &tool, "count=21"]);
        let expected = format!("exit code: 0\n----- stdout -----\n{printed}\n");
        assert_eq!(seen, expected, "{script} on {name}");
    }
}

/// Makes a sandbox in which the runtime of this name runs the files of an extension.
#[track_caller]
fn prepare(name: &str) -> Option<(Sandbox, &'static str)> {
    let runtime = runtime(name)?;
    let path = format!("{}:{}", runtime.directory, std::env::var("PATH").unwrap());
    let sandbox = Sandbox::new().with_variable("PATH", &path);
    let extension = runtime.extension;
    let configuration = format!("[interpreter]\n{extension} = {}\n", json!(runtime.command));
    fs::write(sandbox.path().join("mcpd.toml"), configuration).unwrap();
    Some((sandbox, extension))
}

/// Finds a runtime in the list of `setup`; if it is missing, `setup` reports the reason.
#[track_caller]
fn runtime(name: &str) -> Option<Runtime<'static>> {
    let setup = setup();
    let stdout = str::from_utf8(&setup.stdout).unwrap();
    let mut listed = stdout.lines().map(|line| line.split('\t'));
    let found = listed.find_map(|mut words| (words.next() == Some(name)).then_some(words));
    let Some(mut words) = found else {
        let stderr = String::from_utf8_lossy(&setup.stderr);
        let is_excused =
            stderr.contains("RUNTIME TESTS SKIPPED") || std::env::var_os("CI").is_none();
        assert!(is_excused, "setup failed:\n{stderr}");
        mcpd_tests::skip(&format!("scripts of Script Kit on `{name}`:\n{stderr}"));
        return None;
    };
    Some(Runtime {
        directory: words.next()?,
        extension: words.next()?,
        command: words.next()?.split(' ').collect(),
    })
}

fn setup() -> &'static Output {
    static SETUP: OnceLock<Output> = OnceLock::new();
    SETUP.get_or_init(|| {
        #[expect(
            clippy::disallowed_methods,
            reason = "it is no script of ours to confine"
        )]
        let mut setup = Command::new(repository().join("tests/runtimes/setup"));
        setup.arg(repository().join("target/runtimes"));
        output_within(SETUP_TIMEOUT, setup, b"")
    })
}

#[test]
fn scriptlets_in_typescript_have_names_of_script_kit() {
    const SCRIPTLET: &str = r#"
## Add

<!--
Input: { a: { type: "number", required: true }, b: { type: "number", default: 1 } }
-->

```tool:add
const { a, b } = await input()
output({ sum: a + b, word: "{{word}}!" })
```
"#;
    for name in ["node-24", "bun", "deno", "tsx-20"] {
        let Some((sandbox, _)) = prepare(name) else {
            continue;
        };
        let file = sandbox.path().join("scripts/add.scriptlets.md");
        fs::write(file, SCRIPTLET).unwrap();
        let seen = sandbox.run(&["call", "scripts", "scriptlets/add", "a=2", "word=so"]);
        let expected = "exit code: 0\n----- stdout -----\n{\"sum\":3,\"word\":\"so!\"}\n";
        assert_eq!(seen, expected, "{name}");
    }
}

/// Every script with its output.
const ALL: [((&str, &str), &str); 5] = [
    (PACKAGE, r#"{"twice":42}"#),
    (NAMES, r#"{"thrice":63}"#),
    (AWAIT, "counted 21"),
    (PLAIN, "plain 21"),
    (COMMON, "/ 21"),
];

#[test]
fn node_20_runs_script_kit() {
    // Node 20 has no TypeScript, and these scripts use none.
    check("node-20", &ALL);
}

#[test]
fn node_24_runs_script_kit() {
    check("node-24", &ALL);
}

#[test]
fn tsx_on_node_20_runs_script_kit() {
    check("tsx-20", &ALL);
}

#[test]
fn tsx_on_node_24_runs_script_kit() {
    check("tsx-24", &ALL);
}

#[test]
fn bun_runs_script_kit() {
    check("bun", &ALL);
}

#[test]
fn deno_runs_modules_of_script_kit() {
    // Deno does not treat a `.ts` file as CommonJS.
    check("deno", &ALL[..4]);
}
