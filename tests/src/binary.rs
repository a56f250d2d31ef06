//! The `mcpd` binary in the build profile of the tests, up to date with the sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// Returns the path of the binary. Builds it first if it is missing or older than the sources;
/// `cargo test --workspace` has built it already.
///
/// # Panics
///
/// Panics if it can't be built.
#[must_use]
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let profile = profile_directory();
        let binary = profile.join("mcpd");
        if modification_time(&binary) < newest(&repository().join("crates")) {
            build(&profile);
        }
        binary
    })
}

/// Returns the directory of this repository.
///
/// # Panics
///
/// Never: the tests are one of its packages.
#[must_use]
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests is a package of the workspace")
}

/// Returns `target/debug` or the like: the parent of the directory with this test binary.
fn profile_directory() -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    test.ancestors()
        .nth(2)
        .expect("cargo puts tests into target/<profile>/deps")
        .to_owned()
}

/// Builds the binary. Cargo's lock makes concurrent tests build one at a time.
#[expect(clippy::disallowed_methods, reason = "cargo is no script")]
fn build(profile: &Path) {
    let name = match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--package",
            "mcpd-cli",
            "--bin",
            "mcpd",
            "--profile",
            name,
        ])
        .arg("--target-dir")
        .arg(
            profile
                .parent()
                .expect("a profile is below the target directory"),
        )
        .current_dir(repository())
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "cargo builds mcpd"
    );
}

/// Returns the time of the latest change to a source file.
fn newest(directory: &Path) -> Option<SystemTime> {
    let entries = fs::read_dir(directory).expect("the sources are there");
    let youngest = entries.filter_map(|entry| {
        let entry = entry.expect("the sources can be read");
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory {
            newest(&entry.path())
        } else {
            source(&entry.path())
        }
    });
    youngest.max()
}

fn source(file: &Path) -> Option<SystemTime> {
    let is_below = |name| file.components().any(|part| part.as_os_str() == name);
    let is_code = file.extension().is_some_and(|extension| extension == "rs") && is_below("src");
    // The page of the console is part of the binary.
    if is_code || is_below("assets") {
        modification_time(file)
    } else {
        None
    }
}

fn modification_time(file: &Path) -> Option<SystemTime> {
    file.metadata()
        .and_then(|metadata| metadata.modified())
        .ok()
}
