//! Clients in which a server is installed: their files, and the state of the server in each.

use std::env;
use std::path::{Path, PathBuf};

use mcpd_clients::{Client, Connection, InstalledServer, Places, Scope, file};
use serde::Serialize;

use crate::entry;

/// A client, with the state of the server in its files.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// Name of the client, for commands.
    pub client: &'static str,
    /// Name of the client, for people.
    pub title: &'static str,
    /// Sign that the client is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<PathBuf>,
    /// Files of the user, and those of this project that have the server.
    pub files: Vec<FileRow>,
}

/// A file of a client.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct FileRow {
    /// Scope of the file: user, project or local.
    pub scope: &'static str,
    /// The file.
    pub path: PathBuf,
    /// State of the server there.
    #[serde(flatten)]
    pub state: State,
}

/// State of the server in a file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
#[expect(clippy::exhaustive_enums, reason = "a server has one of these states")]
pub enum State {
    /// It is not there.
    NotInstalled,
    /// It is there.
    Installed {
        /// Target of the entry, without secrets.
        server: String,
    },
    /// It is there, and can't be started.
    Broken {
        /// Target of the entry, without secrets.
        server: String,
        /// The fault.
        reason: String,
    },
    /// The file can't be read.
    Unreadable {
        /// The fault.
        reason: String,
    },
}

/// Name of a scope, for commands.
#[must_use]
pub fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Project => "project",
        Scope::Local => "local",
        _ => "user",
    }
}

/// All clients, with the state of the server `name` in the files of each.
#[must_use]
pub fn in_clients(name: &str, places: &Places) -> Vec<Row> {
    let path = env::var_os("PATH");
    let row = |client: &'static Client| Row {
        client: client.name(),
        title: client.title(),
        found: client.detect(places, path.as_deref()),
        files: files(client, name, places),
    };
    Client::all().iter().map(row).collect()
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

#[cfg(test)]
mod tests {
    use std::fs;

    use mcpd_clients::Platform;

    use super::*;

    #[test]
    fn state_is_that_of_the_entry() {
        let home = tempfile::tempdir().unwrap();
        let places = Places::new(Platform::Linux, home.path());
        let path = home.path().join(".cursor/mcp.json");
        fs::create_dir(home.path().join(".cursor")).unwrap();
        let state = |text: &str| {
            fs::write(&path, text).unwrap();
            let rows = in_clients("tools", &places);
            let row = rows.into_iter().find(|row| row.client == "cursor");
            let mut files = row.unwrap().files;
            assert_eq!((files.len(), &files[0].path), (1, &path));
            files.remove(0).state
        };
        assert!(matches!(state("{}"), State::NotInstalled));
        assert!(matches!(state("{"), State::Unreadable { .. }));
        let entry = |program: &str| {
            state(&format!(
                r#"{{"mcpServers": {{"tools": {{"command": "{program}"}}}}}}"#
            ))
        };
        assert!(matches!(entry("mcpd"), State::Installed { .. }));
        let broken = entry("/gone/mcpd");
        let is_gone = |reason: &str| reason == "the program is gone";
        assert!(matches!(broken, State::Broken { reason, .. } if is_gone(&reason)));
    }
}
