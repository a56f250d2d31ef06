//! BASIC programs as scripts: the program with the description that it has in its text or in a
//! sidecar.

use std::fs;
use std::path::Path;

use mcpd_basic::{Fault, Parameters, Program};
use mcpd_scriptspec::{Diagnostic, Dialect, Parsed, ScriptSpec, Severity};
use serde_json::value::RawValue;

use crate::server::interpreters::compile_basic;

/// BASIC program, and what its parameters have to be.
#[derive(Debug)]
pub struct BasicScript {
    program: Program,
    /// None for a program whose caller has checked the parameters.
    spec: Option<ScriptSpec>,
}

impl BasicScript {
    /// Compiles the program in the text of `file`, and reads its description.
    ///
    /// # Errors
    ///
    /// The faults of either. As in `mcpd check`, a line with a faulty declaration has no other
    /// fault.
    pub fn compile(file: &Path, source: &str) -> Result<Self, Vec<Fault>> {
        let path = file.to_string_lossy();
        let sidecar = sidecar(&path);
        let dialect = match Dialect::of(&path, source.as_bytes()) {
            _ if sidecar.is_some() => Dialect::Sidecar,
            Some(Dialect::Header) => Dialect::Header,
            _ => Dialect::Basic,
        };
        let program = compile_basic(source, dialect);
        match (spec(dialect, &path, source, sidecar), program) {
            (Ok(spec), Ok(program)) => Ok(Self {
                program,
                spec: Some(spec),
            }),
            (spec, program) => {
                let mut faults = spec.err().unwrap_or_default();
                let mut others = program.err().unwrap_or_default();
                others.retain(|other| faults.iter().all(|fault| fault.line != other.line));
                faults.extend(others);
                faults.sort_by_key(|fault| fault.line);
                Err(faults)
            }
        }
    }

    /// Compiles a program for a caller that knows the description and has checked the parameters.
    ///
    /// # Errors
    ///
    /// The faults of the program.
    pub fn compile_checked(source: &str) -> Result<Self, Vec<Fault>> {
        let program = mcpd_basic::compile_described(source)?;
        Ok(Self {
            program,
            spec: None,
        })
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Parameters of the program, as a call of the tool would pass them.
    ///
    /// # Errors
    ///
    /// The faults of the arguments, in the words of a call.
    pub fn parameters(&self, json: &[u8]) -> Result<Parameters, String> {
        let json = str::from_utf8(json).map_err(|error| format!("stdin is not UTF-8: {error}"))?;
        let wrong = |error| format!("stdin is not a JSON object: {error}");
        let given: Parameters = serde_json::from_str(json).map_err(wrong)?;
        let Some(spec) = &self.spec else {
            return Ok(given);
        };
        let arguments: &RawValue = serde_json::from_str(json).map_err(wrong)?;
        let invocation = spec.invocation(Some(arguments)).map_err(|faults| {
            let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
            format!("Invalid arguments: {}", faults.join("\n"))
        })?;
        serde_json::from_slice(&invocation.stdin).map_err(wrong)
    }
}

/// The sidecar of a program, if it has one: its name and its text.
fn sidecar(path: &str) -> Option<(String, Vec<u8>)> {
    let sidecars = Dialect::SIDECARS.iter();
    let mut sidecars = sidecars.map(|suffix| format!("{path}{suffix}"));
    sidecars.find_map(|sidecar| {
        let text = fs::read(&sidecar).ok()?;
        Some((sidecar, text))
    })
}

/// The spec of a program in its dialect.
///
/// # Errors
///
/// The description has faults.
fn spec(
    dialect: Dialect,
    path: &str,
    source: &str,
    sidecar: Option<(String, Vec<u8>)>,
) -> Result<ScriptSpec, Vec<Fault>> {
    let described = match &sidecar {
        Some((name, text)) => dialect.read(name, text),
        None => dialect.read(path, source.as_bytes()),
    };
    let Parsed {
        spec, diagnostics, ..
    } = described
        .into_iter()
        .next()
        .map_or_else(Parsed::default, |tool| tool.parsed);
    let is_error = |diagnostic: &Diagnostic| diagnostic.severity == Severity::Error;
    match (spec, sidecar) {
        (Some(spec), _) => Ok(spec),
        (None, Some((name, _))) => {
            let message = format!("`{name}` is faulty; run `mcpd check` for the reason");
            Err(vec![Fault::at("", 0..0, message, None)])
        }
        (None, None) => {
            let faults = diagnostics.into_iter().filter(is_error);
            let fault =
                |Diagnostic {
                     message,
                     location,
                     help,
                     ..
                 }| { Fault::at(source, location.span, message, help) };
            Err(faults.map(fault).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREET: &str = "PRINT \"Hello\"\n";

    #[test]
    fn parameters_are_checked_by_the_description() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("greet.bas");
        let sidecar = directory.path().join("greet.bas.mcpd.toml");
        fs::write(
            &sidecar,
            "description = \"Greets.\"\n[options.name]\ndescription = \"Whom\"\n",
        )
        .unwrap();
        let script = BasicScript::compile(&file, GREET).unwrap();
        let given = script.parameters(br#"{"name": "Ada"}"#).unwrap();
        assert_eq!(given["name"].get(), "\"Ada\"");
        let wrong = script.parameters(br#"{"nmae": "Ada"}"#).unwrap_err();
        assert!(wrong.starts_with("Invalid arguments: "), "{wrong}");
        let wrong = script.parameters(b"[]").unwrap_err();
        assert!(wrong.starts_with("stdin is not a JSON object: "), "{wrong}");

        let checked = BasicScript::compile_checked(GREET).unwrap();
        checked.parameters(br#"{"nmae": "Ada"}"#).unwrap();
        fs::write(&sidecar, "description = 1\n").unwrap();
        let faults = BasicScript::compile(&file, GREET).unwrap_err();
        assert!(
            faults[0]
                .report("greet.bas")
                .contains("is faulty; run `mcpd check`")
        );
    }
}
