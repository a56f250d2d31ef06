//! Hook for commit subjects: accepts `area: imperative`, and explains each refusal.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::root;

/// Runs the hook on a message. Returns its complaint, or nothing if it accepts the message.
#[expect(clippy::disallowed_methods, reason = "the hook is no script of a tool")]
fn run_hook(message: &str) -> Option<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("COMMIT_EDITMSG");
    fs::write(&file, message).expect("a file");
    let hook = root().join(".githooks/commit-msg");
    let output = Command::new("sh").arg(hook).arg(file).output();
    let output = output.expect("a shell");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.success(), complaint.is_empty(), "{complaint}");
    (!complaint.is_empty()).then_some(complaint)
}

#[test]
fn commit_hook_accepts_area_and_imperative() {
    for message in [
        "catalog: drop `--help` answers requested before a reload",
        "cli(check): report duplicate options\n\nA longer line of the body than any subject may be, which says why.",
        "tests, upstream: wrap the last long comment lines",
        "# a comment of the editor\n\ndocs: add a page on troubleshooting",
        "mcpd-exec: process exit codes over 128 as signals",
        "Merge branch 'main' of an elsewhere",
        "Revert \"docs: add a page on troubleshooting\"",
    ] {
        assert_eq!(run_hook(message), None, "{message}");
    }
}

#[test]
fn commit_hook_refuses_other_subjects() {
    for (message, reason) in [
        ("Hear nobody after a reload", "must begin with an area"),
        ("catalog:drop answers", "must begin with an area"),
        ("Catalog: drop answers", "must begin with an area"),
        ("", "must begin with an area"),
        ("http: Send the header", "must go on in lower case"),
        ("http: send the header.", "must not end with a full stop"),
        ("http: added a header", "must have an imperative verb"),
        ("http: sends the header", "must have an imperative verb"),
        ("http: sending the header", "must have an imperative verb"),
        (
            "http: send a header that says when to try again with every status 429",
            "must have at most 65 characters",
        ),
    ] {
        let complaint = run_hook(message).unwrap_or_default();
        assert!(complaint.contains(reason), "{message}: {complaint}");
    }
}

#[test]
fn commit_hook_is_executable() {
    let hook = fs::metadata(root().join(".githooks/commit-msg")).expect("the hook");
    assert_eq!(hook.permissions().mode() & 0o111, 0o111);
}
