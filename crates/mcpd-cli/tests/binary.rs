//! Existence of the binary. Because of this test `cargo test --workspace` builds it before it runs
//! the tests in `tests`, which exercise it.

use std::process::Command;

#[test]
#[expect(clippy::disallowed_methods, reason = "mcpd is no script")]
fn binary_prints_its_version() {
    let output = Command::new(env!("CARGO_BIN_EXE_mcpd"))
        .arg("--version")
        .output()
        .unwrap();
    let version = concat!("mcpd ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), version);
}

#[test]
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "mcpd is no script")]
fn unprintable_help_is_a_failure() {
    for arguments in [&["--help"][..], &["help", "call"], &["--version"]] {
        let full = std::fs::File::create("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_mcpd"))
            .args(arguments)
            .stdout(full)
            .output()
            .unwrap();
        let remark = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{remark}");
        assert!(remark.contains("write to stdout"), "{remark}");
    }
}
