//! Files that describe themselves without being run, side by side with scripts that are probed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;
use mcpd_tests::{Sandbox, skip};
use serde_json::{Value, json};

const ORDER: &str = r#"DESCRIPTION "Places an order"
PARAM amount AS number LIKE 99.5 DESCRIPTION "How much"
"#;

/// Interpreter for BASIC in these tests: leaves a file behind and prints its arguments and stdin.
const INTERPRETER: &str = r#"#!/bin/sh
{ echo ran > ran; } 2>/dev/null
echo "$1 runs ${2##*/} in $(pwd -P | sed s,.*/,,): $(cat)"
"#;

fn write(sandbox: &Sandbox, path: &str, text: &str) {
    fs::write(sandbox.path().join(path), text).unwrap();
}

/// Returns a sandbox with this program as interpreter of BASIC.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    write(&sandbox, "interpreter", INTERPRETER);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(sandbox.path().join("interpreter"), executable).unwrap();
    write(
        &sandbox,
        "mcpd.toml",
        "[interpreter]\nbas = [\"./interpreter\", \"basic\"]\n",
    );
    sandbox
}

#[test]
fn self_describing_files_are_not_probed() {
    let sandbox = sandbox();
    let interpreter = sandbox.path().join("interpreter");
    let text = format!("#!{} itself\n{ORDER}", interpreter.display());
    let sandbox = sandbox.with_script("order.bas", &text);
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    order(amount: number)  Places an order
    ");
    assert_snapshot!(sandbox.run(&["describe", "scripts", "order"]), @"
    exit code: 0
    ----- stdout -----
    order

    Places an order

    Options:
      amount: number, required
          How much
          for example 99.5

    Sandbox: none
    Limits: time limit 60s
    ");
    assert!(!sandbox.path().join("scripts/ran").exists());
    assert_snapshot!(sandbox.run(&["call", "scripts", "order", "amount=5"]), @r#"
    exit code: 0
    ----- stdout -----
    itself runs order.bas in scripts: {"amount":5}
    "#);
    assert!(sandbox.path().join("scripts/ran").exists());
}

#[test]
fn file_that_is_no_program_runs_by_its_interpreter() {
    let sandbox = sandbox().with_script(
        "ask.sh",
        "if [ \"$1\" = --help ]; then echo '{\"description\": \"Has no first line\"}'; exit; fi\necho \"called $#\"\n",
    );
    fs::create_dir(sandbox.path().join("scripts/shop")).unwrap();
    write(&sandbox, "scripts/shop/order.bas", ORDER);
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    ask.sh()                    Has no first line
    shop/order(amount: number)  Places an order
    ");
    assert_snapshot!(sandbox.run(&["call", "scripts", "ask.sh"]), @"
    exit code: 0
    ----- stdout -----
    called 0
    ");
    assert_snapshot!(sandbox.run(&["call", "scripts", "shop/order", "amount=5"]), @r#"
    exit code: 0
    ----- stdout -----
    basic runs order.bas in scripts: {"amount":5}
    "#);
    // Under `guarded` the interpreter works in a temporary directory that is not the script's.
    assert_snapshot!(
        sandbox.run(&["call", "scripts", "shop/order", "amount=5", "--sandbox", "guarded"]),
        @r#"
    exit code: 0
    ----- stdout -----
    basic runs order.bas in scripts: {"amount":5}
    "#
    );
}

#[test]
fn a_missing_interpreter_is_named_and_the_others_are_served() {
    let sandbox = Sandbox::new().with_script("hello", super::HELLO);
    write(
        &sandbox,
        "mcpd.toml",
        "[interpreter]\nbas = [\"no-such-basic\"]\n",
    );
    write(&sandbox, "scripts/order.bas", ORDER);
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    hello()  Says hello
    ----- stderr -----
    the catalog is incomplete: 1 faulty script; run `mcpd check scripts` for details
    ");
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @r#"
    exit code: 1
    ----- stdout -----
    error[missing-interpreter]: no interpreter for `.bas` files is installed: `no-such-basic` not found
    --> scripts/order.bas
     = help: install one, or set the interpreter in mcpd.toml: `[interpreter]`, `bas = ["/path/to/program"]`

    1 error in 2 scripts
    "#);
    let report = String::from_utf8(sandbox.stdout(&["doctor"])).unwrap();
    assert!(report.contains("`no-such-basic` not found"), "{report}");
}

#[test]
fn compile_without_tools_is_an_error() {
    let sandbox = Sandbox::new();
    write(&sandbox, "scripts/forgotten", "#!/bin/sh\n");
    assert_snapshot!(sandbox.run(&["compile", "scripts"]), @"
    exit code: 1
    ----- stderr -----
    warning[overlooked-file]: it begins with `#!` but is not executable; run `chmod +x` on it
    --> scripts/forgotten

    1 warning in 0 scripts
    mcpd: error: no tools found in the given files
    ");
}

#[test]
fn scriptlets_are_found_by_whatever_they_are_named() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path().join("scripts/scriptlets")).unwrap();
    let greet = "## Greet\n\nSays hello.\n\n```sh\necho hello\n```\n";
    write(&sandbox, "scripts/scriptlets/greet.md", greet);
    for root in [
        "scripts",
        "scripts/scriptlets",
        "scripts/scriptlets/greet.md",
    ] {
        let definition = sandbox.stdout(&["compile", root, "--format", "mcp"]);
        let definition: Value = serde_json::from_slice(&definition).unwrap();
        assert_eq!(definition["name"], "scriptlets_greet", "{definition}");
    }
}

#[test]
fn script_kit_metadata_are_used() {
    let sandbox = Sandbox::new();
    if sandbox.program("node").arg("--version").output().is_err() {
        return skip("scripts of Script Kit: there is no Node.js");
    }
    let greet = r#"import "@scriptkit/sdk"
metadata = { description: "Greets somebody" }
const { input, output } = defineSchema({
  input: { name: { type: "string", required: true, description: "Whom" } },
  output: { greeting: { type: "string", required: true }, letters: { type: "integer" } },
})
const { name } = await input()
output({ greeting: `Hello, ${name}!` })
output({ letters: name.length })
if (!metadata.mcp) await div("Hello")
"#;
    let shout = r#"import { readFileSync } from "node:fs"
schema = { input: { name: { type: "string", required: true, description: "Whom" } } }
console.log(readFileSync(0, "utf8").toUpperCase())
"#;
    write(&sandbox, "scripts/greet.mjs", greet);
    write(&sandbox, "scripts/shout.mjs", shout);
    for level in ["none", "guarded"] {
        let call =
            |name| sandbox.stdout(&["call", "scripts", name, "name=Ada", "--sandbox", level]);
        let greeting: Value = serde_json::from_slice(&call("scripts/greet")).unwrap();
        assert_eq!(greeting, json!({"greeting": "Hello, Ada!", "letters": 3}));
        assert_eq!(call("scripts/shout"), b"{\"NAME\":\"ADA\"}\n");
    }
}

#[test]
fn compiled_tools_have_names_of_their_own() {
    let sandbox = sandbox();
    for directory in ["a", "b"] {
        fs::create_dir(sandbox.path().join("scripts").join(directory)).unwrap();
        write(&sandbox, &format!("scripts/{directory}/order.bas"), ORDER);
    }
    write(&sandbox, "scripts/a/refund.bas", ORDER);
    let compiled: Value = serde_json::from_slice(&sandbox.stdout(&["compile", "scripts"])).unwrap();
    let compiled = compiled.as_array().unwrap();
    let names: Vec<_> = compiled.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["a_order", "refund", "b_order"]);
}

#[test]
fn a_single_file_is_checked() {
    let sandbox = sandbox();
    write(
        &sandbox,
        "scripts/order.bas",
        &ORDER.replace("number", "nmber"),
    );
    assert_snapshot!(sandbox.run(&["check", "scripts/order.bas"]), @r#"
    exit code: 1
    ----- stdout -----
    error[unknown-value-type]: unknown type `nmber`
     --> scripts/order.bas:2:17
      |
    2 | PARAM amount AS nmber LIKE 99.5 DESCRIPTION "How much"
      |                 ^^^^^
      |
      = help: did you mean `number`?

    1 error in 1 script
    "#);
}

#[test]
fn a_file_that_is_too_large_to_describe_itself_is_reported() {
    let sandbox = sandbox();
    let text = format!("DESCRIPTION \"Too much\"\n{}", "REM more\n".repeat(150_000));
    write(&sandbox, "scripts/large.bas", &text);
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @"
    exit code: 1
    ----- stdout -----
    error[file-too-large]: a file with its own description may have at most 1048576 bytes
    --> scripts/large.bas
     = help: move the large parts into another file

    1 error in 1 script
    ");
}

#[test]
fn the_configuration_of_interpreters_is_checked() {
    let sandbox = sandbox();
    write(
        &sandbox,
        "mcpd.toml",
        "[interpreter]\n\".bas\" = [\"basic\"]\n",
    );
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: mcpd.toml:2:1: in [interpreter]: `.bas`: write the extension without the dot, `bas`
    ");
    write(&sandbox, "mcpd.toml", "[interpreter]\nbas = []\n");
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to apply the configuration: mcpd.toml:2:7: in [interpreter]: `bas`: expected a program and its first arguments
    ");
}

#[test]
fn a_file_is_compiled_for_models() {
    let sandbox = sandbox();
    fs::create_dir(sandbox.path().join("scripts/shop")).unwrap();
    write(&sandbox, "scripts/shop/order.bas", ORDER);
    let compile = ["compile", "scripts/shop/order.bas"];
    assert_snapshot!(sandbox.run(&compile), @r#"
    exit code: 0
    ----- stdout -----
    {
      "name": "order",
      "description": "Places an order",
      "input_schema": {
        "type": "object",
        "properties": {
          "amount": {
            "type": "number",
            "description": "How much",
            "example": 99.5
          }
        },
        "required": [
          "amount"
        ]
      }
    }
    "#);
    for format in ["mcp", "openai"] {
        let arguments = [&compile[..], &["--format", format]].concat();
        let definition: Value = serde_json::from_slice(&sandbox.stdout(&arguments)).unwrap();
        let schema = match format {
            "mcp" => &definition["inputSchema"],
            _ => &definition["function"]["parameters"],
        };
        assert_eq!(schema["required"], json!(["amount"]), "{definition}");
    }
    write(&sandbox, "scripts/refund.bas", ORDER);
    let both = sandbox.stdout(&["compile", "scripts/shop/order.bas", "scripts/refund.bas"]);
    let both: Value = serde_json::from_slice(&both).unwrap();
    assert_eq!(
        [&both[0]["name"], &both[1]["name"]],
        ["order", "refund"],
        "{both}"
    );

    write(
        &sandbox,
        "scripts/shop/order.bas",
        &ORDER.replace("number", "nmber"),
    );
    assert_snapshot!(sandbox.run(&compile), @r#"
    exit code: 1
    ----- stderr -----
    error[unknown-value-type]: unknown type `nmber`
     --> scripts/shop/order.bas:2:17
      |
    2 | PARAM amount AS nmber LIKE 99.5 DESCRIPTION "How much"
      |                 ^^^^^
      |
      = help: did you mean `number`?

    1 error in 1 script
    "#);
}

#[test]
fn descriptions_are_cached_until_cleared() {
    let sandbox = sandbox().with_script("hello", super::HELLO);
    write(&sandbox, "scripts/order.bas", ORDER);
    assert_snapshot!(sandbox.run(&["catalog", "list"]), @"exit code: 0");
    sandbox.stdout(&["list", "scripts"]);
    assert_snapshot!(sandbox.run(&["catalog", "list"]), @"
    exit code: 0
    ----- stdout -----
    hello  --help, in @@ROOT@@/scripts
    order  basic, in @@ROOT@@/scripts
    ");
    assert_snapshot!(sandbox.run(&["catalog", "show", "order"]), @r#"
    exit code: 0
    ----- stdout -----
    order: basic, in @@ROOT@@/scripts
    {
      "name": "order",
      "description": "Places an order",
      "input_schema": {
        "type": "object",
        "properties": {
          "amount": {
            "type": "number",
            "description": "How much",
            "example": 99.5
          }
        },
        "required": [
          "amount"
        ]
      }
    }
    "#);
    let shown = sandbox.stdout(&["catalog", "show", "hello", "--json"]);
    let shown: Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!(shown[0]["metadata"]["description"], "Says hello");
    assert_snapshot!(sandbox.run(&["catalog", "forget"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to forget definitions: expected the name of a tool, or `--all`
    ");
    assert_snapshot!(sandbox.run(&["catalog", "forget", "order"]), @"
    exit code: 0
    ----- stderr -----
    removed 1 definition
    ");
    assert_snapshot!(sandbox.run(&["catalog", "forget", "order"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: the cache has no definition of `order`
    ");
    assert_snapshot!(sandbox.run(&["catalog", "forget", "--all"]), @"
    exit code: 0
    ----- stderr -----
    removed 1 definition
    ");
    assert_snapshot!(sandbox.run(&["catalog", "show", "hello"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: the cache has no definition of `hello`
    ");
}

#[test]
fn corrupt_database_is_replaced() {
    let sandbox = sandbox().with_script("hello", super::HELLO);
    sandbox.stdout(&["list", "scripts"]);
    write(&sandbox, "state/mcpd/mcpd.db", &"torn".repeat(2000));
    let transcript = sandbox.run(&["list", "scripts", "--verbose"]);
    assert!(transcript.contains("hello()  Says hello"), "{transcript}");
    assert!(transcript.contains("moved aside"), "{transcript}");
    let entries = fs::read_dir(sandbox.path().join("state/mcpd")).unwrap();
    let mut names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.any(|name| name.starts_with("mcpd.db.corrupt-")));
}

/// One file in each dialect: path, text, arguments of the call, and the output.
const SIDE_BY_SIDE: &[(&str, &str, &[&str], &str)] = &[
    (
        "asked",
        "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{\"description\": \"Is asked\"}'; exit; }\necho asked\n",
        &["asked"],
        "asked",
    ),
    (
        "beside.sh",
        "echo \"beside $MCPD_OPT_text\"\n",
        &["beside.sh", "text=a"],
        "beside a",
    ),
    (
        "beside.sh.mcpd.toml",
        "description = \"Has a sidecar\"\n[options.text]\nrequired = true\nvalue_type = \"string\"\n",
        &[],
        "",
    ),
    (
        "header",
        "#!/bin/sh\n# /// mcpd\n# description = \"Has a header\"\n# ///\necho header\n",
        &["header"],
        "header",
    ),
    (
        "kit.ts",
        "// Name: Make Note\nschema = { input: { title: { type: 'string', required: true } } }\n",
        &["scripts/make-note", "title=a"],
        "as Script Kit kit.ts",
    ),
    (
        "scriptlets/all.md",
        "## Say It\n\n```sh\necho said {{what}}\n```\n",
        &["scriptlets/say-it", "what=$(a) b"],
        "said $(a) b",
    ),
    (
        "sum.bas",
        "DESCRIPTION \"Adds\"\nPARAM a AS number LIKE 1 DESCRIPTION \"One\"\nTALK a + 1\n",
        &["sum", "a=2"],
        "3",
    ),
    (
        "usage",
        "#!/bin/sh\n#USAGE flag \"--env <env>\" help=\"Where\"\n#USAGE arg \"<app>\" help=\"What\"\necho \"$@\"\n",
        &["usage", "app=x", "env=prod"],
        "--env=prod x",
    ),
    (
        "argc",
        "#!/bin/sh\n# @describe Adds\n# @option --by! How much\necho \"$@\"; exit\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n",
        &["argc", "by=2"],
        "--by=2",
    ),
    (
        "raycast",
        "#!/bin/sh\n# @raycast.schemaVersion 1\n# @raycast.title Say\n# @raycast.mode fullOutput\n# @raycast.argument1 {\"type\": \"text\", \"placeholder\": \"What\"}\necho \"said $1\"\n",
        &["raycast", "argument1=-a"],
        "said -a",
    ),
];

#[test]
fn task_of_mise_gets_its_arguments_as_under_mise() {
    let task = r#"#!/usr/bin/env bash
#MISE description="Ships files"
#USAGE flag "--to <stage>" env="SHIP_TO" default="test" help="Where to"
#USAGE arg "<file>" var=#true help="Which files"
shift # the flag
eval "files=(${usage_file:-})"
printf '%s' "$usage_to:" "$1" "[${files[1]}]"
"#;
    let sandbox = Sandbox::new().with_script("ship", task);
    let call = ["call", "scripts", "ship", r#"file:=["a.md", "b c.md"]"#];
    let answer = |stage: Option<&str>| {
        let mut command = sandbox.command(&call);
        command.envs(stage.map(|stage| ("SHIP_TO", stage)));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(answer(None), "test:a.md[b c.md]\n");
    assert_eq!(answer(Some("live")), "live:a.md[b c.md]\n");
}

#[test]
fn scriptlet_conditions_choose_the_program() {
    let sandbox = Sandbox::new().with_script(
        "scriptlets/parcels.md",
        r#"## Pack

Packs a parcel.

```sh
{{#if fragile}}
printf 'with care: '
{{else if heavy}}printf 'by two: '{{/if}}
printf '%s\n' {{thing}}{{#if label}} "to {{label}}"{{/if}}
```

## Weigh

Weighs in Python.

```python
print({{#if grams}}"g"{{else}}"kg"{{/if}})
```
"#,
    );
    for (call, expected) in [
        (&["pack", "thing=a; id"] as &[&str], "a; id"),
        (&["pack", "thing=x", "fragile=true"], "with care: x"),
        (
            &["pack", "thing=x", "fragile=true", "heavy=true"],
            "with care: x",
        ),
        (
            &["pack", "thing=x", "heavy=true", "label=$(id)"],
            "by two: x\nto $(id)",
        ),
        (&["weigh"], "kg"),
        (&["weigh", "grams=true"], "g"),
    ] {
        let tool = format!("scriptlets/{}", call[0]);
        let arguments = [&["call", "scripts", &tool], &call[1..]].concat();
        let expected = format!("exit code: 0\n----- stdout -----\n{expected}\n");
        assert_eq!(sandbox.run(&arguments), expected, "{call:?}");
    }
}

/// Scriptlets that are not programs, beside two that are.
const MAIL: &str = r#"## Reply

Answers a letter.

```template
Dear {{name}}, it's "done"{{#if soon}} soon{{/if}}.
```

## Sign

```paste
Yours, {{name}}
```

## Sort

Prints words the other way round.

```bash
echo "$2" "$1" "${3:-no third}"
```

## Count

Counts words.

```bash
echo "$#" "$@"
```
"#;

#[test]
fn scriptlets_without_a_program_are_templates_or_passed_over() {
    let sandbox = Sandbox::new().with_script("scriptlets/mail.md", MAIL);
    for (call, expected) in [
        (
            &["reply", "name=O'Hara `id`"] as &[&str],
            "Dear O'Hara `id`, it's \"done\".",
        ),
        (
            &["reply", "name=$(id)", "soon=true"],
            "Dear $(id), it's \"done\" soon.",
        ),
        (
            &["sort", "argument1=--", "argument2=$(id)"],
            "$(id) -- no third",
        ),
        (&["count", r#"arguments=["-a b","c"]"#], "2 -a b c"),
        (&["count"], "0"),
    ] {
        let tool = format!("scriptlets/{}", call[0]);
        let arguments = [&["call", "scripts", &tool], &call[1..]].concat();
        let expected = format!("exit code: 0\n----- stdout -----\n{expected}\n");
        assert_eq!(sandbox.run(&arguments), expected, "{call:?}");
    }
    assert_snapshot!(sandbox.run(&["list", "scripts", "--all"]), @r#"
    exit code: 0
    ----- stdout -----
    scripts/scriptlets/mail.md  served as `scriptlets/count`
    scripts/scriptlets/mail.md  served as `scriptlets/reply`
    scripts/scriptlets/mail.md  served as `scriptlets/sort`
    scripts/scriptlets/mail.md  passed over: a block of `paste` needs a desktop and is not served: it pastes text into the active window
    "#);
    assert_snapshot!(sandbox.run(&["check", "scripts", "--format", "short"]), @r#"
    exit code: 0
    ----- stdout -----
    scripts/scriptlets/mail.md:6:6: info[undescribed-option]: option `name` has no description
    scripts/scriptlets/mail.md:6:27: info[undescribed-option]: option `soon` has no description
    scripts/scriptlets/mail.md:11:4: info[source-not-run]: a block of `paste` needs a desktop and is not served: it pastes text into the active window
    "#);
    assert_snapshot!(sandbox.run(&["call", "scripts", "scriptlets/sign", "name=Eve"]), @"
    exit code: 5
    ----- stderr -----
    mcpd: error: there is no tool `scriptlets/sign`: the script is passed over; run `mcpd check @@ROOT@@/scripts/scriptlets/mail.md` for the reason
    ");
}

#[test]
fn dialects_are_listed_and_called_alike() {
    let mut sandbox = Sandbox::new();
    write(
        &sandbox,
        "mcpd.toml",
        "[interpreter]\nts = [\"sh\", \"-c\", 'echo \"as Script Kit ${0##*/}\"']\n",
    );
    for (path, text, ..) in SIDE_BY_SIDE {
        sandbox = sandbox.with_script(path, text);
    }
    // Sidecars and scriptlets need no executable bit.
    for path in [
        "beside.sh",
        "beside.sh.mcpd.toml",
        "kit.ts",
        "scriptlets/all.md",
        "sum.bas",
    ] {
        let file = sandbox.path().join("scripts").join(path);
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    argc(by: string)                  Adds
    asked()                           Is asked
    beside.sh(text: string)           Has a sidecar
    header()                          Has a header
    raycast(argument1: string)        Say
    scriptlets/say-it(what: string)   Say It
    scripts/make-note(title: string)  Make Note
    sum(a: number)                    Adds
    usage(app: string, env?: string)  usage
    ");
    for (_, _, call, expected) in SIDE_BY_SIDE
        .iter()
        .filter(|(_, _, call, _)| !call.is_empty())
    {
        let arguments = [&["call", "scripts"], *call].concat();
        assert_eq!(
            sandbox.run(&arguments),
            format!("exit code: 0\n----- stdout -----\n{expected}\n"),
            "{call:?}"
        );
    }
}
