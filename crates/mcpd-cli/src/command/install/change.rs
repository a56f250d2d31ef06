//! Changes of clients' files: planned for all of them, shown, asked for once, and made.

use std::path::Path;

use anyhow::{Context as _, bail};
use mcpd_clients::edit::Removal;
use mcpd_clients::file::{self, Backup, Change};
use mcpd_clients::{ConfigFile, Server, diff};
use mcpd_doctor::entry;

use crate::exit_code::ExitCode;
use crate::output;

/// Longest line of a change that is shown whole, in characters.
const MAX_LINE: usize = 160;

/// Change of one client's file.
pub(in crate::command) struct Plan {
    file: ConfigFile,
    before: Option<String>,
    after: Option<String>,
    backup: Backup,
    /// Message after the change.
    done: String,
}

/// Outcome of planning: a change, or why there is none.
pub(in crate::command) enum Planned {
    Change(Plan),
    Unchanged(String),
}

/// Plans to write a server to a file.
///
/// # Errors
///
/// The file can't be edited, or has another server of that name, which only `replaces_other`
/// replaces.
pub(in crate::command) fn installation(
    file: ConfigFile,
    server: &Server,
    replaces_other: bool,
    done: String,
) -> anyhow::Result<Planned> {
    let text = file::read(file.path()).context("read the configuration of the client")?;
    let before = text.as_deref().unwrap_or_default();
    let failed = || format!("edit `{}`", file.path().display());
    let after = file.install(before, server).with_context(failed)?;
    let installed = file.installed_servers(before).with_context(failed)?;
    let old = installed.iter().find(|old| old.name == server.name);
    if let Some(old) = old.filter(|old| !old.connection.starts_mcpd() && !replaces_other) {
        bail!(
            "install `{}`: another server of {} has this name, `{}`; choose another with `--name`, or remove it first",
            server.name,
            file.client().title(),
            entry::describe(&old.connection)
        );
    }
    if after == before {
        let path = file.path().display();
        return Ok(Planned::Unchanged(format!(
            "unchanged: `{}` is in {path} already",
            server.name
        )));
    }
    // The copy of the file is that from before the first installation.
    let is_first = !installed.iter().any(|old| old.connection.starts_mcpd());
    Ok(Planned::Change(Plan {
        file,
        before: text,
        after: Some(after),
        backup: match is_first {
            true => Backup::Replace,
            false => Backup::KeepOld,
        },
        done,
    }))
}

/// Plans to take the server of that name out of a file.
///
/// # Errors
///
/// The file can't be edited.
pub(super) fn removal(file: ConfigFile, name: &str) -> anyhow::Result<Planned> {
    let path = file.path();
    let text = file::read(path).context("read the configuration of the client")?;
    let before = text.as_deref().unwrap_or_default();
    let original = file::read(&file::backup_path(path)).context("read the copy of the file")?;
    let removal = file.remove(before, name, original.as_deref());
    let after = match removal.with_context(|| format!("edit `{}`", path.display()))? {
        Removal::Missing => {
            return Ok(Planned::Unchanged(format!(
                "unchanged: there is no `{name}` in {}",
                path.display()
            )));
        }
        Removal::Text(rest) => Some(rest),
        // Nothing is left. Only a file that an installation made is deleted.
        Removal::Empty(rest) => {
            Some(rest).filter(|_| !is_made_by_installation(&file, before, name))
        }
        _ => None,
    };
    let done = format!("{} no longer has `{name}`", file.client().title());
    Ok(Planned::Change(Plan {
        file,
        before: text,
        after,
        backup: Backup::Skip,
        done,
    }))
}

/// Returns whether a file is as an installation of its one entry makes it.
fn is_made_by_installation(file: &ConfigFile, text: &str, name: &str) -> bool {
    let servers = file.installed_servers(text).unwrap_or_default();
    let entry = servers.into_iter().find(|server| server.name == name);
    let server = entry.and_then(|entry| entry::server(name, &entry.connection));
    let made = server.and_then(|server| file.install("", &server).ok());
    made.is_some_and(|made| made == text)
}

/// Shows the changes, asks for them once, and makes each. Other changes are made even if one
/// fails.
pub(in crate::command) fn make(plans: &[Plan], is_agreed: bool) -> anyhow::Result<ExitCode> {
    if plans.is_empty() {
        return Ok(ExitCode::Success);
    }
    for plan in plans {
        plan.show();
    }
    let paths: Vec<_> = plans.iter().map(|plan| plan.file.path()).collect();
    if !is_agreed && !confirm(&paths)? {
        return Ok(ExitCode::Failure);
    }
    let mut code = ExitCode::Success;
    for plan in plans {
        match plan.apply() {
            Ok(()) => output::write_text(&plan.done)?,
            Err(error) => {
                output::error(&format!("failed to {error:#}"));
                code = ExitCode::Failure;
            }
        }
    }
    Ok(code)
}

/// Asks whether files are to be changed, once for all.
pub(in crate::command) fn confirm(paths: &[&Path]) -> anyhow::Result<bool> {
    let question = match paths {
        [_] => "Change it? [y/N] ",
        _ => "Change all of them? [y/N] ",
    };
    let paths: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let attempt = format!("change `{}`", paths.join("`, `"));
    output::confirm(question, &attempt, "change it")
}

impl Plan {
    /// File that is changed.
    pub(in crate::command) fn file(&self) -> &ConfigFile {
        &self.file
    }

    /// Shows the lines that change. Long ones are cut: they may have secrets of other servers.
    pub(in crate::command) fn show(&self) {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let change = diff(&text(&self.before), &text(&self.after));
        let lines = change.lines().filter(|line| !line.starts_with(' '));
        let lines = lines.map(|line| match line.char_indices().nth(MAX_LINE) {
            Some((end, _)) => format!("{}…\n", &line[..end]),
            None => format!("{line}\n"),
        });
        let path = self.file.path().display();
        output::note(&format!("{path}\n{}", lines.collect::<String>()));
    }

    /// Makes the change.
    ///
    /// # Errors
    ///
    /// The file was changed in the meantime, or can't be written.
    pub(in crate::command) fn apply(&self) -> anyhow::Result<()> {
        Change::new(
            self.file.path(),
            self.before.as_deref(),
            self.after.as_deref(),
        )
        .set_private(self.file.is_private())
        .set_backup(self.backup)
        .apply()
        .context("change the configuration of the client")
    }
}
