//! Output of the linter for a misspelt field.

#![expect(
    clippy::disallowed_methods,
    reason = "the program is started as a user does"
)]

use std::process::Command;

#[test]
fn misspelt_field_is_shown_with_its_place() {
    let directory = env!("CARGO_TARGET_TMPDIR");
    let file = format!("{directory}/hello.sh");
    let text = "# /// mcpd\n# titel = \"Hello\"\n# description = \"Says it\"\n# ///\n";
    std::fs::write(&file, text).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_linter"))
        .arg(&file)
        .output()
        .expect("the linter runs");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}");
    for expected in ["unknown-field", "hello.sh:2:3", "did you mean `title`?"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}
