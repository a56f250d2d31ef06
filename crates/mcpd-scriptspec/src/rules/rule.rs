//! One rule, and the way from a code to its rule.

use std::fmt;

use super::{Code, RULES};
use crate::{diagnostic::Severity, dialect::Dialect};

/// One rule: the severity of a violation, and the reason for the rule.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rule {
    /// Code of its diagnostics.
    pub code: Code,
    /// Severity of a violation.
    pub severity: Severity,
    /// Reason for the rule.
    pub why: &'static str,
    /// Dialect of the examples. Without one they are lines of shell that a script runs for
    /// `--help`.
    pub dialect: Option<Dialect>,
    /// Example of a violation.
    pub bad: &'static str,
    /// Corrected example.
    pub good: &'static str,
}

impl Code {
    /// Returns the rule with this name.
    #[must_use]
    pub fn rule(self) -> &'static Rule {
        &RULES[self as usize]
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
