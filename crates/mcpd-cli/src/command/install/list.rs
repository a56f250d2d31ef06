//! `mcpd install --list`: the clients, their files, and what is installed there.

use mcpd_clients::Places;
use mcpd_doctor::installed::{self, FileRow, Row, State};

use crate::args::Install;
use crate::exit_code::ExitCode;
use crate::output;

/// Prints the list.
pub(super) fn run(args: &Install, places: &Places) -> anyhow::Result<ExitCode> {
    let rows = installed::in_clients(&args.name, places);
    if args.json {
        output::write_json(&rows)?;
        return Ok(ExitCode::Success);
    }
    let lines: Vec<_> = rows.iter().flat_map(lines).collect();
    let lines = lines.iter().map(|(name, text)| (*name, text.as_str()));
    output::write_table(lines)?;
    Ok(ExitCode::Success)
}

/// Lines of a client for people.
fn lines(row: &Row) -> Vec<(&'static str, String)> {
    let missing = match &row.found {
        Some(_) => "not installed",
        None => "not found",
    };
    let text = |file: &FileRow| {
        let scope = match file.scope {
            "user" => String::new(),
            other => format!("{other}: "),
        };
        let path = file.path.display();
        match &file.state {
            State::NotInstalled => missing.to_owned(),
            State::Installed { server } => format!("{scope}installed in {path}: {server}"),
            State::Broken { server, reason } => {
                format!("{scope}broken in {path}: {reason}: {server}")
            }
            State::Unreadable { reason } => format!("{scope}unreadable: {reason}"),
        }
    };
    let lines = row.files.iter().map(|file| (row.client, text(file)));
    lines.collect()
}
