//! Settings of the built-in tool `run_command`, from `[run_command]` and the flags.

use anyhow::Context as _;
use mcpd_server::RunCommand;

use super::policy;
use crate::file::File;
use crate::options::Enabling;
use crate::value::Spanned;

/// Builds the settings of the tool from `file` and the flags.
///
/// # Errors
///
/// A faulty value, with its place.
pub(crate) fn run_command(file: &File, flags: &Enabling) -> anyhow::Result<RunCommand> {
    let table = &file.tables.run_command;
    let mut tool = RunCommand::default();
    if let Some(name) = &table.sandbox {
        tool = tool.sandbox(policy::find_sandbox_profile(
            file,
            name,
            &policy::sandbox_profiles(file)?,
        )?);
    }
    if let Some(workdir) = flags.workdir.clone().or_else(|| file.workdir()) {
        let absolute = std::path::absolute(&workdir)
            .with_context(|| format!("use the directory `{}`", workdir.display()))?;
        tool = tool.directory(absolute);
    }
    if let Some(timeout) = table.timeout {
        tool = tool.timeout(timeout.0);
    }
    if let Some(timeout) = table.max_timeout {
        tool = tool.max_timeout(timeout.0);
    }
    if let Some(words) = &table.shell {
        if words.get_ref().is_empty() {
            let what = "`shell`: expected a program and its arguments";
            return Err(file.error(words.span(), what));
        }
        tool = tool.shell(file.command(words.get_ref()));
    }
    if let Some(allow) = &table.allow {
        if allow.get_ref().is_empty() {
            let what =
                "`allow`: an empty array allows nothing; without `allow` everything is allowed";
            return Err(file.error(allow.span(), what));
        }
        tool = with_patterns(file, tool, ("allow", allow.get_ref()), RunCommand::allow)?;
    }
    let deny = table.deny.as_deref().unwrap_or_default();
    let tool = with_patterns(file, tool, ("deny", deny), RunCommand::deny)?;
    if let (Some(words), Err(what)) = (&table.shell, tool.check_shell()) {
        return Err(file.error(words.span(), &format!("`shell`: {what}")));
    }
    Ok(tool)
}

fn with_patterns<E: std::fmt::Display>(
    file: &File,
    tool: RunCommand,
    (key, patterns): (&str, &[Spanned<String>]),
    add: impl Fn(RunCommand, &str) -> Result<RunCommand, E>,
) -> anyhow::Result<RunCommand> {
    patterns.iter().try_fold(tool, |tool, pattern| {
        let wrong = |error| file.failure(key, pattern.span(), &error);
        add(tool, pattern.get_ref()).map_err(wrong)
    })
}
