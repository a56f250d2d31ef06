//! Every rule is broken by its bad example and kept by its good one.

use super::{Code, RULES, Rule};
use crate::{HelpOutput, Severity, parse};

/// Output of the lines of an example; `None` if it is no mere series of `echo`.
fn output(example: &str) -> Option<(String, String)> {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    for line in example.lines().filter(|line| *line != "exit 0") {
        let (line, stream) = match line.strip_suffix(" >&2") {
            Some(line) => (line, &mut stderr),
            None => (line, &mut stdout),
        };
        let printed = line.strip_prefix("echo '")?.strip_suffix('\'')?;
        stream.push_str(printed);
        stream.push('\n');
    }
    Some((stdout, stderr))
}

/// Findings of an example; `None` if only running it could tell.
fn codes(rule: &Rule, example: &str) -> Option<Vec<Code>> {
    let diagnostics = match rule.dialect {
        Some(dialect) => {
            let described = dialect.read("example", example.as_bytes());
            let parsed = described.into_iter().map(|described| described.parsed);
            parsed.flat_map(|parsed| parsed.diagnostics).collect()
        }
        None => {
            let (stdout, stderr) = output(example)?;
            let help = HelpOutput {
                stdout: stdout.as_bytes(),
                stderr: stderr.as_bytes(),
            };
            parse(help).diagnostics
        }
    };
    Some(diagnostics.into_iter().map(|found| found.code).collect())
}

#[test]
fn each_rule_is_found_under_its_code() {
    for rule in RULES {
        assert_eq!(rule.code.rule().code, rule.code);
    }
}

#[test]
fn a_bad_example_breaks_its_rule() {
    let mut echoed = 0;
    for rule in RULES {
        if let Some(codes) = codes(rule, rule.bad) {
            echoed += 1;
            assert!(codes.contains(&rule.code), "{}", rule.code);
        }
    }
    assert!(echoed > 25, "only {echoed} examples are plain echoes");
}

#[test]
fn a_good_example_keeps_its_rule() {
    for rule in RULES {
        let codes = codes(rule, rule.good);
        let codes = codes.unwrap_or_else(|| panic!("{} is no plain echo", rule.code));
        let graver = codes
            .iter()
            .find(|code| code.rule().severity == Severity::Error);
        assert_eq!(graver, None, "{}", rule.code);
        assert!(!codes.contains(&rule.code), "{}", rule.code);
    }
}
