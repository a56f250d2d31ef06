//! Machine-readable output formats of `mcpd check`.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use mcpd_tests::{Sandbox, repository};
use serde_json::Value;

use super::with_options;
use crate::{BROKEN, HELLO};

/// Returns a sandbox with a fault inside a `--help` output, a fault without a location, and a
/// fault between two scripts.
fn faulty() -> Sandbox {
    let options = "{\n  \"größe\": {\"description\": \"How, big\", \"value_type\": \"integr\", \"required\": true}\n}";
    Sandbox::new()
        .with_script("50%/size", &with_options(options))
        .with_script("broken", BROKEN)
        .with_script("a/b", HELLO)
        .with_script("a_b", HELLO)
}

#[test]
fn json_has_every_field() {
    let options =
        "{\n  \"a\": {\"description\": \"Größe\", \"default_value\": 0, \"required\": 1}\n}";
    let sandbox = Sandbox::new().with_script("size", &with_options(options));
    assert_snapshot!(sandbox.run(&["check", "scripts", "--format", "json"]), @r#"
    exit code: 1
    ----- stdout -----
    [
      {
        "path": "size",
        "file": "@@ROOT@@/scripts/size",
        "code": "untyped-option",
        "severity": "info",
        "message": "option `a` has no type",
        "stream": "stderr",
        "span": {
          "start": 4,
          "end": 7,
          "line": 2,
          "column": 3
        },
        "help": "add a type, such as `\"value_type\": \"string\"`"
      },
      {
        "path": "size",
        "file": "@@ROOT@@/scripts/size",
        "code": "field-type-mismatch",
        "severity": "error",
        "message": "`required` is the number 1, expected `true` or `false`",
        "stream": "stderr",
        "span": {
          "start": 68,
          "end": 69,
          "line": 2,
          "column": 65
        },
        "help": null
      }
    ]
    "#);
}

#[test]
fn short_is_one_line_for_each_fault() {
    assert_snapshot!(faulty().run(&["check", "scripts", "--format", "short"]), @"
    exit code: 1
    ----- stdout -----
    scripts/50%/size --help (stderr):2:3: warning[unportable-option-name]: some models refuse the name `größe`, so it is listed as `grosse`
    scripts/50%/size --help (stderr):2:54: error[unknown-value-type]: unknown value type `integr`
    scripts/broken: error[help-failed]: `--help` ended with exit code 3
    scripts/a/b: warning[name-conflict]: `a/b` (@@ROOT@@/scripts/a/b) is listed as `a_b_3a8e75c1`, because `a_b` (@@ROOT@@/scripts/a_b) is listed as `a_b`
    ");
}

#[test]
fn github_format_annotates_the_files() {
    assert_snapshot!(faulty().run(&["check", "scripts", "--format", "github"]), @"
    exit code: 1
    ----- stdout -----
    ::warning file=scripts/50%25/size,title=unportable-option-name::some models refuse the name `größe`, so it is listed as `grosse` (stderr of `--help`, 2:3)%0Ahelp: use at most 64 of the characters `A-Z a-z 0-9 _ . -`
    ::error file=scripts/50%25/size,title=unknown-value-type::unknown value type `integr` (stderr of `--help`, 2:54)%0Ahelp: did you mean `integer`?
    ::error file=scripts/broken,title=help-failed::`--help` ended with exit code 3%0Ahelp: if the first argument is `--help`, print the metadata and exit with 0, or describe the script in `NAME.mcpd.toml` beside it
    ::warning file=scripts/a/b,title=name-conflict::`a/b` (@@ROOT@@/scripts/a/b) is listed as `a_b_3a8e75c1`, because `a_b` (@@ROOT@@/scripts/a_b) is listed as `a_b`%0Ahelp: rename one of the two
    ");
}

/// Returns the SARIF log of `sandbox` after validating it against the official schema.
#[track_caller]
fn sarif(sandbox: &Sandbox) -> Value {
    let transcript = sandbox.run(&["check", "scripts", "--format", "sarif"]);
    let (_, json) = transcript.split_once("----- stdout -----\n").unwrap();
    let log: Value = serde_json::from_str(json).unwrap();
    let schema = jsonschema::validator_for(&sarif_schema()).unwrap();
    let faults: Vec<_> = schema
        .iter_errors(&log)
        .map(|fault| format!("{fault} at {}", fault.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
    log
}

/// Returns the official schema from the crate that contains it.
#[expect(clippy::disallowed_methods, reason = "cargo is no script")]
fn sarif_schema() -> Value {
    let output = std::process::Command::new(env!("CARGO"))
        // Dependencies for other systems were never downloaded.
        .args([
            "metadata",
            "--format-version",
            "1",
            "--offline",
            "--filter-platform",
            "host-tuple",
        ])
        .current_dir(repository())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut packages = metadata["packages"].as_array().unwrap().iter();
    let package = packages.find(|package| package["name"] == "serde-sarif");
    let manifest = package.unwrap()["manifest_path"].as_str().unwrap();
    let schema = Path::new(manifest).with_file_name("src/schema.json");
    let mut schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    // The pattern has an extra bracket that strict readers reject, and mcpd sets no language.
    for holder in ["run", "toolComponent"] {
        let language = &mut schema["definitions"][holder]["properties"]["language"];
        language.as_object_mut().unwrap().remove("pattern").unwrap();
    }
    schema
}

#[test]
fn sarif_is_valid_under_its_schema() {
    let log = sarif(&faulty());
    let run = &log["runs"][0];
    let results: Vec<_> = run["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(Value::to_string)
        .collect();
    assert_snapshot!(results.join("\n"), @r#"
    {"ruleId":"unportable-option-name","level":"warning","message":{"text":"some models refuse the name `größe`, so it is listed as `grosse` (stderr of `--help`, 2:3)\nhelp: use at most 64 of the characters `A-Z a-z 0-9 _ . -`"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"scripts/50%25/size"}}}]}
    {"ruleId":"unknown-value-type","level":"error","message":{"text":"unknown value type `integr` (stderr of `--help`, 2:54)\nhelp: did you mean `integer`?"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"scripts/50%25/size"}}}]}
    {"ruleId":"help-failed","level":"error","message":{"text":"`--help` ended with exit code 3\nhelp: if the first argument is `--help`, print the metadata and exit with 0, or describe the script in `NAME.mcpd.toml` beside it"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"scripts/broken"}}}]}
    {"ruleId":"name-conflict","level":"warning","message":{"text":"`a/b` (@@ROOT@@/scripts/a/b) is listed as `a_b_3a8e75c1`, because `a_b` (@@ROOT@@/scripts/a_b) is listed as `a_b`\nhelp: rename one of the two"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"scripts/a/b"}}}]}
    "#);
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let rule = rules
        .iter()
        .find(|rule| rule["id"] == "unknown-value-type")
        .unwrap();
    assert_snapshot!(serde_json::to_string_pretty(rule).unwrap(), @r#"
    {
      "id": "unknown-value-type",
      "shortDescription": {
        "text": "unknown value type"
      },
      "fullDescription": {
        "text": "Values of an unknown type cannot be checked, and a model would learn nothing about them."
      },
      "help": {
        "text": "error[unknown-value-type]\n\nValues of an unknown type cannot be checked, and a model would learn nothing about them.\n\nInstead of\n\n    echo '{\"description\": \"Counts\"}'\n    echo '{\"step\": {\"required\": true, \"value_type\": \"int\"}}' >&2\n\nwrite\n\n    echo '{\"description\": \"Counts\"}'\n    echo '{\"step\": {\"required\": true, \"value_type\": \"integer\"}}' >&2\n",
        "markdown": "Values of an unknown type cannot be checked, and a model would learn nothing about them.\n\nInstead of\n\n```sh\necho '{\"description\": \"Counts\"}'\necho '{\"step\": {\"required\": true, \"value_type\": \"int\"}}' >&2\n```\n\nwrite\n\n```sh\necho '{\"description\": \"Counts\"}'\necho '{\"step\": {\"required\": true, \"value_type\": \"integer\"}}' >&2\n```\n"
      },
      "helpUri": "https://github.com/mcpd-project/mcpd/blob/main/docs/diagnostics.md#unknown-value-type",
      "defaultConfiguration": {
        "level": "error"
      }
    }
    "#);
}

#[test]
fn sarif_has_no_results_without_a_fault() {
    let log = sarif(&Sandbox::new().with_script("hello", HELLO));
    assert_eq!(log["runs"][0]["results"], Value::Array(Vec::new()));
}
