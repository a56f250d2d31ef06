//! Rules of the source tree, as tests: module documentation, the direction of dependencies, and
//! the terms that each crate must not know. The modules check the language of comments and names,
//! the order of the server's folders, and the hook for commit subjects.

#[cfg(unix)]
#[path = "tidy/commits.rs"]
mod commits;
#[path = "tidy/language.rs"]
mod language;
#[path = "tidy/rooms.rs"]
mod rooms;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests is a package of the workspace")
        .to_owned()
}

/// Returns every Rust file below `directory`, with its text.
fn rust_files(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
    {
        let name = entry.file_name().unwrap_or_default();
        if entry.is_dir() && name != "target" {
            files.extend(rust_files(&entry));
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&entry).expect("UTF-8");
            files.push((entry, text));
        }
    }
    files
}

/// Returns the names of a package's dependencies, without those of its tests.
fn dependencies(package: &Value) -> Vec<&str> {
    let all = package["dependencies"]
        .as_array()
        .expect("dependencies")
        .iter();
    all.filter(|dependency| dependency["kind"].is_null())
        .filter_map(|d| d["name"].as_str())
        .collect()
}

#[expect(clippy::disallowed_methods, reason = "cargo is no script")]
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let mut metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    metadata["packages"]
        .as_array_mut()
        .expect("packages")
        .drain(..)
        .collect()
}

#[track_caller]
fn check_absent(crate_name: &str, except: &[&str], words: &[&str]) {
    let source = root().join("crates").join(crate_name).join("src");
    for (file, text) in rust_files(&source) {
        let relative = file
            .strip_prefix(&source)
            .expect("below the source")
            .to_string_lossy()
            .into_owned();
        if except.iter().any(|prefix| relative.starts_with(prefix)) {
            continue;
        }
        // Documentation may mention what the code must not use.
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect::<Vec<_>>()
            .join("\n");
        let code = code
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        for word in words {
            assert!(!code.contains(word), "{} uses `{word}`", file.display());
        }
    }
}

#[test]
fn files_open_with_module_docs() {
    for directory in ["crates", "tests", "examples"] {
        for (file, text) in rust_files(&root().join(directory)) {
            assert!(
                text.starts_with("//! "),
                "{} does not open with `//!`",
                file.display()
            );
        }
    }
}

#[test]
fn modules_are_files_beside_their_directory() {
    for (file, _) in rust_files(&root().join("crates")) {
        assert!(
            !file.ends_with("mod.rs"),
            "{} should be named after its module",
            file.display()
        );
    }
}

#[test]
fn leaf_crates_do_not_know_each_other() {
    let packages = packages();
    let dependencies_of = |name: &str| {
        let package = packages
            .iter()
            .find(|package| package["name"] == name)
            .expect("a package");
        dependencies(package)
    };
    for leaf in [
        "mcpd-protocol",
        "mcpd-scriptspec",
        "mcpd-exec",
        "mcpd-basic",
        "mcpd-audit",
        "mcpd-files",
        "mcpd-service",
        "mcpd-telemetry",
    ] {
        for dependency in dependencies_of(leaf) {
            assert!(
                !dependency.starts_with("mcpd"),
                "{leaf} depends on {dependency}"
            );
        }
    }
    for (name, forbidden) in [
        ("mcpd-protocol", ["tokio", "tracing", "hyper"].as_slice()),
        ("mcpd-scriptspec", &["tokio", "tracing"]),
        ("mcpd-exec", &["serde_json", "tracing"]),
        ("mcpd-basic", &["tokio", "tracing"]),
        (
            "mcpd-testcase",
            &["mcpd-config", "mcpd-exec", "clap", "anyhow"],
        ),
        ("mcpd-connect", &["mcpd-server", "rmcp", "clap", "anyhow"]),
        ("mcpd-lsp", &["clap", "anyhow"]),
        (
            "mcpd-server",
            &["clap", "anyhow", "annotate-snippets", "rmcp"],
        ),
    ] {
        let dependencies = dependencies_of(name);
        for dependency in forbidden {
            assert!(
                !dependencies.contains(dependency),
                "{name} depends on {dependency}"
            );
        }
    }
}

