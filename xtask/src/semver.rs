//! Public interfaces of the libraries beside those of the last release, by cargo-semver-checks.

use std::fs;

use anyhow::{Context as _, bail};

use crate::report;

/// Packages without a library.
const UNCHECKED: [&str; 1] = ["mcpd-cli"];

/// Compares every library with the release before, or with another revision.
///
/// # Errors
///
/// Fails if cargo-semver-checks is not installed, or the revision is unknown.
pub(crate) fn run(since: Option<&str>) -> anyhow::Result<bool> {
    let since = match since {
        Some(revision) => revision.to_owned(),
        None => match last_release()? {
            Some(tag) => tag,
            None => {
                report::line(format_args!(
                    "there is no release to compare with (no tag v*); name a revision with --since"
                ));
                return Ok(true);
            }
        },
    };
    let installed = command("cargo")
        .args(["semver-checks", "--version"])
        .output();
    if !installed.is_ok_and(|output| output.status.success()) {
        bail!(
            "find cargo-semver-checks; install it with `cargo install --locked cargo-semver-checks`"
        );
    }
    let mut is_compatible = true;
    for library in libraries()? {
        let mut check = command("cargo");
        check.args([
            "semver-checks",
            "--package",
            &library,
            "--baseline-rev",
            &since,
        ]);
        let status = check.status().context("start cargo-semver-checks")?;
        is_compatible &= status.success();
    }
    Ok(is_compatible)
}

/// Tag of the last release, such as `v0.1.0`.
fn last_release() -> anyhow::Result<Option<String>> {
    let tags = command("git")
        .args(["tag", "--list", "v*", "--sort=-version:refname"])
        .output()
        .context("list the tags")?;
    if !tags.status.success() {
        bail!("list the tags: git failed; run this in a clone");
    }
    let tags = String::from_utf8(tags.stdout).context("list the tags")?;
    Ok(tags.lines().next().map(str::to_owned))
}

/// Names of the packages below `crates`.
fn libraries() -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir("crates").context("read `crates`; run this at the top")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("mcpd-") && !UNCHECKED.contains(&&*name) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

#[expect(clippy::disallowed_methods, reason = "git and cargo are no scripts")]
fn command(program: &str) -> std::process::Command {
    std::process::Command::new(program)
}
