//! Audit log as `mcpd.toml` configures it; on unless switched off.

use std::path::PathBuf;

use anyhow::Context as _;
use mcpd_server::Audit;
use mcpd_server::audit::{Arguments, Mode, Options};

use crate::file::File;
use crate::tables;
use crate::{directories, private_file};

/// Opens the audit log of a server, if it is on.
///
/// # Errors
///
/// The log is required and has no path, or the system refuses a thread.
pub fn audit(file: &File) -> anyhow::Result<Option<Audit>> {
    let Some((path, options)) = target(file)? else {
        return Ok(None);
    };
    // Read access for its group can be intended.
    if path.is_file() && private_file::permissions(&path) & 0o007 != 0 {
        let path = path.display();
        tracing::warn!("audit log `{path}` is readable by all users; fix it with `chmod 600`");
    }
    Audit::new(path, options)
        .map(Some)
        .context("start the thread of the audit log")
}

/// Path and options of the log, if it is on.
///
/// # Errors
///
/// The log is required and has no path.
pub(crate) fn target(file: &File) -> anyhow::Result<Option<(PathBuf, Options)>> {
    let table = &file.tables.audit;
    let mut options = Options::default();
    options.arguments = match table.args {
        tables::AuditArguments::None => Arguments::None,
        tables::AuditArguments::Names => Arguments::Names,
        tables::AuditArguments::Hash => Arguments::Hash,
        tables::AuditArguments::Full => Arguments::Full,
    };
    options.max_size = table.max_size.map_or(options.max_size, |amount| amount.0);
    options.keep = table.keep.unwrap_or(options.keep);
    options.mode = match table.mode {
        tables::AuditMode::Require => Mode::Require,
        tables::AuditMode::BestEffort => Mode::BestEffort,
        tables::AuditMode::Off => return Ok(None),
    };
    let path = match audit_log(file) {
        Err(error) if options.mode == Mode::BestEffort => {
            tracing::warn!("audit log is disabled: failed to {error:#}");
            return Ok(None);
        }
        path => path?,
    };
    Ok(Some((path, options)))
}

/// Path of the log.
///
/// # Errors
///
/// No path is configured, and there is no home directory.
pub fn audit_log(file: &File) -> anyhow::Result<PathBuf> {
    match &file.tables.audit.path {
        Some(path) => Ok(file.absolute(path)),
        None => Ok(directories::state()?.join("logs/mcp-audit.jsonl")),
    }
}

/// Files of the log, if `file` sets its path. The default path lies in a directory of secrets.
pub(crate) fn files(file: &File) -> Vec<PathBuf> {
    let table = &file.tables.audit;
    let keep = table.keep.unwrap_or(Options::default().keep);
    let Some(path) = &table.path else {
        return Vec::new();
    };
    mcpd_server::audit::files(&file.absolute(path), keep).collect()
}
