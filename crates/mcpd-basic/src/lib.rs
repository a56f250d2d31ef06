//! BASIC for tools: programs that take parameters, print an answer, and can do nothing else.
//!
//! A program is compiled, which finds all its faults at once, and run within limits:
//!
//! ```
//! let program = mcpd_basic::compile(
//!     "PARAM customer AS string LIKE \"Ada\" DESCRIPTION \"Who orders\"
//!      PARAM amount AS number LIKE 5 DESCRIPTION \"How many\"
//!      IF amount > 10 THEN
//!        TALK customer + \" gets a discount\"
//!      ELSE
//!        TALK customer + \" pays \" + amount * 1.5
//!      END IF",
//! )
//! .expect("a program without faults");
//!
//! let parameters = serde_json::from_str(r#"{"customer": "Grace", "amount": 3}"#).unwrap();
//! let mut output = Vec::new();
//! let limits = mcpd_basic::Limits::default();
//! program.run(&parameters, &mut output, limits)?;
//! assert_eq!(output, b"Grace pays 4.5\n");
//! # Ok::<(), mcpd_basic::RunError>(())
//! ```
//!
//! The language has no access to files, environment variables, the network or other programs. Time,
//! memory and depth of a run are bounded by [`Limits`], those of compiling by the length of a
//! program and the depth of its nesting. `PARAM` and `DESCRIPTION` also describe the program's
//! interface; here everything but the names is skipped.
//!
//! # Why a tree is walked here
//!
//! The obvious engine is rhai, with BASIC translated into it. It was considered and rejected,
//! because little of it would have remained: its functions see no variables but their own, so that
//! a SUB could not read a parameter; operators, indexing and every function would have been
//! replaced, as they fail in words about types that BASIC doesn't have; its faults point into the
//! translation; its lists are copied whole when they are read, which its count of operations
//! doesn't see; and it limits the size of each value, but not their total. Numbers and dates, which
//! are hard to get right, are left to libraries.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io;
use std::io::Write;

use serde_json::value::RawValue;

mod error;
mod fault;
mod functions;
mod lexer;
mod limits;
mod parser;
mod run;
mod tree;
mod value;

pub use fault::Fault;
pub use limits::Limits;

use error::Error;
use run::{Stop, Variables};
use value::Value;

/// Maximum length of a program, in bytes.
pub const MAX_SOURCE: usize = 256 << 10;
/// Maximum number of faults in a report.
const MAX_FAULTS: usize = 20;

/// Program without faults that are visible before it runs.
#[derive(Debug)]
pub struct Program {
    source: String,
    tree: tree::Tree,
}

/// Parameters of a run: raw JSON by name, because a number in raw JSON keeps all its digits.
pub type Parameters = BTreeMap<String, Box<RawValue>>;

/// Reason why a program did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The program did something impossible, ended with ERROR, or exceeded a limit.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// A parameter has a value that programs can't compute with.
    #[error("parameter `{name}`: {message}")]
    Parameter {
        /// Name of the parameter.
        name: String,
        /// Fault of its value.
        message: String,
    },
    /// The output could not be written.
    #[error("write the output")]
    Output(#[source] io::Error),
}

/// Compiles a program.
///
/// # Errors
///
/// Returns up to twenty faults of the program in the order of their lines, one for a line.
pub fn compile(source: &str) -> Result<Program, Vec<Fault>> {
    read(source, false)
}

/// Compiles a program whose parameters are declared elsewhere, whatever its `PARAM`s say: an
/// undeclared variable may still be given.
///
/// # Errors
///
/// Fails like [`compile`].
pub fn compile_described(source: &str) -> Result<Program, Vec<Fault>> {
    read(source, true)
}

fn read(source: &str, is_described: bool) -> Result<Program, Vec<Fault>> {
    if source.len() > MAX_SOURCE {
        let message = format!("a program may have at most {MAX_SOURCE} bytes");
        return Err(vec![Fault::new(Error::new(message), "")]);
    }
    let tree = parser::parse(source, is_described).map_err(|errors| faults(errors, source))?;
    Ok(Program {
        source: source.to_owned(),
        tree,
    })
}

/// Keeps the first fault of each line: the others may only follow from it.
fn faults(errors: Vec<Error>, source: &str) -> Vec<Fault> {
    let line_ends: Vec<usize> = source.match_indices('\n').map(|(end, _)| end).collect();
    let mut by_line = BTreeMap::new();
    for error in errors {
        let start = error.span.as_ref().map_or(0, |span| span.start);
        let line = line_ends.partition_point(|end| *end < start);
        by_line.entry(line).or_insert(error);
    }
    let first = by_line.into_values().take(MAX_FAULTS);
    first.map(|error| Fault::new(error, source)).collect()
}

impl Program {
    /// Runs the program, with the parameters as variables. The output of each TALK and PRINT is
    /// written at once, and everything is flushed at the end.
    ///
    /// # Errors
    ///
    /// See [`RunError`]. Everything printed before is written.
    pub fn run(
        &self,
        parameters: &Parameters,
        output: &mut dyn Write,
        limits: Limits,
    ) -> Result<(), RunError> {
        let variables = self.variables(parameters)?;
        match run::run(&self.tree, variables, output, limits) {
            Ok(()) | Err(Stop::End) => Ok(()),
            Err(Stop::Error(error)) => Err(Fault::new(*error, &self.source).into()),
            Err(Stop::Output(error)) => Err(RunError::Output(error)),
        }
    }

    /// Returns the given parameters as variables, and NOTHING for the missing ones.
    fn variables(&self, parameters: &Parameters) -> Result<Variables, RunError> {
        let declared = self.tree.parameters.iter().cloned();
        let mut variables: Variables = declared.map(|name| (name, Value::Nothing)).collect();
        for (name, json) in parameters {
            let value = Value::from_json(json).map_err(|error| RunError::Parameter {
                name: name.clone(),
                message: error.message,
            })?;
            variables.insert(name.to_lowercase().into(), value);
        }
        Ok(variables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn described_program_may_read_any_variable() {
        let source = "PARAM n AS number LIKE 5\nTALK z";
        let faults = compile(source).unwrap_err();
        assert_eq!(faults[0].message, "unknown variable `z`");
        let program = compile_described(source).unwrap();
        let parameters = serde_json::from_str(r#"{"z": 7}"#).unwrap();
        let mut output = Vec::new();
        program
            .run(&parameters, &mut output, Limits::default())
            .unwrap();
        assert_eq!(output, b"7\n");
    }
}
