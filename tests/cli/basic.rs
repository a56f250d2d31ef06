//! `mcpd basic`: a BASIC program as the script that it is.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;
use mcpd_tests::{Sandbox, repository};

const ORDER: &str = r#"' Takes an order
PARAM customer AS string LIKE "Ada" DESCRIPTION "Who orders"
PARAM amount AS number LIKE 3 DESCRIPTION "How many"
DESCRIPTION "Takes an order"
TALK "Order of " + customer
IF amount <= 0 THEN ERROR "the amount must be positive"
TALK "Each pays", 10 / (amount - 1)
"#;

#[track_caller]
fn check(program: &str, arguments: &[&str], stdin: &str) -> String {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path().join("order.bas"), program).unwrap();
    let arguments = [&["basic", "order.bas"], arguments].concat();
    sandbox.run_with_stdin(&arguments, stdin)
}

#[test]
fn parameters_come_from_stdin_and_the_answer_goes_to_stdout() {
    assert_snapshot!(check(ORDER, &[], r#"{"customer": "Grace", "Amount": 5}"#), @"
    exit code: 0
    ----- stdout -----
    Order of Grace
    Each pays 2.5
    ");
}

#[test]
fn a_fault_has_its_line_and_the_level_of_an_error() {
    assert_snapshot!(check(ORDER, &[], r#"{"customer": "Grace", "amount": 1}"#), @r#"
    exit code: 1
    ----- stdout -----
    Order of Grace
    ----- stderr -----
    ERROR order.bas:7:19: division by zero
    ERROR | TALK "Each pays", 10 / (amount - 1)
    ERROR |                   ^^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn a_faulty_program_does_not_run() {
    assert_snapshot!(check("TALK \"a\"\nIF x THEN\nTLAK \"b\"\n", &[], ""), @r#"
    exit code: 1
    ----- stderr -----
    ERROR order.bas:2:1: this IF has no END IF
    ERROR | IF x THEN
    ERROR | ^^
    ERROR order.bas:3:1: `tlak` is no statement
    ERROR | TLAK "b"
    ERROR | ^^^^
    ERROR help: did you mean `TALK`?
    "#);
}

#[test]
fn parameters_that_make_no_sense_are_a_bad_request() {
    assert_snapshot!(check(ORDER, &[], "[1, 2]"), @"
    exit code: 2
    ----- stderr -----
    ERROR stdin is no JSON object: invalid type: sequence, expected a map at line 1 column 0
    ");
    assert_snapshot!(check(ORDER, &[], r#"{"amount": 1e300}"#), @"
    exit code: 2
    ----- stderr -----
    ERROR parameter `amount`: a number must have no more than 28 digits
    ");
}

#[test]
fn operations_are_limited() {
    let endless = "WHILE TRUE\nWEND\n";
    assert_snapshot!(check(endless, &["--max-operations", "1000"], ""), @"
    exit code: 1
    ----- stderr -----
    ERROR order.bas:1:1: the program has used up its 1000 operations
    ERROR | WHILE TRUE
    ERROR | ^^^^^^^^^^
    ERROR help: look for a loop that never ends, or allow more with --max-operations
    ");
}

#[test]
fn the_example_answers() {
    let example = repository().join("examples/scripts/shop/order.bas");
    let order = r#"{"customer": "Grace", "items": ["pen", "paper", "ink"], "day": "2026-02-27"}"#;
    assert_snapshot!(check(&fs::read_to_string(example).unwrap(), &[], order), @"
    exit code: 0
    ----- stdout -----
    Order of Grace
    - pen: 2.50
    - paper: 12.00
    - ink: 7.25
    Shipping: 0.00
    To pay: 21.75
    Arrives on 2026-03-04
    ");
}

#[test]
fn a_line_is_there_before_the_program_has_ended_and_nobody_need_read_on() {
    let sandbox = Sandbox::new();
    let endless = "TALK \"begins\"\nWHILE TRUE\nTALK \"goes on\"\nWEND\n";
    fs::write(sandbox.path().join("endless.bas"), endless).unwrap();
    let mut command = sandbox.command(&["basic", "endless.bas", "--max-operations", "1000000000"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "begins\n");
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
