//! Planned changes of clients' files: made of the file as it is, shown, and applied only if it is
//! still so.
//!
//! ```
//! use mcpd_clients::plan::Plan;
//! use mcpd_clients::{Client, Places, Platform, Scope, Server};
//!
//! # let home = tempfile::tempdir()?;
//! # let home = home.path();
//! let places = Places::new(Platform::Linux, home);
//! let cursor = Client::find("cursor").expect("a known client");
//! let file = cursor.file(Scope::User, &places, "tools").expect("it has such a file");
//! let server = Server::stdio("tools", "/usr/bin/mcpd", ["stdio", "/srv/tools"]);
//! let plan = Plan::install(file.clone(), &server, false)?.expect("it is not there yet");
//! assert!(plan.diff().contains("\"tools\""));
//! plan.apply()?;
//! assert!(Plan::install(file.clone(), &server, false)?.is_none());
//!
//! let removal = Plan::remove(file, "tools")?.expect("it is there");
//! removal.apply()?;
//! assert!(!home.join(".cursor/mcp.json").exists(), "the installation made it");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::{Path, PathBuf};

use crate::edit::{EditError, Removal};
use crate::file::{self, Backup, Change, FileError};
use crate::{Client, ClientError, ConfigFile, Connection, Server, diff};

/// Longest line of a change that is shown whole, in characters.
const MAX_LINE: usize = 160;

/// Change of one client's file.
#[derive(Debug, Clone)]
pub struct Plan {
    file: ConfigFile,
    before: Option<String>,
    after: Option<String>,
    backup: Backup,
}

