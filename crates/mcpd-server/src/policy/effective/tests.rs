//! Wishes of scripts within the operator's policy, on real directories because of links.

use std::fs;

use mcpd_exec::Network;
use mcpd_scriptspec::{HelpOutput, parse};

use super::*;
use crate::policy::{SandboxProfile, ToolPolicy};

/// Returns the policy of a script in `directory` with this metadata.
fn effective_policy(policy: &Policy, directory: &Path, metadata: &str) -> EffectivePolicy {
    let help = HelpOutput {
        stdout: metadata.as_bytes(),
        stderr: b"",
    };
    let spec = parse(help).spec.unwrap();
    policy.effective_policy(&"x".parse().unwrap(), directory, Some(&spec))
}

fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    fs::create_dir(path.join("data")).unwrap();
    (directory, path)
}

#[test]
fn script_may_request_confinement() {
    let (_directory, path) = directory();
    let wish = r#"{"description": "x", "sandbox": {"write": ["data", "new/file", "../up"], "network": "off"}}"#;
    let sandbox = effective_policy(&Policy::default(), &path, wish).sandbox;
    assert_eq!(sandbox.level, Level::Guarded);
    assert_eq!(sandbox.network, Network::Off);
    let up = path.parent().unwrap().join("up");
    assert_eq!(
        sandbox.write,
        [path.join("data"), path.join("new/file"), up]
    );
}

#[test]
#[cfg(unix)]
fn script_may_write_only_where_the_operator_allows() {
    let (_directory, path) = directory();
    std::os::unix::fs::symlink("/etc", path.join("data/link")).unwrap();
    fs::create_dir(path.join("data/key")).unwrap();
    std::os::unix::fs::symlink(path.join("data/key"), path.join("hidden")).unwrap();
    let floor = Sandbox::guarded()
        .write(path.join("data"))
        .hide(path.join("hidden"));
    let floor = SandboxProfile::new(floor);
    let policy = Policy::default().floor(floor);
    let wish = r#"{"description": "x", "sandbox": {"write": ["data/mine", "data/../other", "data/link", "data/key", "/etc"]}}"#;
    let sandbox = effective_policy(&policy, &path, wish).sandbox;
    assert_eq!(sandbox.write, [path.join("data/mine")]);
    // Another script may put a link there.
    assert!(sandbox.resolved);
}

#[test]
fn operator_overrides_the_script() {
    let (_directory, path) = directory();
    let said = r#"{"description": "x", "timeout": 5, "concurrency": 1}"#;
    let own = effective_policy(&Policy::default(), &path, said);
    assert_eq!(own.limits.wall.as_secs(), 5);
    let rule = ToolPolicy::new("x")
        .unwrap()
        .timeout(Duration::from_secs(7));
    let ruled = effective_policy(&Policy::default().tool(rule), &path, said);
    assert_eq!(ruled.limits.wall.as_secs(), 7);
}

#[test]
fn undescribed_script_receives_no_secrets() {
    let rule = ToolPolicy::new("x").unwrap().variable("KEY", "s3cret-key");
    let policy = Policy::default().tool(rule);
    let effective = policy.effective_policy(&"x".parse().unwrap(), Path::new("/nowhere"), None);
    assert_eq!(effective.variables().count(), 0);
}

#[test]
fn files_unreadable_for_the_script_are_not_read_on_its_behalf() {
    let (_directory, path) = directory();
    let free = effective_policy(&Policy::default(), &path, r#"{"description": "x"}"#);
    assert!(free.is_visible(Path::new("/etc/passwd"), &path));
    let sandbox = Sandbox::guarded().write("/srv").hide(path.join("data"));
    let policy = Policy::default().floor(SandboxProfile::new(sandbox));
    let confined = effective_policy(&policy, &path, r#"{"description": "x"}"#);
    assert!(confined.is_visible(&path.join("chart.png"), &path));
    assert!(confined.is_visible(Path::new("/srv/chart.png"), &path));
    assert!(!confined.is_visible(Path::new("/etc/passwd"), &path));
    assert!(!confined.is_visible(&path.join("data/key"), &path));
}
