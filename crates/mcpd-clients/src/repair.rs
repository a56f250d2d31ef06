//! Faults of entries that an installation made once, and what it would write now.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::client::Scope;
use crate::{ConfigFile, Connection, InstalledServer, Server};

/// Entry of mcpd that can't work as it is, and the one to write in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// Faults of the entry.
    pub faults: Vec<EntryFault>,
    /// Server to install in its place.
    pub server: Server,
}

/// Fault of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryFault {
    /// The program was moved or removed.
    #[non_exhaustive]
    ProgramGone {
        /// Path in the entry.
        program: String,
    },
    /// A client that a desktop starts gives the server hardly any `PATH`, and the entry sets none.
    PathMissing,
    /// A directory in the `PATH` of the entry is gone, and programs that scripts need with it.
    #[non_exhaustive]
    DirectoryGone {
        /// The directory.
        directory: String,
    },
}

impl fmt::Display for EntryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProgramGone { program } => write!(f, "its program `{program}` is gone"),
            Self::PathMissing => f.write_str("it sets no PATH, and a desktop gives hardly any"),
            Self::DirectoryGone { directory } => {
                write!(f, "the directory `{directory}` of its PATH is gone")
            }
        }
    }
}

impl Connection {
    /// Returns whether mcpd is what the client starts: `mcpd stdio` or `mcpd connect`.
    #[must_use]
    pub fn starts_mcpd(&self) -> bool {
        let Self::Stdio { command, args, .. } = self else {
            return false;
        };
        let name = Path::new(command).file_stem();
        let is_verb = |verb: &String| verb == "stdio" || verb == "connect";
        name.is_some_and(|name| name == "mcpd") && args.first().is_some_and(is_verb)
    }
}

impl ConfigFile {
    /// Repair of an entry of this file that starts mcpd, with the program and the `PATH` of now;
    /// none if it needs none. Entries in the file of a project are left to its users.
    #[must_use]
    pub fn repair(
        &self,
        installed: &InstalledServer,
        program: &str,
        search_path: &str,
    ) -> Option<Repair> {
        let Connection::Stdio {
            command,
            args,
            env,
            pass_env,
            ..
        } = &installed.connection
        else {
            return None;
        };
        if self.scope() == Scope::Project || !installed.connection.starts_mcpd() {
            return None;
        }
        let is_gone = Path::new(command).is_absolute() && !Path::new(command).exists();
        let program_fault = is_gone.then(|| EntryFault::ProgramGone {
            program: command.clone(),
        });
        let path_fault = self.path_fault(args, env);
        let mut env = env.clone();
        if path_fault.is_some() {
            env.insert("PATH".to_owned(), search_path.to_owned());
        }
        let faults: Vec<_> = program_fault.into_iter().chain(path_fault).collect();
        if faults.is_empty() {
            return None;
        }
        let command = if is_gone { program } else { command };
        let server = Server::stdio(&installed.name, command, args);
        let server = env
            .into_iter()
            .fold(server, |server, (name, value)| server.set_env(name, value));
        Some(Repair {
            faults,
            server: pass_env.iter().fold(server, Server::pass_env),
        })
    }

    /// Fault of the `PATH` of an entry that serves scripts.
    fn path_fault(&self, args: &[String], env: &BTreeMap<String, String>) -> Option<EntryFault> {
        let serves = args.first().is_some_and(|verb| verb == "stdio");
        if !serves || !self.client().is_graphical() || !self.client().takes_path() {
            return None;
        }
        let Some(path) = env.get("PATH") else {
            return Some(EntryFault::PathMissing);
        };
        let gone = std::env::split_paths(path).find(|one| one.is_absolute() && !one.exists());
        gone.map(|directory| EntryFault::DirectoryGone {
            directory: directory.to_string_lossy().into_owned(),
        })
    }
}
