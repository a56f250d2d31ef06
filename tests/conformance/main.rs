//! The official conformance suite against the built binary, which offers the suite nothing but
//! scripts: one server, and a cluster of a worker and two fronts behind a balancer.

#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Stdio};

use mcpd_tests::{Sandbox, TwoFronts, binary, output};

/// Exit code of `run` if the suite cannot run. The reason is on stderr.
const SKIPPED: i32 = 77;

fn here() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/conformance"))
}

/// Runs the suite against a server of its own, or the one at the first URL. Revisions with sessions
/// are asked at the second one.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "the runner is no script of mcpd")]
fn check(urls: &[&str]) {
    let target = binary().ancestors().nth(2);
    let output = Command::new(here().join("run"))
        .arg(binary())
        .arg(target.expect("target/<profile>/mcpd").join("conformance"))
        .args(urls)
        .stderr(Stdio::inherit())
        .output()
        .expect("the runner starts");
    let report = String::from_utf8_lossy(&output.stdout);
    let unexpected: Vec<_> = report
        .lines()
        .filter(|line| !line.contains(" ok    ") && !line.contains(" known "))
        .collect();
    match output.status.code() {
        Some(0) => {}
        Some(SKIPPED) => assert!(
            std::env::var_os("CI").is_none(),
            "nothing is skipped where the project is checked for everyone"
        ),
        _ => panic!("{}:\n{}", output.status, unexpected.join("\n")),
    }
}

#[test]
fn official_suite_finds_no_fault() {
    check(&[]);
}

#[test]
fn official_suite_finds_no_fault_in_two_fronts() {
    let sandbox = Sandbox::new();
    // Some fixtures change the directory they are served from.
    let mut copy = sandbox.program("cp");
    copy.arg("-R").arg(here().join("scripts")).arg("suite");
    assert!(output(copy, b"").status.success(), "the scripts are there");
    let Some(cluster) = TwoFronts::start(&sandbox, &["suite"], &["--no-auth"]) else {
        return;
    };
    // Revisions with sessions expect what is a front's own, such as the log level: see
    // docs/cluster.md.
    check(&[&cluster.blind.url(), &cluster.balancer.url()]);
    for balancer in [&cluster.blind, &cluster.balancer] {
        let requests = balancer.requests();
        assert!(
            requests.iter().all(|requests| *requests > 50),
            "{requests:?}"
        );
    }
}
