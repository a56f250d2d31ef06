//! Wishes of scripts within the operator's policy, on real directories because of links.

use std::fs;

use mcpd_scriptspec::{HelpOutput, parse};

use super::*;
use crate::policy::Rule;

/// Returns the policy of a script in `directory` with this metadata.
fn terms(policy: &Policy, directory: &Path, metadata: &str) -> Terms {
    let help = HelpOutput {
        stdout: metadata.as_bytes(),
        stderr: b"",
    };
    let spec = parse(help).spec.unwrap();
    policy.terms(&"x".parse().unwrap(), directory, Some(&spec))
}

fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    fs::create_dir(path.join("data")).unwrap();
    (directory, path)
}

#[test]
fn a_script_may_ask_to_be_confined() {
    let (_directory, path) = directory();
    let wish = r#"{"description": "x", "sandbox": {"write": ["data", "new/file", "../up"], "network": "off"}}"#;
    let sandbox = terms(&Policy::default(), &path, wish).sandbox;
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
fn a_script_may_write_no_more_than_its_operator_allows() {
    let (_directory, path) = directory();
    std::os::unix::fs::symlink("/etc", path.join("data/link")).unwrap();
    fs::create_dir(path.join("data/key")).unwrap();
    std::os::unix::fs::symlink(path.join("data/key"), path.join("hidden")).unwrap();
    let floor = Sandbox::guarded()
        .write(path.join("data"))
        .hide(path.join("hidden"));
    let floor = Profile::new(floor);
    let policy = Policy::default().floor(floor);
    let wish = r#"{"description": "x", "sandbox": {"write": ["data/mine", "data/../other", "data/link", "data/key", "/etc"]}}"#;
    let sandbox = terms(&policy, &path, wish).sandbox;
    assert_eq!(sandbox.write, [path.join("data/mine")]);
    // Another script may put a link there.
    assert!(sandbox.resolved);
}

#[test]
fn the_word_of_the_operator_goes_before_that_of_the_script() {
    let (_directory, path) = directory();
    let said = r#"{"description": "x", "timeout": 5, "concurrency": 1}"#;
    let own = terms(&Policy::default(), &path, said);
    assert_eq!(own.limits.wall.as_secs(), 5);
    let rule = Rule::new("x").unwrap().timeout(Duration::from_secs(7));
    let ruled = terms(&Policy::default().rule(rule), &path, said);
    assert_eq!(ruled.limits.wall.as_secs(), 7);
}

#[test]
fn before_a_script_has_described_itself_it_has_no_secrets() {
    let rule = Rule::new("x").unwrap().variable("KEY", "s3cret-key");
    let policy = Policy::default().rule(rule);
    let terms = policy.terms(&"x".parse().unwrap(), Path::new("/nowhere"), None);
    assert_eq!(terms.variables().count(), 0);
}

#[test]
fn nothing_is_read_for_a_confined_script_that_it_may_not_read_itself() {
    let (_directory, path) = directory();
    let free = terms(&Policy::default(), &path, r#"{"description": "x"}"#);
    assert!(free.may_be_shown(Path::new("/etc/passwd"), &path));
    let sandbox = Sandbox::guarded().write("/srv").hide(path.join("data"));
    let policy = Policy::default().floor(Profile::new(sandbox));
    let confined = terms(&policy, &path, r#"{"description": "x"}"#);
    assert!(confined.may_be_shown(&path.join("chart.png"), &path));
    assert!(confined.may_be_shown(Path::new("/srv/chart.png"), &path));
    assert!(!confined.may_be_shown(Path::new("/etc/passwd"), &path));
    assert!(!confined.may_be_shown(&path.join("data/key"), &path));
}