/// Reason why no change of a file can be planned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The file can't be read.
    #[error("read the configuration of the client")]
    Read(#[source] FileError),
    /// The copy of the file before its first change can't be read.
    #[error("read the copy of the file")]
    ReadCopy(#[source] FileError),
    /// The server can't be written for this client, or the file can't be edited.
    #[error("edit `{}`", path.display())]
    Install {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: ClientError,
    },
    /// The file can't be edited.
    #[error("edit `{}`", path.display())]
    Edit {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: EditError,
    },
    /// The file has another server of this name, which mcpd did not write.
    #[error("install `{name}`: another server of {} has this name", client.title())]
    Occupied {
        /// The name.
        name: String,
        /// The client.
        client: &'static Client,
        /// Target of the other server.
        connection: Box<Connection>,
    },
}

impl Plan {
    /// Plans to write a server to a file; none if it is there already.
    ///
    /// # Errors
    ///
    /// The file can't be edited, or has another server of that name, which only `replaces_other`
    /// replaces.
    pub fn install(
        file: ConfigFile,
        server: &Server,
        replaces_other: bool,
    ) -> Result<Option<Self>, PlanError> {
        let path = || file.path().to_owned();
        let text = file::read(file.path()).map_err(PlanError::Read)?;
        let before = text.as_deref().unwrap_or_default();
        let after = file.install(before, server);
        let after = after.map_err(|source| PlanError::Install {
            path: path(),
            source,
        })?;
        let installed = file.installed_servers(before);
        let installed = installed.map_err(|source| PlanError::Edit {
            path: path(),
            source,
        })?;
        let mut others = installed.iter().filter(|old| !old.connection.starts_mcpd());
        let other = others.find(|old| old.name == server.name);
        if let Some(other) = other.filter(|_| !replaces_other) {
            return Err(PlanError::Occupied {
                name: server.name.clone(),
                client: file.client(),
                connection: Box::new(other.connection.clone()),
            });
        }
        if after == before {
            return Ok(None);
        }
        // The copy of the file is that from before the first installation.
        let is_first = !installed.iter().any(|old| old.connection.starts_mcpd());
        Ok(Some(Self {
            file,
            before: text,
            after: Some(after),
            backup: match is_first {
                true => Backup::Replace,
                false => Backup::KeepOld,
            },
        }))
    }

    /// Plans to take the server of that name out of a file; none if it is not there. A file that an
    /// installation made is deleted.
    ///
    /// # Errors
    ///
    /// The file can't be edited.
    pub fn remove(file: ConfigFile, name: &str) -> Result<Option<Self>, PlanError> {
        let path = file.path();
        let text = file::read(path).map_err(PlanError::Read)?;
        let before = text.as_deref().unwrap_or_default();
        let original = file::read(&file::backup_path(path)).map_err(PlanError::ReadCopy)?;
        let removal = file.remove(before, name, original.as_deref());
        let removal = removal.map_err(|source| PlanError::Edit {
            path: path.to_owned(),
            source,
        })?;
        let after = match removal {
            Removal::Missing => return Ok(None),
            Removal::Text(rest) => Some(rest),
            // Nothing is left. Only a file that an installation made is deleted.
            Removal::Empty(rest) => {
                Some(rest).filter(|_| !is_made_by_installation(&file, before, name))
            }
        };
        Ok(Some(Self {
            file,
            before: text,
            after,
            backup: Backup::Skip,
        }))
    }

    /// File that is changed.
    #[must_use]
    pub fn file(&self) -> &ConfigFile {
        &self.file
    }

    /// Path of the file that is changed.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Lines that change. Long ones are cut: they may have secrets of other servers.
    #[must_use]
    pub fn diff(&self) -> String {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let change = diff(&text(&self.before), &text(&self.after));
        let lines = change.lines().filter(|line| !line.starts_with(' '));
        let lines = lines.map(|line| match line.char_indices().nth(MAX_LINE) {
            Some((end, _)) => format!("{}…\n", &line[..end]),
            None => format!("{line}\n"),
        });
        lines.collect()
    }

    /// Makes the change.
    ///
    /// # Errors
    ///
    /// The file was changed in the meantime, or can't be written.
    pub fn apply(&self) -> Result<(), FileError> {
        let (before, after) = (self.before.as_deref(), self.after.as_deref());
        Change::new(self.path(), before, after)
            .set_private(self.file.is_private())
            .set_backup(self.backup)
            .apply()
    }
}

/// Returns whether a file is as an installation of its one entry makes it.
fn is_made_by_installation(file: &ConfigFile, text: &str, name: &str) -> bool {
    let servers = file.installed_servers(text).unwrap_or_default();
    let entry = servers.into_iter().find(|server| server.name == name);
    let server = entry.and_then(|entry| entry.connection.to_server(name));
    let made = server.and_then(|server| file.install("", &server).ok());
    made.is_some_and(|made| made == text)
}

impl Connection {
    /// Server that an installation writes as such an entry, if it writes such entries.
    #[must_use]
    pub fn to_server(&self, name: &str) -> Option<Server> {
        match self {
            Self::Stdio {
                command,
                args,
                env,
                pass_env,
                ..
            } => {
                let server = Server::stdio(name, command, args);
                let server = env
                    .iter()
                    .fold(server, |server, (name, value)| server.set_env(name, value));
                Some(pass_env.iter().fold(server, Server::pass_env))
            }
            Self::Http { url, headers, .. } if headers.is_empty() => Some(Server::http(name, url)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Places, Platform, Scope};

    #[test]
    fn server_of_another_program_is_replaced_only_on_demand() {
        let home = tempfile::tempdir().unwrap();
        let places = Places::new(Platform::Linux, home.path());
        let cursor = Client::find("cursor").unwrap();
        let file = cursor.file(Scope::User, &places, "tools").unwrap();
        let other = Server::stdio("tools", "/usr/bin/other", ["serve"]);
        let own = Server::stdio("tools", "/usr/bin/mcpd", ["stdio", "/srv"]);
        let plan = |server, replaces| Plan::install(file.clone(), server, replaces);
        plan(&other, false).unwrap().unwrap().apply().unwrap();
        let error = plan(&own, false).unwrap_err();
        assert!(matches!(error, PlanError::Occupied { .. }), "{error}");
        let replacement = plan(&own, true).unwrap().unwrap();
        let diff = replacement.diff();
        assert!(
            diff.contains("-      \"command\": \"/usr/bin/other\""),
            "{diff}"
        );
        // The file has changed since this was planned.
        plan(&Server::http("x", "http://x"), false)
            .unwrap()
            .unwrap()
            .apply()
            .unwrap();
        assert!(replacement.apply().is_err());
    }
}
