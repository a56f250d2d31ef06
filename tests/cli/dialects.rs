//! Files that describe themselves without being run, side by side with scripts that are asked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;
use mcpd_tests::Sandbox;

/// Were it run to be found, it would leave a file behind.
const ORDER: &str = r#"#!/bin/sh
: DESCRIPTION
DESCRIPTION() { :; }
PARAM() { :; }
DESCRIPTION "Places an order"
PARAM customer AS string LIKE "Ada" DESCRIPTION "Who orders"
PARAM amount AS number LIKE 99.5 DESCRIPTION "How much"
echo ran >> ran
echo "$MCPD_OPT_customer orders for $MCPD_OPT_amount"
"#;

/// What runs BASIC in these tests: it shows what it is given.
const INTERPRETER: &str = "#!/bin/sh\necho \"$1 runs ${2##*/} in $(pwd -P | sed s,.*/,,): $(cat)\"\n";

fn write(sandbox: &Sandbox, path: &str, text: &str) {
    fs::write(sandbox.path().join(path), text).unwrap();
}

/// A sandbox where BASIC is run by a program of its own.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    write(&sandbox, "interpreter", INTERPRETER);
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(sandbox.path().join("interpreter"), executable).unwrap();
    write(
        &sandbox,
        "mcpd.toml",
        "[interpreter]\nbas = [\"./interpreter\", \"basic\"]\n",
    );
    sandbox
}

#[test]
fn what_describes_itself_is_not_run_to_be_found() {
    let sandbox = sandbox().with_script("order.bas", ORDER);
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"");
    assert_snapshot!(sandbox.run(&["describe", "scripts", "order"]), @"");
    assert!(!sandbox.path().join("scripts/ran").exists());
    assert_snapshot!(sandbox.run(&["call", "scripts", "order", "customer=Ada", "amount=5"]), @"");
    assert!(sandbox.path().join("scripts/ran").exists());
}

#[test]
fn what_is_no_program_is_run_by_its_interpreter() {
    let sandbox = sandbox().with_script(
        "ask.sh",
        "if [ \"$1\" = --help ]; then echo '{\"description\": \"Has no first line\"}'; exit; fi\necho \"called $#\"\n",
    );
    let text = "DESCRIPTION \"Places an order\"\nPARAM amount AS number LIKE 1 DESCRIPTION \"How much\"\n";
    fs::create_dir(sandbox.path().join("scripts/shop")).unwrap();
    write(&sandbox, "scripts/shop/order.bas", text);
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"");
    assert_snapshot!(sandbox.run(&["call", "scripts", "ask.sh"]), @"");
    assert_snapshot!(sandbox.run(&["call", "scripts", "shop/order", "amount=5"]), @"");
    // Where the temporary directory it is in is not the one of the script.
    assert_snapshot!(
        sandbox.run(&["call", "scripts", "shop/order", "amount=5", "--sandbox", "guarded"]),
        @""
    );
}

#[test]
fn a_missing_interpreter_is_named_and_the_others_are_served() {
    let sandbox = Sandbox::new().with_script("hello", super::HELLO);
    write(&sandbox, "mcpd.toml", "[interpreter]\nbas = [\"no-such-basic\"]\n");
    write(&sandbox, "scripts/order.bas", "DESCRIPTION \"Places an order\"\n");
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"");
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @"");
    let report = String::from_utf8(sandbox.stdout(&["doctor"])).unwrap();
    assert!(report.contains("there is no `no-such-basic`"), "{report}");
}

#[test]
fn a_single_file_is_checked() {
    let sandbox = sandbox();
    write(
        &sandbox,
        "scripts/order.bas",
        "DESCRIPTION \"Places an order\"\nPARAM amount AS nmber DESCRIPTION \"How much\"\n",
    );
    assert_snapshot!(sandbox.run(&["check", "scripts/order.bas"]), @"");
}

#[test]
fn a_file_that_is_too_large_to_describe_itself_is_reported() {
    let sandbox = sandbox();
    let text = format!("DESCRIPTION \"Too much\"\n{}", "REM more\n".repeat(150_000));
    write(&sandbox, "scripts/large.bas", &text);
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @"");
}

#[test]
fn the_configuration_of_interpreters_is_checked() {
    let sandbox = sandbox();
    write(&sandbox, "mcpd.toml", "[interpreter]\n\".bas\" = [\"basic\"]\n");
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"");
    write(&sandbox, "mcpd.toml", "[interpreter]\nbas = []\n");
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"");
}
