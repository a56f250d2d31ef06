//! BASIC for tools: programs that take parameters, print an answer, and can do nothing else.
//!
//! A program is compiled, which finds what is wrong with it as a whole, and run within limits:
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
//! There is nothing in the language that reads a file, a variable of the environment or the network, or that
//! starts anything. Time, memory and depth of a run are bounded by [`Limits`], those of compiling by the
//! length of a program and the depth of its nesting. What `PARAM` and `DESCRIPTION` say beyond the names
//! is for those who ask what a program takes; here it is skipped.
//!
//! # Why a tree is walked here
//!
//! The obvious engine is rhai, with BASIC translated into it. It was weighed and left, because little of it
//! would have remained: its functions see no variables but their own, so that a SUB could not read a
//! parameter; operators, indexing and every function would have been replaced, as they fail in words about
//! types that BASIC doesn't have; its faults point into the translation; its lists are copied whole when they
//! are read, which its count of operations doesn't see; and it limits the size of each value, but not what
//! they come to together. Numbers and dates, which are hard to get right, are left to libraries.

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

/// The longest program, in bytes.
pub const MAX_SOURCE: usize = 256 << 10;
/// How many faults are reported at once.
const MAX_FAULTS: usize = 20;

/// A program without faults that can be seen before it runs.
#[derive(Debug)]
pub struct Program {
    source: String,
    tree: tree::Tree,
}

/// What a program is run with: JSON by its names, as text, for a number has more digits there than elsewhere.
pub type Parameters = BTreeMap<String, Box<RawValue>>;

/// Why a program did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The program did something impossible, ended itself with ERROR, or reached a limit.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// A parameter is nothing that a program can compute with.
    #[error("parameter `{name}`: {message}")]
    Parameter {
        /// The parameter.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// The output could not be written.
    #[error("write the output")]
    Output(#[source] io::Error),
}

/// Reads a program.
///
/// # Errors
///
/// Everything that is wrong with it, up to twenty faults in the order of their lines, one for a line.
pub fn compile(source: &str) -> Result<Program, Vec<Fault>> {
    read(source, false)
}

/// Reads a program of which something else says what it takes, whatever its `PARAM`s say: a variable that is none of these
/// may be given all the same.
///
/// # Errors
///
/// As for [`compile`].
pub fn compile_described(source: &str) -> Result<Program, Vec<Fault>> {
    read(source, true)
}

fn read(source: &str, is_described: bool) -> Result<Program, Vec<Fault>> {
    if source.len() > MAX_SOURCE {
        let message = format!("a program must have no more than {MAX_SOURCE} bytes");
        return Err(vec![Fault::new(Error::new(message), "")]);
    }
    let tree = parser::parse(source, is_described).map_err(|errors| faults(errors, source))?;
    Ok(Program {
        source: source.to_owned(),
        tree,
    })
}

/// One fault for each line, the one that was found first: the others may only follow from it.
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
    /// Runs the program, with the parameters as variables. Each TALK and PRINT is written as it comes, and
    /// all is flushed at the end.
    ///
    /// # Errors
    ///
    /// See [`RunError`]. What was printed until then has been written.
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

    /// The parameters that were given, and NOTHING for those that were not.
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
    fn a_program_that_is_described_elsewhere_may_read_any_variable() {
        let source = "PARAM n AS number LIKE 5\nTALK z";
        let faults = compile(source).unwrap_err();
        assert_eq!(faults[0].message, "there is no variable `z`");
        let program = compile_described(source).unwrap();
        let parameters = serde_json::from_str(r#"{"z": 7}"#).unwrap();
        let mut output = Vec::new();
        program
            .run(&parameters, &mut output, Limits::default())
            .unwrap();
        assert_eq!(output, b"7\n");
    }
}
