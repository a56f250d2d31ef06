//! `mcpd config`: checks the configuration, and shows its values and its schema.

use std::path::PathBuf;

use mcpd_config::{Fault, File};

use crate::args::{CommandLine, Config, ConfigAction, ConfigShow};
use crate::exit_code::ExitCode;
use crate::output;

pub(crate) async fn run(args: Config, line: &CommandLine, file: &File) -> anyhow::Result<ExitCode> {
    match args.action {
        ConfigAction::Check { files, json, .. } => check(&files, line, json).await,
        ConfigAction::Show(options) => show(&options, line, file),
        ConfigAction::Schema => {
            output::write_json(&mcpd_config::schema())?;
            Ok(ExitCode::Success)
        }
    }
}

/// Prints the faults of the files, or of the file that mcpd would read if none is given.
async fn check(files: &[PathBuf], line: &CommandLine, json: bool) -> anyhow::Result<ExitCode> {
    let mut read: Vec<_> = files.iter().map(|path| File::read(path)).collect();
    if files.is_empty() || line.names_configuration() {
        read.push(File::find(line.search()));
    }
    let mut faults = Vec::new();
    for file in read {
        match file {
            Ok(file) => faults.extend(mcpd_config::faults(&file).await),
            Err(error) => faults.push(error),
        }
    }
    let faults: Vec<_> = faults.into_iter().map(Fault::from).collect();
    if json {
        output::write_json(&faults)?;
    } else {
        let lines = faults.iter().map(|fault| format!("{fault}\n"));
        output::write_text(&lines.collect::<String>())?;
    }
    Ok(match faults[..] {
        [] => ExitCode::Success,
        _ => ExitCode::Failure,
    })
}

/// Prints the effective configuration.
fn show(options: &ConfigShow, line: &CommandLine, file: &File) -> anyhow::Result<ExitCode> {
    let effective = line.effective(file)?;
    if options.json {
        output::write_json(&effective)?;
        return Ok(ExitCode::Success);
    }
    let mut text = String::new();
    for entry in &effective {
        text += &format!("{} = {}", entry.key, entry.value);
        if options.origin {
            text += &format!("  # {}", entry.origin);
        }
        text.push('\n');
    }
    output::write_text(&text)?;
    Ok(ExitCode::Success)
}
