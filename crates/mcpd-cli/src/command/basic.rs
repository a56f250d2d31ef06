//! `mcpd basic`: runs a BASIC program as the script that it is, options on stdin and answer on stdout.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;

use anyhow::Context as _;
use mcpd_basic::{Fault, Limits, MAX_SOURCE, RunError};
use serde_json::{Map, Value};

use crate::args::Basic;
use crate::exit_code::ExitCode;
use crate::output;

pub(crate) fn run(options: &Basic) -> anyhow::Result<ExitCode> {
    let path = &options.file;
    let source = read(path).with_context(|| format!("read `{}`", path.display()))?;
    let file = path.file_name().unwrap_or(path.as_os_str());
    let file = file.to_string_lossy();
    let program = match mcpd_basic::compile(&source) {
        Ok(program) => program,
        Err(faults) => {
            faults.iter().for_each(|fault| report(fault, &file));
            return Ok(ExitCode::Failure);
        }
    };
    let parameters = match parameters().context("read stdin")? {
        Ok(parameters) => parameters,
        Err(error) => {
            output::note(&format!("ERROR stdin is no JSON object: {error}\n"));
            return Ok(ExitCode::BadRequest);
        }
    };
    let mut limits = Limits::default();
    limits.operations = options.max_operations;
    // A line is written as soon as it is there, for those who read along.
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

/// The text of a file; of one that is too long, enough to be refused.
fn read(path: &Path) -> io::Result<String> {
    let mut source = String::new();
    let most = u64::try_from(MAX_SOURCE).unwrap_or(u64::MAX);
    File::open(path)?
        .take(most.saturating_add(1))
        .read_to_string(&mut source)?;
    Ok(source)
}

/// The object on stdin. There is none if it is empty, or if somebody would have to type it.
fn parameters() -> io::Result<serde_json::Result<Map<String, Value>>> {
    if io::stdin().is_terminal() {
        return Ok(Ok(Map::new()));
    }
    let mut json = Vec::new();
    io::stdin().lock().read_to_end(&mut json)?;
    if json.trim_ascii().is_empty() {
        return Ok(Ok(Map::new()));
    }
    Ok(serde_json::from_slice(&json))
}

/// Each line on stderr is a message to whoever called the script, with its level.
fn report(fault: &Fault, file: &str) {
    let lines = fault.report(file);
    let lines = lines.lines().map(|line| format!("ERROR {line}\n"));
    output::note(&lines.collect::<String>());
}