/// Outcomes cross a network only where a program asks for that.
#[test]
fn executor_serializes_nothing_by_default() {
    let packages = packages();
    let executor = packages
        .iter()
        .find(|package| package["name"] == "mcpd-exec")
        .expect("a package");
    let dependencies = executor["dependencies"].as_array().expect("dependencies");
    let serde = dependencies
        .iter()
        .find(|dependency| dependency["name"] == "serde");
    assert_eq!(serde.expect("a feature")["optional"], true);
    assert!(executor["features"]["default"].is_null());
}

/// The HTTP client that queries issuers comes with the feature `oauth` alone.
#[test]
fn server_has_no_http_client_by_default() {
    let packages = packages();
    let server = packages
        .iter()
        .find(|package| package["name"] == "mcpd-server")
        .expect("a package");
    for dependency in server["dependencies"].as_array().expect("dependencies") {
        let is_client = ["reqwest", "rustls", "ring"]
            .iter()
            .any(|name| dependency["name"] == *name);
        assert!(!is_client || dependency["optional"] == true, "{dependency}");
    }
    let default = server["features"]["default"].as_array().expect("features");
    assert!(!default.contains(&Value::from("oauth")));
}

#[test]
fn crates_contain_no_forbidden_terms() {
    for name in ["mcpd-protocol", "mcpd-scriptspec", "mcpd-basic"] {
        // A template is the text of a program.
        check_absent(
            name,
            &["template.rs"],
            &[
                "std::fs",
                "std::net",
                "std::process",
                "std::thread",
                "std::env",
            ],
        );
    }
    check_absent("mcpd-exec", &[], &["MCPD_"]);
    // The crate knows which file holds whose secrets, and nothing else of such files.
    check_absent("mcpd-exec", &["sandbox/secrets.rs"], &["json", "mcp_"]);
    check_absent(
        "mcpd-server",
        &["transport/http", "fuzzing.rs"],
        &["hyper", "http_body_util"],
    );
    check_absent(
        "mcpd-server",
        &["transport/http/oauth/"],
        &["reqwest", "jsonwebtoken"],
    );
    check_absent("mcpd-server", &[], &["println!", "eprintln!"]);
    check_absent(
        "mcpd-cli",
        &["args.rs", "args/"],
        &[
            "clap::Parser",
            "derive(Args",
            "derive(Parser",
            "derive(Subcommand",
        ],
    );
}

/// Returns the texts between backticks in the last column of each table.
fn last_column(page: &str) -> impl Iterator<Item = &str> {
    page.lines()
        .filter_map(|line| line.strip_suffix(" |")?.rsplit_once(" | "))
        .flat_map(|(_, cell)| cell.split('`').skip(1).step_by(2))
}

#[test]
fn protocol_page_names_every_conversation() {
    let page = fs::read_to_string(root().join("docs/protocol.md")).expect("UTF-8");
    let (page, _) = page
        .split_once("## What does not apply")
        .expect("the part about tests ends");
    let named: Vec<_> = last_column(page)
        .filter(|cell| cell.contains('/') || cell.ends_with(".rs"))
        .collect();
    let server = root().join("crates/mcpd-server");
    for file in &named {
        let places = [server.join("tests"), server.join("src"), root()];
        let exists = places.iter().any(|place| place.join(file).exists());
        assert!(exists, "`{file}` is no test");
    }
    for kind in ["wire", "http"] {
        for topic in fs::read_dir(server.join("tests").join(kind)).expect("conversations") {
            let topic = topic.expect("an entry").file_name();
            let topic = format!("{kind}/{}", topic.to_string_lossy());
            assert!(page.contains(&topic), "nothing is said about {topic}");
        }
    }
}

#[test]
fn files_name_no_path_of_this_machine() {
    let home = std::env::var("HOME").expect("a home");
    let places: Vec<String> = [home, root().to_string_lossy().into_owned()]
        .into_iter()
        .filter(|place| place.matches('/').count() > 1)
        .collect();
    for directory in ["crates", "tests", "docs", "examples"] {
        for file in text_files(&root().join(directory)) {
            let text = fs::read_to_string(&file).unwrap_or_default();
            for place in &places {
                assert!(
                    !text.contains(place.as_str()),
                    "{} names `{place}`",
                    file.display()
                );
            }
        }
    }
}

fn text_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
    {
        if entry.is_dir() {
            files.extend(text_files(&entry));
        } else {
            files.push(entry);
        }
    }
    files
}
