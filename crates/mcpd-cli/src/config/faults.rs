//! What is wrong with a configuration, as far as it can be told without starting anything: the first fault of each part.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use mcpd_exec::Limits;
use mcpd_server::Settings;
use serde::Serialize;

use super::file::File;
use super::tables::TlsTable;
use super::{clients, interpreters, listening, oauth, policy, run_command, sources, state_key};
use crate::args::{Confinement, Enabling};
use crate::logging;

/// Something that is wrong at a place of a file.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Misplaced {
    pub(super) file: PathBuf,
    pub(super) line: usize,
    /// In characters.
    pub(super) column: usize,
    pub(super) message: String,
}

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("use the configuration: ")?;
        Place(self).fmt(f)
    }
}

impl Error for Misplaced {}

/// The same without what was to be done.
struct Place<'a>(&'a Misplaced);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misplaced {
            file,
            line,
            column,
            message,
        } = self.0;
        write!(f, "{}:{line}:{column}: {message}", file.display())
    }
}

/// Something that is wrong, with its place if it has one.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum Fault {
    At(Misplaced),
    Anywhere { message: String },
}

impl From<anyhow::Error> for Fault {
    fn from(error: anyhow::Error) -> Self {
        error.downcast().map_or_else(
            |error| Self::Anywhere {
                message: format!("failed to {error:#}"),
            },
            Self::At,
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(misplaced) => Place(misplaced).fmt(f),
            Self::Anywhere { message } => f.write_str(message),
        }
    }
}

/// All that is found. Files are read, and programs are not run.
pub(crate) async fn faults(file: &File) -> Vec<anyhow::Error> {
    let confinement = Confinement {
        sandbox: file
            .tables
            .floor
            .as_ref()
            .map(|name| name.get_ref().clone()),
        ..Confinement::default()
    };
    let policy = policy::policy(file, &confinement, Limits::default(), None).await;
    let sources = sources::add(Settings::default(), file, None).await;
    let found = [
        policy.err(),
        interpreters::interpreters(file).err(),
        clients::tokens(file).err(),
        clients::certificates(file).err(),
        clients::principal(file, clients::AGENT, None).err(),
        oauth::oauth(file).err(),
        sources.err(),
        run_command::run_command(file, &Enabling::default()).err(),
        file.kit().err(),
        listening::addresses(file).err(),
        listening::metrics(file).err(),
        starting(file).err(),
        certificates(file).err(),
    ];
    let mut faults: Vec<anyhow::Error> = found.into_iter().flatten().collect();
    // Parts that make use of one sandbox find the same.
    faults.dedup_by_key(|fault| fault.to_string());
    faults
}

/// What is read before anything is served.
fn starting(file: &File) -> anyhow::Result<()> {
    if let Some(filter) = &file.tables.log.filter {
        logging::check(filter)?;
    }
    if let Some(key) = &file.tables.state_key_file {
        state_key(&file.absolute(key))?;
    }
    Ok(())
}

fn certificates(file: &File) -> anyhow::Result<()> {
    let TlsTable {
        certificate,
        key,
        client_ca,
        client_certificates,
    } = &file.tables.tls;
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| file.absolute(path));
    let files = [certificate, key, client_ca].map(path);
    listening::load(files, *client_certificates).map(drop)
}
