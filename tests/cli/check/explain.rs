//! `mcpd check --explain`.

use insta::assert_snapshot;
use mcpd_tests::Sandbox;

#[test]
fn a_rule_is_explained_with_examples() {
    assert_snapshot!(Sandbox::new().run(&["check", "--explain", "unknown-value-type"]), @r#"
    exit code: 0
    ----- stdout -----
    error[unknown-value-type]

    Values of an unknown type cannot be checked, and a model would learn nothing about them.

    Instead of

        echo '{"description": "Counts"}'
        echo '{"step": {"required": true, "value_type": "int"}}' >&2

    write

        echo '{"description": "Counts"}'
        echo '{"step": {"required": true, "value_type": "integer"}}' >&2
    "#);
}

#[test]
fn rules_are_listed_without_a_code() {
    let list = Sandbox::new().run(&["check", "--explain"]);
    assert!(list.starts_with("exit code: 0\n"), "{list}");
    for code in [
        "help-failed",
        "unknown-field",
        "unusable-file",
        "name-conflict",
    ] {
        let mut lines = list.lines();
        assert!(
            lines.any(|line| line.starts_with(&format!("{code} "))),
            "{list}"
        );
    }
}

#[test]
fn unknown_rule_gets_a_suggestion() {
    assert_snapshot!(Sandbox::new().run(&["check", "--explain", "unknown-feild"]), @"
    exit code: 1
    ----- stderr -----
    mcpd: error: failed to explain a rule: no rule has the code `unknown-feild`; did you mean `unknown-field`?
    ");
}

#[test]
fn explain_checks_nothing() {
    let refused = Sandbox::new().run(&["check", "scripts", "--explain", "unknown-field"]);
    assert!(refused.starts_with("exit code: 1\n"), "{refused}");
    let refused = Sandbox::new().run(&["check"]);
    assert!(refused.starts_with("exit code: 1\n"), "{refused}");
}
