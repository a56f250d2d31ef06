//! `mcpd bundle`: what goes into a bundle, what does not, and that nothing is left of a failure.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use insta::assert_snapshot;
use mcpd_tests::{Sandbox, binary, eventually};
use serde_json::{Value, json};
use zip::ZipArchive;

/// Tool with a secret, a setting that is left out, and one with a default.
const API: &str = r#"#!/bin/sh
# /// mcpd
# description = "Uses an API."
# [options.key]
# title = "API key"
# description = "Key from the site."
# required = true
# secret = true
# env = "API_KEY"
# [options.region]
# description = "Region of the site."
# env = "REGION"
# [options.count]
# description = "Number of results."
# value_type = "integer"
# default_value = 3
# size = { min = 1, max = 9 }
# env = "COUNT"
# ///
. "${0%/*}/../helper.sh"
show "key=${#MCPD_OPT_key} region=${MCPD_OPT_region-none} count=$MCPD_OPT_count token=${#TOKEN}"
"#;

const CASE: &str =
    "[[case]]\nname = \"uses the key\"\ntext = \"key=11 region=none count=3 token=10\"\n";

const CONFIGURATION: &str = r#"
floor = "guarded"
listen = ["127.0.0.1:1"]
[server]
name = "api-tools"
version = "2.0.0"
title = "API tools"
[[tool]]
match = "deep/*"
env = { TOKEN = { file = "scripts/token" } }
"#;

/// Arguments that pack `scripts` with a small program, which is the built one.
const ARGUMENTS: [&str; 7] = [
    "bundle",
    "scripts",
    "--author",
    "Ada",
    "--yes",
    "--program",
    "program",
];

/// Sandbox with a tool, a helper and files that are not for others.
fn sandbox() -> Sandbox {
    let program = format!("#!/bin/sh\nexec '{}' \"$@\"\n", binary().display());
    let sandbox = Sandbox::new()
        .with_script("deep/api", API)
        .with_script("../program", &program)
        .with_variable("API_KEY", "s3cret-key1");
    let at = |name: &str| sandbox.path().join(name);
    for (name, text) in [
        ("mcpd.toml", CONFIGURATION),
        ("scripts/deep/api.test.toml", CASE),
        ("scripts/helper.sh", "show() { echo \"$1\"; }\n"),
        ("scripts/INSTRUCTIONS.md", "Ask before you use it.\n"),
        ("scripts/token", "s3cret-tok\n"),
        ("scripts/.env", "API_KEY=s3cret-key1\n"),
        ("scripts/helper.sh~", "old"),
        ("scripts/tls.pem", "key"),
        ("scripts/ignored.sh", "x=1\n"),
        ("scripts/.mcpdignore", "ignored.sh\n"),
    ] {
        fs::write(at(name), text).unwrap();
    }
    sandbox
}

/// Files of a bundle, each with its content.
fn unpack(bundle: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut archive = ZipArchive::new(File::open(bundle).unwrap()).unwrap();
    let mut files = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).unwrap();
        let mut content = Vec::new();
        file.read_to_end(&mut content).unwrap();
        files.insert(file.name().unwrap().into_owned(), content);
    }
    files
}

/// Names in the directory of the sandbox, and in that for temporary files.
fn names(sandbox: &Sandbox) -> Vec<String> {
    let places = [sandbox.path().to_owned(), sandbox.path().join("tmp")];
    let entries = places.iter().flat_map(|place| fs::read_dir(place).unwrap());
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // A run of mcpd may make its own directories.
    let mut names: Vec<_> = names
        .filter(|name| !["cache", "state"].contains(&&**name))
        .collect();
    names.sort();
    names
}

/// Checks that the command fails with these words, and leaves nothing.
#[track_caller]
fn check_refusal(sandbox: &Sandbox, arguments: &[&str], words: &str) {
    let before = names(sandbox);
    let refused = sandbox.run(arguments);
    assert!(refused.starts_with("exit code: 1"), "{refused}");
    assert!(refused.contains(words), "{refused}");
    // A server that was tried ends when its client does, and takes its files with it; that of an
    // earlier run may have been there before.
    eventually("nothing is left", || {
        let is_old = |name: &String| before.contains(name);
        names(sandbox).iter().all(is_old).then_some(())
    });
}

