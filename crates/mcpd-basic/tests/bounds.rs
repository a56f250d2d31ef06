//! Bounds: every program ends soon, with a fault, and within the stack of a test.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::time::{Duration, Instant};

use mcpd_basic::{Limits, Parameters, RunError, compile};

/// Time limit for a build without optimization on a busy machine; a release takes a fraction of
/// it.
const DEADLINE: Duration = Duration::from_secs(30);

fn ending(source: &str) -> Result<(), String> {
    let program = compile(source).map_err(|faults| faults.first().unwrap().message.clone())?;
    let mut limits = Limits::default();
    limits.operations = 3_000_000;
    let run = program.run(&Parameters::new(), &mut Vec::new(), limits);
    run.map_err(|error| match error {
        RunError::Fault(fault) => fault.message,
        error => panic!("{error}"),
    })
}

#[track_caller]
fn check(source: &str, expected: &str) {
    let started = Instant::now();
    let message = ending(source).unwrap_err();
    assert!(message.contains(expected), "{message}");
    assert!(started.elapsed() < DEADLINE, "{:?}", started.elapsed());
}

#[test]
fn endless_loops_run_out_of_operations() {
    check("WHILE TRUE\nWEND", "operations");
    check("FOR i = 1 TO 10 ^ 27\nNEXT", "operations");
}

#[test]
fn many_faults_take_no_longer_than_a_few() {
    let functions = (0..3000).map(|i| format!("FUNCTION averylongname{i:05}()\nEND FUNCTION\n"));
    let calls = (0..6000).map(|i| format!("averylongnamf{i:05}()\n"));
    let source: String = functions.chain(calls).collect();
    check(&source, "unknown function `averylongnamf00000`");
    let faults = compile(&source).unwrap_err();
    assert_eq!((faults.len(), faults[19].line), (20, 6020));
}

#[test]
fn growth_is_bounded() {
    check("t = \"x\"\nWHILE TRUE\nt = t + t\nWEND", "would exceed");
    check("a = []\nWHILE TRUE\nPUSH a, 1\nWEND", "would exceed");
    check("a = []\nWHILE TRUE\na = APPEND(a, 1)\nWEND", "operations");
    check("a = [1]\nWHILE TRUE\na = [a, a]\nWEND", "would exceed");
    let big = "t = \"x\"\nFOR i = 1 TO 23\nt = t + t\nNEXT\n";
    check(&format!("{big}PRINT t; t; t"), "would exceed");
}

#[test]
fn big_values_count_as_steps_when_read_or_made() {
    let big = "t = \"x\"\nFOR i = 1 TO 16\nt = t + t\nNEXT\n";
    for step in [
        "x = UCASE(t)",
        "x = LEN(t)",
        "x = t = t",
        "x = t < t",
        "x = INSTR(t, \"y\")",
        "x = STR([t])",
        "x = SPLIT(t, \"x\")",
        "x = JOIN([t, t], \"\")",
    ] {
        check(&format!("{big}WHILE TRUE\n{step}\nWEND"), "operations");
    }
}

#[test]
fn recursion_is_bounded_within_the_stack() {
    for body in [
        "RETURN f(n)",
        "RETURN 1 + (2 * (3 - f(n)))",
        "RETURN [[f(n)]]",
        "RETURN LEN(UCASE(f(n)))",
        "RETURN [1][f(n)]",
        "RETURN NOT (n AND f(n))",
        "f(n)",
        "PRINT f(n)",
        "PUSH n[f(n)], f(n)",
        "IF n THEN RETURN f(n)",
        "IF n THEN\nWHILE n\nFOR EACH i IN [1]\nFOR j = 1 TO f(n)\nNEXT\nNEXT\nWEND\nEND IF",
    ] {
        let source = format!("TALK f(1)\nFUNCTION f(n)\n{body}\nEND FUNCTION");
        check(&source, "too deeply");
    }
}

#[test]
fn nesting_is_bounded() {
    let many = 100_000;
    for (before, after) in [
        ("(", ")"),
        ("[", "]"),
        ("-", ""),
        ("NOT ", ""),
        ("LEN(", ")"),
    ] {
        let source = format!("TALK {}1{}", before.repeat(many), after.repeat(many));
        let source = source.get(..200_000.min(source.len())).unwrap();
        check(source, "nested deeper");
    }
    check(&"IF TRUE THEN\n".repeat(15_000), "END IF");
    check(&"IF TRUE THEN ".repeat(15_000), "nested deeper");
}

#[test]
fn long_line_makes_no_deep_tree() {
    assert_eq!(ending(&format!("x = 1{}", "+1".repeat(100_000))), Ok(()));
    assert_eq!(
        ending(&format!("x = TRUE{}", " AND TRUE".repeat(20_000))),
        Ok(())
    );
    check(
        &format!("x = [1]\nTALK x{}", "[0]".repeat(50_000)),
        "has no elements",
    );
    check(&format!("x = 2{}", "^2".repeat(100_000)), "too big");
}

#[test]
fn long_program_is_refused_unread() {
    check(&"x".repeat(10_000_000), "may have at most");
}

#[test]
fn many_faults_are_found_quickly_and_few_are_reported() {
    let started = Instant::now();
    for line in [
        "§\n",
        "NEXT\n",
        "TALK )\n",
        "f(\n",
        "g(1)\n",
        "IF\n",
        "FOR\n",
        "FUNCTION\n",
    ] {
        let source = line.repeat(200_000 / line.len());
        assert_eq!(compile(&source).unwrap_err().len(), 20, "{line}");
    }
    assert!(started.elapsed() < DEADLINE, "{:?}", started.elapsed());
}
