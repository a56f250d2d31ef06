//! Static check of a configuration: the first fault of each part, found without starting anything.

use std::error::Error;
use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::Context as _;
use mcpd_exec::Limits;
use mcpd_server::Settings;
use serde::Serialize;

use crate::file::File;
use crate::options::{Confinement, Enabling};
use crate::roots::is_address;
use crate::server::{
    self, clients, cluster, identity, interpreters, oauth, policy, profiles, run_command, search,
    sources,
};
use crate::tables::TlsTable;
use crate::{listening, log_filter};

/// A fault at a place of a file.
#[derive(Debug, Clone, Serialize)]
pub struct LocatedFault {
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
    /// In characters.
    pub(crate) column: usize,
    pub(crate) message: String,
    #[serde(skip)]
    pub(crate) span: Range<usize>,
    /// Known name that the one at `span` must mean.
    #[serde(skip)]
    pub(crate) meant: Option<String>,
}

impl LocatedFault {
    /// Bytes of the file with the fault; empty if it is at one place.
    #[must_use]
    pub fn span(&self) -> &Range<usize> {
        &self.span
    }

    /// The fault, for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The known name that a misspelt one must mean.
    #[must_use]
    pub fn intended_name(&self) -> Option<&str> {
        self.meant.as_deref()
    }
}

impl fmt::Display for LocatedFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("apply the configuration: ")?;
        ShortFault(self).fmt(f)
    }
}

impl Error for LocatedFault {}

/// Displays a fault without the action that failed.
struct ShortFault<'a>(&'a LocatedFault);

impl fmt::Display for ShortFault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LocatedFault {
            file,
            line,
            column,
            message,
            ..
        } = self.0;
        write!(f, "{}:{line}:{column}: {message}", file.display())
    }
}

/// A fault, with its place if it has one.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Fault {
    /// A fault at a place of a file.
    At(LocatedFault),
    /// A fault without a place.
    Anywhere {
        /// The fault, for people.
        message: String,
    },
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
            Self::At(misplaced) => ShortFault(misplaced).fmt(f),
            Self::Anywhere { message } => f.write_str(message),
        }
    }
}

/// Finds all faults. Reads files, and runs no programs.
pub async fn faults(file: &File) -> Vec<anyhow::Error> {
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
        clients::tokens(file, &[]).err(),
        clients::certificates(file, &[], file.tables.tls.client_ca.is_some()).err(),
        clients::principal(file, &[], clients::AGENT, None).err(),
        oauth::oauth(file, &[]).err(),
        sources.err(),
        cluster::check(file).err(),
        run_command::run_command(file, &Enabling::default()).err(),
        search::search(file).err(),
        file.kit().err(),
        identity::add(Settings::default(), file).err(),
        profiles::add(Settings::default(), file).err(),
        listening::addresses(file).err(),
        listening::metrics(file).err(),
        log(file).err(),
        state_key(file).err(),
        certificates(file).err(),
        sources_and_lock(file).err(),
    ];
    let mut faults: Vec<anyhow::Error> = found.into_iter().flatten().collect();
    faults.extend(directories(file));
    // Parts that use one sandbox report the same fault.
    faults.dedup_by_key(|fault| fault.to_string());
    faults
}

/// Checks the sources among the roots, and that each was reviewed.
fn sources_and_lock(file: &File) -> anyhow::Result<()> {
    let sources = file.sources()?;
    if sources.is_empty() {
        return Ok(());
    }
    let lock = file.lock()?;
    let unknown = sources.iter().find(|root| lock.get(&root.source).is_none());
    match unknown {
        None => Ok(()),
        Some(root) => anyhow::bail!(
            "serve the source `{}`: it was never reviewed; run `mcpd update`",
            root.address
        ),
    }
}

/// Checks the log filter.
fn log(file: &File) -> anyhow::Result<()> {
    let Some(filter) = &file.tables.log.filter else {
        return Ok(());
    };
    let wrong = |error| file.failure("filter", filter.span(), &error);
    log_filter::parse(filter.get_ref()).map(drop).map_err(wrong)
}

/// Checks the file of the state key.
fn state_key(file: &File) -> anyhow::Result<()> {
    let Some(key) = &file.tables.state_key_file else {
        return Ok(());
    };
    let wrong = |error| file.failure("state_key_file", key.span(), &error);
    let read = server::state_key(&file.absolute(key.get_ref()));
    read.map(drop).map_err(wrong)
}

/// Checks the files of the certificates.
fn certificates(file: &File) -> anyhow::Result<()> {
    let TlsTable {
        certificate,
        key,
        client_ca,
        client_certificates: demand,
    } = &file.tables.tls;
    let files = [
        ("certificate", certificate),
        ("key", key),
        ("client_ca", client_ca),
    ];
    let mut named = files
        .iter()
        .filter_map(|(name, path)| Some((*name, path.as_ref()?.span())));
    let demand_itself = || Some(("client_certificates", demand.as_ref()?.span()));
    let Some((name, span)) = named.next().or_else(demand_itself) else {
        return Ok(());
    };
    let files = files.map(|(_, path)| path.as_ref().map(|path| file.absolute(path.get_ref())));
    let demand = demand.as_ref().map(|demand| *demand.get_ref());
    let wrong = |error| file.failure(name, span, &error);
    listening::load(files, demand).map(drop).map_err(wrong)
}

/// Configured directories that are missing or unreadable.
fn directories(file: &File) -> impl Iterator<Item = anyhow::Error> {
    let tables = &file.tables;
    let roots = file.root_texts();
    let roots = roots.filter(|(_, root, _)| !is_address(root));
    let cgroup = tables.cgroup.iter().map(|path| ("cgroup", path));
    let workdir = tables.run_command.workdir.iter();
    let workdir = workdir.map(|path| ("workdir", path));
    let others = cgroup.chain(workdir);
    let others = others.map(|(key, path)| (key, path.get_ref().as_path(), path.span()));
    roots.chain(others).filter_map(|(key, path, span)| {
        let directory = file.absolute(path);
        let read = fs::read_dir(&directory);
        let read = read.with_context(|| format!("read the directory `{}`", directory.display()));
        Some(file.failure(key, span, &read.err()?))
    })
}