#[test]
fn bundle_has_what_is_needed_and_no_secret() {
    let sandbox = sandbox();
    let made = sandbox.run(&ARGUMENTS);
    let digest = regex::Regex::new(r"\d+ bytes, SHA-256 [0-9a-f]{64}").unwrap();
    assert_snapshot!(digest.replace(&made, "@@SIZE@@"), @r"
    exit code: 0
    ----- stdout -----
    api-tools-2.0.0.mcpb: @@SIZE@@
    unpacked and started as a client would: 1 tool listed
    1 case called and passed
    ----- stderr -----
    files:
      manifest.json
      mcpd.toml
      scripts/INSTRUCTIONS.md
      scripts/deep/api
      scripts/helper.sh
      server/mcpd
    left out:
      scripts/.env: hidden: the name begins with a dot
      scripts/.mcpdignore: hidden: the name begins with a dot
      scripts/deep/api.test.toml: test cases of a script
      scripts/helper.sh~: file left behind by an editor, judging by the name
      scripts/ignored.sh: `.mcpdignore` has `ignored.sh`
      scripts/tls.pem: it may be a secret, judging by its name
      scripts/token: configuration, secret or state of mcpd
      `listen` of mcpd.toml: it is about this machine
    settings that the user of the bundle is asked for:
      API_KEY: API key, required, secret
      COUNT: count
      REGION: region
      TOKEN: TOKEN, required, secret
    ");
    let temporary = sandbox.path().join("tmp");
    let is_empty = || fs::read_dir(&temporary).unwrap().next().is_none();
    eventually("no temporary file is left", || is_empty().then_some(()));
    let files = unpack(&sandbox.path().join("api-tools-2.0.0.mcpb"));
    check_contents(&files);
}

#[track_caller]
fn check_contents(files: &BTreeMap<String, Vec<u8>>) {
    for (name, content) in files {
        let text = String::from_utf8_lossy(content);
        assert!(!text.contains("s3cret"), "{name}: {text}");
    }
    let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    let environment = &manifest["server"]["mcp_config"]["env"];
    assert_eq!(environment["API_KEY"], "${user_config.api_key}");
    let settings = &manifest["user_config"];
    assert_eq!(
        settings["api_key"],
        json!({"type": "string", "title": "API key", "description": "Key from the site.",
               "required": true, "sensitive": true})
    );
    assert_eq!(settings["token"]["sensitive"], true);
    assert_eq!(settings["count"]["default"], 3);
    assert_eq!(settings["region"]["required"], false);
    assert_eq!(manifest["tools"][0]["name"], "deep_api");
    assert_snapshot!(String::from_utf8_lossy(&files["mcpd.toml"]), @r#"
    floor = "guarded"

    [server]
    name = "api-tools"
    version = "2.0.0"
    title = "API tools"

    [[tool]]
    match = "deep/*"

    [tool.env]
    TOKEN = { pass = true }

    [env]
    pass = ["API_KEY", "COUNT", "REGION"]
    optional = ["COUNT", "REGION"]
    "#);
}

#[test]
fn same_files_make_the_same_bytes() {
    let bytes = || {
        let sandbox = sandbox();
        sandbox.stdout(&[&ARGUMENTS[..], &["--output", "a.mcpb"]].concat());
        // The program names the place of the build only.
        fs::read(sandbox.path().join("a.mcpb")).unwrap()
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn report_and_entry_of_the_registry_have_the_digest() {
    let sandbox = sandbox();
    let registry = [
        "--json",
        "--server-json",
        "server.json",
        "--registry-name",
        "io.github.ada/api-tools",
        "--url",
        "https://host.example/api-tools.mcpb",
    ];
    let report = sandbox.stdout(&[&ARGUMENTS[..], &registry].concat());
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["calls"], json!({"passed": 1, "skipped": 0}));
    let entry = fs::read(sandbox.path().join("server.json")).unwrap();
    let entry: Value = serde_json::from_slice(&entry).unwrap();
    assert_eq!(entry["name"], "io.github.ada/api-tools");
    let package = &entry["packages"][0];
    assert_eq!(package["fileSha256"], report["sha256"]);
    assert_eq!(package["transport"], json!({"type": "stdio"}));
    let variables = package["environmentVariables"].as_array().unwrap();
    let secrets = variables.iter().filter(|one| one["isSecret"] == true);
    assert!(secrets.map(|one| &one["name"]).eq(["API_KEY", "TOKEN"]));
}

#[test]
fn directories_of_one_name_go_into_one_bundle() {
    let sandbox = sandbox().with_script("../other/scripts/greet", super::HELLO);
    let both = [&["bundle", "other/scripts"], &ARGUMENTS[1..]].concat();
    let made = sandbox.run(&both);
    assert!(
        made.contains("2 tools listed\n1 case called and passed\n"),
        "{made}"
    );
    let files = unpack(&sandbox.path().join("api-tools-2.0.0.mcpb"));
    let has = |name: &str| files.contains_key(name);
    assert!(
        has("scripts/scripts/greet") && has("scripts/scripts-2/deep/api"),
        "{made}"
    );
}

#[test]
fn links_out_of_the_directory_are_refused() {
    for (name, target) in [
        ("steal", "/etc/passwd"),
        ("lib", "/etc"),
        ("up.txt", "../.."),
    ] {
        let sandbox = sandbox();
        symlink(target, sandbox.path().join("scripts").join(name)).unwrap();
        let words = format!("scripts/{name}: error[unusable-file]: link to a target outside");
        check_refusal(&sandbox, &ARGUMENTS, &words);
    }
}

#[test]
fn file_with_a_known_secret_is_refused() {
    let sandbox = sandbox();
    fs::write(
        sandbox.path().join("scripts/notes.txt"),
        "it is s3cret-key1",
    )
    .unwrap();
    let words = "pack `scripts/notes.txt`: it contains the value of `API_KEY`";
    check_refusal(&sandbox, &ARGUMENTS, words);
}

#[test]
fn faulty_script_is_named() {
    let sandbox = sandbox().with_script("broken", super::BROKEN);
    check_refusal(&sandbox, &ARGUMENTS, "scripts/broken: error[");
    check_refusal(&sandbox, &ARGUMENTS, "pack the scripts: 1 faulty script;");
}

#[test]
fn failed_trial_leaves_nothing() {
    let sandbox = sandbox();
    let case = sandbox.path().join("scripts/deep/api.test.toml");
    fs::write(case, CASE.replace("count=3", "count=4")).unwrap();
    let words = "call the tools of the bundle: 1 of its cases failed";
    check_refusal(&sandbox, &ARGUMENTS, words);

    sandbox.write_script("../program", "#!/bin/sh\nexit 3\n");
    check_refusal(&sandbox, &ARGUMENTS, "start the bundle as a client would:");

    fs::create_dir(sandbox.path().join("empty")).unwrap();
    let (mcpd, empty) = (binary().display(), sandbox.path().join("empty"));
    let program = format!("#!/bin/sh\nexec '{mcpd}' stdio '{}'\n", empty.display());
    sandbox.write_script("../program", &program);
    check_refusal(
        &sandbox,
        &ARGUMENTS,
        "find `deep_api` among the tools of the bundle",
    );
}

#[test]
fn nothing_is_replaced_or_made_without_consent() {
    let sandbox = sandbox();
    let unasked: Vec<_> = ARGUMENTS
        .into_iter()
        .filter(|word| *word != "--yes")
        .collect();
    check_refusal(
        &sandbox,
        &unasked,
        "there is no terminal to ask at; add `--yes` to make it",
    );
    let file = sandbox.path().join("api-tools-2.0.0.mcpb");
    fs::write(&file, "mine").unwrap();
    check_refusal(
        &sandbox,
        &ARGUMENTS,
        "it exists; add `--force` to replace it",
    );
    sandbox.stdout(&[&ARGUMENTS[..], &["--force"]].concat());
    assert_ne!(fs::read(&file).unwrap(), b"mine");
}

#[test]
fn flags_add_files_and_settings() {
    let sandbox = sandbox();
    let more = [
        "--include",
        "scripts/ignored.sh",
        "--pass-env",
        "LOG_LEVEL",
        "--name",
        "other",
        "--version",
        "3.0.0",
        "--description",
        "Does it.",
    ];
    let made = sandbox.run(&[&ARGUMENTS[..], &more].concat());
    assert!(
        made.contains(
            "LOG_LEVEL: LOG_LEVEL, required (not set here, so the trial has another value)\n"
        ),
        "{made}"
    );
    let files = unpack(&sandbox.path().join("other-3.0.0.mcpb"));
    assert!(files.contains_key("scripts/ignored.sh"));
    let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    assert_eq!(manifest["description"], "Does it.");
    assert_eq!(manifest["user_config"]["log_level"]["required"], true);
    for (flag, value, words) in [
        (
            "--include",
            "program",
            "it is below none of the directories",
        ),
        (
            "--pass-env",
            "s3cret value",
            "expected the name of a variable",
        ),
        ("--name", "../evil", "choose one with `--name`"),
        ("--icon", "scripts/helper.sh", "it is no PNG"),
        (
            "--program",
            "scripts/helper.sh",
            "a bundle can't tell processors apart",
        ),
    ] {
        check_refusal(&sandbox, &[&ARGUMENTS[..], &[flag, value]].concat(), words);
    }
}
