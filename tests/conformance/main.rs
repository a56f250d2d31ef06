//! The official conformance suite against the built binary, which offers the suite nothing but
//! scripts.

#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Stdio};

use mcpd_tests::binary;

/// Exit code of `run` if the suite cannot run. The reason is on stderr.
const SKIPPED: i32 = 77;

#[test]
#[expect(clippy::disallowed_methods, reason = "the runner is no script of mcpd")]
fn official_suite_finds_no_fault() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance");
    let target = binary().ancestors().nth(2);
    let output = Command::new(here.join("run"))
        .arg(binary())
        .arg(target.expect("target/<profile>/mcpd").join("conformance"))
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
