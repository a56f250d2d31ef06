//! `mcpd basic`: runs a BASIC program as a script.

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
    assert_snapshot!(check(ORDER, &[], r#"{"customer": "Grace", "amount": 5}"#), @"
    exit code: 0
    ----- stdout -----
    Order of Grace
    Each pays 2.5
    ");
}

#[test]
fn fault_is_logged_as_an_error_with_its_line() {
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
    ERROR order.bas:3:1: unknown statement `tlak`
    ERROR | TLAK "b"
    ERROR | ^^^^
    ERROR help: did you mean `TALK`?
    "#);
}

#[test]
fn invalid_parameters_are_a_usage_error() {
    assert_snapshot!(check(ORDER, &[], "[1, 2]"), @"
    exit code: 2
    ----- stderr -----
    ERROR stdin is not a JSON object: invalid type: sequence, expected a map at line 1 column 0
    ");
    assert_snapshot!(check(ORDER, &[], r#"{"customer": "Grace", "amount": 1e300}"#), @"
    exit code: 2
    ----- stderr -----
    ERROR parameter `amount`: a number may have at most 28 digits
    ");
    assert_snapshot!(check(ORDER, &[], r#"{"Amount": 5}"#), @"
    exit code: 2
    ----- stderr -----
    ERROR Invalid arguments: option `customer`: expected a string, got nothing
    ERROR option `amount`: expected a number, got nothing
    ERROR option `Amount`: expected a declared option such as `amount`, got an unknown name
    ");
}

/// Returns the code blocks of the page about BASIC, each with its language.
fn blocks() -> Vec<(String, String)> {
    let page = fs::read_to_string(repository().join("docs/basic.md")).unwrap();
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let code = lines.by_ref().take_while(|line| *line != "```");
            let code = code.map(|line| format!("{line}\n")).collect();
            blocks.push((language.to_owned(), code));
        }
    }
    blocks
}

/// Returns the transcript of a program that gets its parameters from a shell command.
fn transcript(program: &str, command: &str) -> String {
    let (json, file) = match command.trim_end().split_once(" | mcpd basic ") {
        Some((echo, file)) => (echo.trim_start_matches("echo ").trim_matches('\''), file),
        None => ("", "example.bas"),
    };
    let sandbox = Sandbox::new();
    fs::write(sandbox.path().join(file), program).unwrap();
    let seen = sandbox.run_with_stdin(&["basic", file], json);
    let lines = seen.lines().skip(1);
    let printed = lines.filter(|line| !line.starts_with("----- "));
    printed.map(|line| format!("{line}\n")).collect()
}

#[test]
fn examples_of_the_page_print_their_output() {
    let (mut program, mut command) = (String::new(), String::new());
    let mut examples = 0;
    for (language, text) in blocks() {
        match language.as_str() {
            "basic" => (program, command) = (text, String::new()),
            "sh" => command = text,
            _ => {
                assert_eq!(transcript(&program, &command), text, "{program}");
                examples += 1;
            }
        }
    }
    assert!(examples >= 9, "only {examples} examples were found");
}

const SIZES: &str = r#"DESCRIPTION "Says a size"
PARAM size AS string ENUM ["S", "M"] DEFAULT "M" DESCRIPTION "Size"
PARAM count AS integer MIN 1 OPTIONAL DESCRIPTION "How many"
TALK size, ISEMPTY(count)
"#;

#[test]
fn program_is_served_as_a_tool() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path().join("scripts/sizes.bas"), SIZES).unwrap();
    for (parameters, answer) in [
        ("{}", "M true\n"),
        (r#"{"size": "S", "count": "3"}"#, "S false\n"),
    ] {
        let called = sandbox.stdout(&["call", "scripts", "sizes", "--arguments", parameters]);
        assert_eq!(String::from_utf8(called).unwrap(), answer);
        let run = sandbox.run_with_stdin(&["basic", "scripts/sizes.bas"], parameters);
        let expected = format!("exit code: 0\n----- stdout -----\n{answer}");
        assert_eq!(run.trim_end(), expected.trim_end());
    }
    assert_snapshot!(check(SIZES, &[], r#"{"size": "XL", "count": 0}"#), @r#"
    exit code: 2
    ----- stderr -----
    ERROR Invalid arguments: option `size`: expected one of "S", "M", got the string "XL"
    ERROR option `count`: expected an integer of at least 1, got the number 0
    "#);
    let faulty = SIZES.replace("integer", "intger");
    assert_snapshot!(check(&faulty, &[], "{}"), @r#"
    exit code: 1
    ----- stderr -----
    ERROR order.bas:3:16: unknown type `intger`
    ERROR | PARAM count AS intger MIN 1 OPTIONAL DESCRIPTION "How many"
    ERROR |                ^^^^^^
    ERROR help: did you mean `integer`?
    "#);
}

#[test]
fn faults_are_reported_like_those_of_check() {
    let program = "PARAM 1st AS string\nDESCRIPTION \"  \"\nTLAK 1\n";
    assert_snapshot!(check(program, &[], "{}"), @r#"
    exit code: 1
    ----- stderr -----
    ERROR order.bas:1:7: expected the name of a parameter, found the number 1
    ERROR | PARAM 1st AS string
    ERROR |       ^
    ERROR order.bas:2:13: the description is empty
    ERROR | DESCRIPTION "  "
    ERROR |             ^^^^
    ERROR order.bas:3:1: unknown statement `tlak`
    ERROR | TLAK 1
    ERROR | ^^^^
    ERROR help: did you mean `TALK`?
    "#);
}

#[test]
fn sidecar_declares_the_parameters() {
    let sandbox = Sandbox::new();
    let sidecar = r#"description = "Greets"
[options.who]
description = "Who"
default_value = "world"
"#;
    let path = sandbox.path().join("scripts/greet.bas");
    let program = "PARAM n AS number LIKE 5 DESCRIPTION \"Is none\"\nTALK \"Hello, \" + who\n";
    fs::write(&path, program).unwrap();
    fs::write(path.with_extension("bas.mcpd.toml"), sidecar).unwrap();
    assert_snapshot!(sandbox.run_with_stdin(&["basic", "scripts/greet.bas"], ""), @"
    exit code: 0
    ----- stdout -----
    Hello, world
    ");
    assert_snapshot!(sandbox.run(&["call", "scripts", "greet.bas"]), @"
    exit code: 0
    ----- stdout -----
    Hello, world
    ");
    fs::write(&path, "TALK \"Hello, \" +\n").unwrap();
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @r#"
    exit code: 1
    ----- stdout -----
    info[untyped-option]: option `who` has no type
     --> scripts/greet.bas.mcpd.toml:2:10
      |
    2 | [options.who]
      |          ^^^
      |
      = help: add a type, such as `"value_type": "string"`

    error[source-syntax]: line 1 of the program: expected a value, but the line ends
    --> scripts/greet.bas.mcpd.toml

    1 error, 1 remark in 1 script
    "#);
}

#[test]
fn a_program_with_faults_is_not_served() {
    let sandbox = Sandbox::new();
    let program = "DESCRIPTION \"Loops\"\nPARAM n AS intger\n  WHILE n > 0\n    TLAK n\n";
    fs::write(sandbox.path().join("scripts/loop.bas"), program).unwrap();
    let scriptlets = "# More\n\n## Shout\n\n```bas\nDESCRIPTION \"Shouts\"\nSHOUT \"a\"\n```\n";
    fs::create_dir(sandbox.path().join("scripts/scriptlets")).unwrap();
    fs::write(
        sandbox.path().join("scripts/scriptlets/more.md"),
        scriptlets,
    )
    .unwrap();
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @r#"
    exit code: 1
    ----- stdout -----
    error[unknown-value-type]: unknown type `intger`
     --> scripts/loop.bas:2:12
      |
    2 | PARAM n AS intger
      |            ^^^^^^
      |
      = help: did you mean `integer`?

    error[source-syntax]: this WHILE has no WEND
     --> scripts/loop.bas:3:3
      |
    3 |   WHILE n > 0
      |   ^^^^^

    error[source-syntax]: unknown statement `tlak`
     --> scripts/loop.bas:4:5
      |
    4 |     TLAK n
      |     ^^^^
      |
      = help: did you mean `TALK`?

    warning[missing-description]: the script has no description
     --> scripts/scriptlets/more.md:3:1
      |
    3 | ## Shout
      | ^^^^^^^^
      |
      = help: describe in a sentence or two what the script does and when to use it

    error[source-syntax]: unknown statement `shout`
     --> scripts/scriptlets/more.md:7:1
      |
    7 | SHOUT "a"
      | ^^^^^
      |
      = help: write `shout = …` to assign to it, `shout(…)` to call it

    4 errors, 1 warning in 2 scripts
    "#);
    assert_snapshot!(sandbox.run(&["list", "scripts"]), @"
    exit code: 0
    ----- stderr -----
    the catalog is incomplete: 2 faulty scripts; run `mcpd check scripts` for details
    ");
}

/// The configured interpreter decides what is a valid program.
#[test]
fn program_for_another_interpreter_is_not_checked() {
    let sandbox = Sandbox::new();
    let at = |path: &str| sandbox.path().join(path);
    fs::write(at("mcpd.toml"), "[interpreter]\nbas = [\"cat\"]\n").unwrap();
    let program = "DESCRIPTION \"Loops\"\nWHILE n > 0\nTLAK n\n";
    fs::write(at("scripts/loop.bas"), program).unwrap();
    assert_snapshot!(sandbox.run(&["check", "scripts"]), @"
    exit code: 0
    ----- stdout -----
    no faults in 1 script
    ");
}

#[test]
fn operations_are_limited() {
    let endless = "WHILE TRUE\nWEND\n";
    assert_snapshot!(check(endless, &["--max-operations", "1000"], ""), @"
    exit code: 1
    ----- stderr -----
    ERROR order.bas:1:1: the program exceeded its limit of 1000 operations
    ERROR | WHILE TRUE
    ERROR | ^^^^^^^^^^
    ERROR help: check for an endless loop, or raise the limit with --max-operations
    ");
}

#[test]
fn example_program_answers() {
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
fn output_is_written_line_by_line_and_may_stay_unread() {
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

#[test]
fn numbers_keep_all_their_digits() {
    let sandbox = Sandbox::new();
    let program = "PARAM n AS number DESCRIPTION \"A number\" LIKE 1\nTALK n\n";
    fs::write(sandbox.path().join("scripts/n.bas"), program).unwrap();
    for number in ["0.1234567890123456789", "12345678901234567890123"] {
        let argument = format!("n={number}");
        let called = sandbox.stdout(&["call", "scripts", "n", &argument]);
        assert_eq!(String::from_utf8(called).unwrap(), format!("{number}\n"));
        let parameters = format!(r#"{{"n": {number}}}"#);
        let run = sandbox.run_with_stdin(&["basic", "scripts/n.bas"], &parameters);
        assert!(run.ends_with(&format!("{number}\n")), "{run}");
    }
}

#[test]
fn compile_prints_the_definition_and_warns_of_faults_in_the_body() {
    let sandbox = Sandbox::new();
    let program = format!("{ORDER}TLAK \"Placed\"\nIF amount > 5 THEN\n");
    fs::write(sandbox.path().join("order.bas"), program).unwrap();
    assert_snapshot!(sandbox.run(&["compile", "order.bas"]), @r#"
    exit code: 0
    ----- stdout -----
    {
      "name": "order",
      "description": "Takes an order",
      "input_schema": {
        "type": "object",
        "properties": {
          "customer": {
            "type": "string",
            "description": "Who orders",
            "example": "Ada"
          },
          "amount": {
            "type": "number",
            "description": "How many",
            "example": 3
          }
        },
        "required": [
          "customer",
          "amount"
        ]
      }
    }
    ----- stderr -----
    warning[source-syntax]: unknown statement `tlak`
     --> order.bas:8:1
      |
    8 | TLAK "Placed"
      | ^^^^
      |
      = help: did you mean `TALK`?

    warning[source-syntax]: this IF has no END IF
     --> order.bas:9:1
      |
    9 | IF amount > 5 THEN
      | ^^

    2 warnings in 1 script
    "#);
}
