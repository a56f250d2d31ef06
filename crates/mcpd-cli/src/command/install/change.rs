//! Changes of clients' files: planned for all of them, shown, asked for once, and made.

use std::path::Path;

use anyhow::{Context as _, bail};
use mcpd_clients::plan::{Plan, PlanError};
use mcpd_clients::{ConfigFile, Server};
use mcpd_doctor::entry;

use crate::exit_code::ExitCode;
use crate::output;

/// Outcome of planning: a change with the message after it, or why there is none.
pub(super) enum Planned {
    Change(Plan, String),
    Unchanged(String),
}

/// Plans to write a server to a file.
///
/// # Errors
///
/// The file can't be edited, or has another server of that name, which only `replaces_other`
/// replaces.
pub(super) fn installation(
    file: ConfigFile,
    server: &Server,
    replaces_other: bool,
    done: String,
) -> anyhow::Result<Planned> {
    let path = file.path().to_owned();
    match Plan::install(file, server, replaces_other) {
        Ok(Some(plan)) => Ok(Planned::Change(plan, done)),
        Ok(None) => Ok(Planned::Unchanged(format!(
            "unchanged: `{}` is in {} already",
            server.name,
            path.display()
        ))),
        Err(error @ PlanError::Occupied { .. }) => bail!("{}", explain(&error)),
        Err(error) => Err(error.into()),
    }
}

/// Explains which server is in the way.
fn explain(error: &PlanError) -> String {
    let PlanError::Occupied { connection, .. } = error else {
        return error.to_string();
    };
    let server = entry::describe(connection);
    format!("{error}, `{server}`; choose another with `--name`, or remove it first")
}

/// Plans to take the server of that name out of a file.
///
/// # Errors
///
/// The file can't be edited.
pub(super) fn removal(file: ConfigFile, name: &str) -> anyhow::Result<Planned> {
    let (path, title) = (file.path().to_owned(), file.client().title());
    Ok(match Plan::remove(file, name)? {
        Some(plan) => Planned::Change(plan, format!("{title} no longer has `{name}`")),
        None => Planned::Unchanged(format!(
            "unchanged: there is no `{name}` in {}",
            path.display()
        )),
    })
}

/// Shows the changes, asks for them once, and makes each. Other changes are made even if one
/// fails.
pub(super) fn make(plans: &[(Plan, String)], is_agreed: bool) -> anyhow::Result<ExitCode> {
    if plans.is_empty() {
        return Ok(ExitCode::Success);
    }
    for (plan, _) in plans {
        output::note(&format!("{}\n{}", plan.path().display(), plan.diff()));
    }
    let paths: Vec<_> = plans.iter().map(|(plan, _)| plan.path()).collect();
    if !is_agreed && !confirm(&paths)? {
        return Ok(ExitCode::Failure);
    }
    let mut code = ExitCode::Success;
    for (plan, done) in plans {
        let applied = plan.apply();
        match applied.context("change the configuration of the client") {
            Ok(()) => output::write_text(done)?,
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
