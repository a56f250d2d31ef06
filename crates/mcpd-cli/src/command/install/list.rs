//! `mcpd install --list`: the clients, their files, and what is installed there.

use std::env;
use std::path::{Path, PathBuf};

use mcpd_clients::{Client, Connection, InstalledServer, Places, Scope, file};
use mcpd_doctor::entry;
use serde::Serialize;

use crate::args::Install;
use crate::exit_code::ExitCode;
use crate::output;

/// A client in the list.
#[derive(Debug, Serialize)]
struct Row {
    client: &'static str,
    title: &'static str,
    /// Sign that the client is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<PathBuf>,
    files: Vec<FileRow>,
}

/// A file of a client.
#[derive(Debug, Serialize)]
struct FileRow {
    scope: &'static str,
    path: PathBuf,
    #[serde(flatten)]
    state: State,
}

/// State of the server in a file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
enum State {
    NotInstalled,
    Installed {
        server: String,
    },
    /// It is there, and can't be started.
    Broken {
        server: String,
        reason: String,
    },
    Unreadable {
        reason: String,
    },
}

pub(super) fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Project => "project",
        Scope::Local => "local",
        _ => "user",
    }
}

/// Prints the list.
pub(super) fn run(args: &Install, places: &Places) -> anyhow::Result<ExitCode> {
    let path = env::var_os("PATH");
    let row = |client: &'static Client| Row {
        client: client.name(),
        title: client.title(),
        found: client.detect(places, path.as_deref()),
        files: files(client, &args.name, places),
    };
    let rows: Vec<_> = Client::all().iter().map(row).collect();
    if args.json {
        output::write_json(&rows)?;
        return Ok(ExitCode::Success);
    }
    let lines: Vec<_> = rows.iter().flat_map(lines).collect();
    let lines = lines.iter().map(|(name, text)| (*name, text.as_str()));
    output::write(output::table(lines, output::columns()).as_bytes())?;
    Ok(ExitCode::Success)
}

/// Files of a client: the user's, and those of this project that exist.
fn files(client: &'static Client, name: &str, places: &Places) -> Vec<FileRow> {
    let files = client.scopes().filter_map(|scope| {
        let file = client.file(scope, places, name)?;
        let state = match file::read(file.path()) {
            Err(error) => State::Unreadable {
                reason: format!("{:#}", anyhow::Error::from(error)),
            },
            Ok(text) => match file.installed_servers(text.as_deref().unwrap_or_default()) {
                Err(error) => State::Unreadable {
                    reason: error.to_string(),
                },
                Ok(servers) => state(servers.iter().find(|server| server.name == name)),
            },
        };
        let is_shown = scope == Scope::User || !matches!(state, State::NotInstalled);
        is_shown.then(|| FileRow {
            scope: scope_name(scope),
            path: file.path().to_owned(),
            state,
        })
    });
    files.collect()
}

fn state(server: Option<&InstalledServer>) -> State {
    let Some(server) = server else {
        return State::NotInstalled;
    };
    match &server.connection {
        Connection::Stdio { command, .. } => {
            let server = entry::describe(&server.connection);
            let program = Path::new(command);
            let is_missing = program.is_absolute() && !program.exists();
            match is_missing {
                true => State::Broken {
                    server,
                    reason: "the program is gone".to_owned(),
                },
                false => State::Installed { server },
            }
        }
        Connection::Http { .. } => State::Installed {
            server: entry::describe(&server.connection),
        },
        _ => State::Broken {
            server: server.name.clone(),
            reason: "the entry has an unknown form".to_owned(),
        },
    }
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
