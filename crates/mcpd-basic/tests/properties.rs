//! Properties of every text: it compiles or is refused, and a compiled one runs or fails, without
//! a panic.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use mcpd_basic::{Limits, RunError, compile};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, proptest};
use proptest::sample::select;

/// Words of generated programs, chosen so that some of them are valid.
const WORDS: &[&str] = &[
    "TALK",
    "PRINT",
    "IF",
    "THEN",
    "ELSE",
    "ELSEIF",
    "END",
    "END IF",
    "FOR",
    "EACH",
    "IN",
    "TO",
    "STEP",
    "NEXT",
    "WHILE",
    "WEND",
    "EXIT",
    "FUNCTION",
    "SUB",
    "END FUNCTION",
    "END SUB",
    "RETURN",
    "PUSH",
    "ERROR",
    "LET",
    "SET",
    "PARAM",
    "DESCRIPTION",
    "REM",
    "AND",
    "OR",
    "NOT",
    "MOD",
    "TRUE",
    "FALSE",
    "NOTHING",
    "x",
    "y",
    "f",
    "f(x)",
    "=",
    "<",
    "<>",
    "+",
    "-",
    "*",
    "/",
    "^",
    "&",
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    ".",
    "\"a\"",
    "\"",
    "'",
    "#",
    "0",
    "1",
    "2.5",
    "0.0000000000000000000000000001",
    "79228162514264337593543950335",
    "[1, \"b\"]",
    "DATE(\"2026-01-31\")",
    "LEN(",
    "MID(",
    "REPLACE(",
    "SPLIT(",
    "JOIN(",
    "ROUND(",
    "FORMAT(",
    "SQRT(",
    "DATEADD(",
    "DATEDIFF(",
    "VAL(",
    "STR(",
    "APPEND(",
    "CHR(",
    "MIN(",
    "\"day\"",
    "é",
    "\t",
    "\r",
    "\n",
    "\n",
    "\n",
    "\n",
];

#[track_caller]
fn check(source: &str) {
    match compile(source) {
        Ok(program) => {
            let mut limits = Limits::default();
            limits.operations = 10_000;
            let parameters = serde_json::from_str(r#"{"x": {"a": [1, "two"]}, "y": 3}"#).unwrap();
            let ended = program.run(&parameters, &mut Vec::new(), limits);
            if let Err(RunError::Fault(fault)) = ended {
                check_fault(&fault, source);
            }
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            assert!(faults.is_sorted_by_key(|fault| fault.line));
            for fault in faults {
                check_fault(&fault, source);
            }
        }
    }
}

#[track_caller]
fn check_fault(fault: &mcpd_basic::Fault, source: &str) {
    let lines: Vec<&str> = source.split('\n').collect();
    let line = lines[fault.line - 1];
    assert!(fault.column <= line.chars().count() + 1, "{fault:?}");
    assert!(fault.report("f").starts_with("f:"));
}

const VALUES: &[&str] = &[
    "x",
    "y",
    "1",
    "-2",
    "0.5",
    "0",
    "\"\"",
    "\"größe\"",
    "TRUE",
    "NOTHING",
    "[]",
    "[3, [4]]",
    "x.a",
    "x.a[0]",
    "79228162514264337593543950335",
    "0.0000000000000000000000000001",
    "DATE(\"2026-01-31\")",
    "DATE(\"9999-12-31\")",
];

/// Expressions made of the values `a`, `b` and `c`.
const FORMS: &[&str] = &[
    "(a + b)",
    "(a - b)",
    "(a * b)",
    "(a / b)",
    "(a MOD b)",
    "(a ^ b)",
    "(a & b)",
    "(a = b)",
    "(a < b)",
    "(a AND b)",
    "(a)[b]",
    "[a, b]",
    "-a",
    "(NOT a)",
    "LEN(a)",
    "UCASE(a)",
    "STR(a)",
    "VAL(a)",
    "INT(a)",
    "ROUND(a)",
    "SQRT(a)",
    "CHR(a)",
    "ASC(a)",
    "ISNUMERIC(a)",
    "DATE(a)",
    "YEAR(a)",
    "LEFT(a, b)",
    "RIGHT(a, b)",
    "MID(a, b, c)",
    "INSTR(a, b)",
    "SPLIT(a, b)",
    "JOIN(a, b)",
    "ROUND(a, b)",
    "FORMAT(a, b)",
    "MAX(a, b)",
    "CONTAINS(a, b)",
    "APPEND(a, b)",
    "REPLACE(a, b, c)",
    "DATE(a, b, c)",
    "DATEADD(a, b, \"MONTHS\")",
    "DATEADD(a, b, \"SECONDS\")",
    "DATEDIFF(a, b, \"YEAR\")",
    "DATEDIFF(a, b, \"SECONDS\")",
];

/// Generates a value, or an expression of several.
fn expression() -> impl Strategy<Value = String> {
    let value = select(VALUES).prop_map(str::to_owned);
    value.prop_recursive(4, 32, 3, |inner| {
        (select(FORMS), vec(inner, 3)).prop_map(|(form, values)| {
            let value_of = |char| match char {
                'a'..='c' => values[usize::from(char as u8 - b'a')].clone(),
                _ => String::from(char),
            };
            form.chars().map(value_of).collect()
        })
    })
}

proptest! {
    #[test]
    fn any_text_is_compiled_or_refused(source in any::<String>()) {
        check(&source);
    }

    #[test]
    fn any_words_are_compiled_or_refused(words in vec(select(WORDS), 0..60)) {
        check(&words.join(" "));
        check(&words.concat());
    }

    #[test]
    fn any_expression_has_a_value_or_a_fault(expression in expression()) {
        let source = format!("TALK {expression}");
        prop_assert!(compile(&source).is_ok(), "{source}");
        check(&source);
    }
}
