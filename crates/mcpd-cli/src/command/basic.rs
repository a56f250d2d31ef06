//! `mcpd basic`: runs a BASIC program as a script, with options on stdin and output on stdout.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;

use anyhow::Context as _;
use mcpd_basic::{Fault, Limits, MAX_SOURCE, Parameters, Program, RunError};
use mcpd_config::compile_basic;
use mcpd_scriptspec::{Diagnostic, Dialect, Parsed, ScriptSpec, Severity};
use serde_json::value::RawValue;

use crate::args::Basic;
use crate::exit_code::ExitCode;
use crate::output;

pub(crate) fn run(options: &Basic) -> anyhow::Result<ExitCode> {
    let path = &options.file;
    let source = read(path).with_context(|| format!("read `{}`", path.display()))?;
    let file = path.file_name().unwrap_or(path.as_os_str());
    let file = file.to_string_lossy();
    let (program, spec) = match compile(options, &source) {
        Ok(compiled) => compiled,
        Err(faults) => {
            faults.iter().for_each(|fault| report(fault, &file));
            return Ok(ExitCode::Failure);
        }
    };
    let json = stdin().context("read stdin")?;
    let parameters = match parameters(&json, spec.as_ref()) {
        Ok(parameters) => parameters,
        Err(wrong) => {
            let lines = wrong.lines().map(|line| format!("ERROR {line}\n"));
            output::note(&lines.collect::<String>());
            return Ok(ExitCode::BadRequest);
        }
    };
    let mut limits = Limits::default();
    limits.operations = options.max_operations;
    // Stdout is line-buffered, so that readers get each line at once.
    match program.run(&parameters, &mut io::stdout().lock(), limits) {
        Ok(()) => Ok(ExitCode::Success),
        Err(RunError::Output(error)) => {
            output::unless_closed(Err(error)).map(|()| ExitCode::Success)
        }
        Err(RunError::Fault(fault)) => {
            report(&fault, &file);
            Ok(ExitCode::Failure)
        }
        Err(error) => {
            output::note(&format!("ERROR {error}\n"));
            Ok(ExitCode::BadRequest)
        }
    }
}

/// Reads a file, up to a length that is long enough to be rejected.
fn read(path: &Path) -> io::Result<String> {
    let mut source = String::new();
    let most = u64::try_from(MAX_SOURCE).unwrap_or(u64::MAX);
    File::open(path)?
        .take(most.saturating_add(1))
        .read_to_string(&mut source)?;
    Ok(source)
}

/// Compiles a program and reads its spec; no spec for a program that is already checked.
///
/// # Errors
///
/// The faults of either. As in `mcpd check`, a line with a faulty declaration has no other fault.
fn compile(options: &Basic, source: &str) -> Result<(Program, Option<ScriptSpec>), Vec<Fault>> {
    if options.checked {
        // The caller knows the dialect and has checked the variables.
        return mcpd_basic::compile_described(source).map(|program| (program, None));
    }
    let path = options.file.to_string_lossy();
    let sidecar = sidecar(&path);
    let dialect = match Dialect::of(&path, source.as_bytes()) {
        _ if sidecar.is_some() => Dialect::Sidecar,
        Some(Dialect::Header) => Dialect::Header,
        _ => Dialect::Basic,
    };
    let program = compile_basic(source, dialect);
    match (spec(dialect, &path, source, sidecar), program) {
        (Ok(spec), Ok(program)) => Ok((program, Some(spec))),
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

/// Reads the object on stdin. Returns nothing if stdin is empty or a terminal.
fn stdin() -> io::Result<Vec<u8>> {
    let mut json = Vec::new();
    if !io::stdin().is_terminal() {
        io::stdin().lock().read_to_end(&mut json)?;
    }
    let json = json.trim_ascii();
    Ok(match json {
        b"" => b"{}".to_vec(),
        json => json.to_vec(),
    })
}

/// Parameters of a program, as a call of the tool would pass them.
///
/// # Errors
///
/// The faults of the arguments, in the words of a call.
fn parameters(json: &[u8], spec: Option<&ScriptSpec>) -> Result<Parameters, String> {
    let json = str::from_utf8(json).map_err(|error| format!("stdin is not UTF-8: {error}"))?;
    let wrong = |error| format!("stdin is not a JSON object: {error}");
    let given: Parameters = serde_json::from_str(json).map_err(wrong)?;
    let Some(spec) = spec else {
        return Ok(given);
    };
    let arguments: &RawValue = serde_json::from_str(json).map_err(wrong)?;
    let invocation = spec.invocation(Some(arguments)).map_err(|faults| {
        let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
        format!("Invalid arguments: {}", faults.join("\n"))
    })?;
    serde_json::from_slice(&invocation.stdin).map_err(wrong)
}

/// Reports a fault on stderr. Each line becomes a log message with its level.
fn report(fault: &Fault, file: &str) {
    let lines = fault.report(file);
    let lines = lines.lines().map(|line| format!("ERROR {line}\n"));
    output::note(&lines.collect::<String>());
}
