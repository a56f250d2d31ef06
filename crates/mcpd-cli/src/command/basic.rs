//! `mcpd basic`: runs a BASIC program as a script, with options on stdin and output on stdout.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;

use anyhow::Context as _;
use mcpd_basic::{Fault, Limits, MAX_SOURCE, RunError};
use mcpd_config::BasicScript;

use crate::args::Basic;
use crate::exit_code::ExitCode;
use crate::output;

pub(crate) fn run(options: &Basic) -> anyhow::Result<ExitCode> {
    let path = &options.file;
    let source = read(path).with_context(|| format!("read `{}`", path.display()))?;
    let file = path.file_name().unwrap_or(path.as_os_str());
    let file = file.to_string_lossy();
    let script = match options.checked {
        true => BasicScript::compile_checked(&source),
        false => BasicScript::compile(path, &source),
    };
    let script = match script {
        Ok(script) => script,
        Err(faults) => {
            faults.iter().for_each(|fault| report(fault, &file));
            return Ok(ExitCode::Failure);
        }
    };
    let json = stdin().context("read stdin")?;
    let parameters = match script.parameters(&json) {
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
    match script
        .program()
        .run(&parameters, &mut io::stdout().lock(), limits)
    {
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

/// Reports a fault on stderr. Each line becomes a log message with its level.
fn report(fault: &Fault, file: &str) {
    let lines = fault.report(file);
    let lines = lines.lines().map(|line| format!("ERROR {line}\n"));
    output::note(&lines.collect::<String>());
}
