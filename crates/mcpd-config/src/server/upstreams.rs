//! MCP servers of `[[upstream]]`: connection, and the selection of what is served.

use anyhow::Result;
use mcpd_exec::Executor;
use mcpd_scriptspec::{PathError, ScriptPath};
use mcpd_server::Settings;
use mcpd_upstream::{Address, Program, Upstream};

use super::environment;
use crate::file::File;
use crate::tables::UpstreamTable;
use crate::value::Spanned;

/// Adds all servers to `settings`. Programs that print secrets run with `executor`,
/// and not at all without one.
///
/// # Errors
///
/// A faulty table, with its place.
pub(crate) async fn add(
    mut settings: Settings,
    file: &File,
    executor: Option<&Executor>,
) -> Result<Settings> {
    for table in &file.tables.upstream {
        settings = settings.source(upstream(file, table, executor).await?);
    }
    Ok(settings)
}

/// Builds the server that a table describes.
async fn upstream(
    file: &File,
    table: &UpstreamTable,
    executor: Option<&Executor>,
) -> Result<Upstream> {
    check_path(file, "name", &table.name)?;
    let name = table.name.get_ref();
    let mut upstream = match (&table.command, &table.url) {
        (Some(command), None) => {
            Upstream::stdio(name, program(file, table, command, executor).await?)
        }
        (None, Some(url)) => Upstream::http(name, address(file, table, url, executor).await?),
        _ => {
            let what = format!("`{name}`: expected either `command` or `url`");
            return Err(file.error(table.name.span(), &what));
        }
    };
    if let Some(prefix) = &table.prefix {
        if !prefix.get_ref().is_empty() {
            check_path(file, "prefix", prefix)?;
        }
        upstream = upstream.prefix(prefix.get_ref());
    }
    if let Some(tools) = &table.tools {
        let wrong = |error| file.error(tools.span(), &format!("`tools`: failed to {error}"));
        upstream = upstream.tools(tools.get_ref()).map_err(wrong)?;
    }
    if let Some(timeout) = table.timeout {
        upstream = upstream.timeout(timeout.0);
    }
    Ok(upstream)
}

fn check_path(file: &File, key: &str, path: &Spanned<String>) -> Result<()> {
    let wrong = |error: PathError| file.error(path.span(), &format!("`{key}`: {error}"));
    path.get_ref().parse::<ScriptPath>().map_err(wrong)?;
    Ok(())
}

/// Launches a program with arguments, in the directory of the file.
async fn program(
    file: &File,
    table: &UpstreamTable,
    command: &Spanned<Vec<String>>,
    executor: Option<&Executor>,
) -> Result<Program> {
    let wrong = |what: &str| Err(file.error(command.span(), what));
    if table.token.is_some() || !table.headers.is_empty() {
        return wrong("`token` and `headers` require `url`");
    }
    let Some((program, arguments)) = command.get_ref().split_first() else {
        return wrong("`command`: expected a program and its arguments");
    };
    let mut program = Program::new(file.program(program))
        .args(arguments)
        .current_dir(file.directory())
        .environment(environment::environment(file)?);
    for (name, value) in environment::variables(file, &table.env, executor).await? {
        program = program.env(name, value);
    }
    Ok(program)
}

/// Connects to a URL, and presents credentials to its server.
async fn address(
    file: &File,
    table: &UpstreamTable,
    url: &Spanned<String>,
    executor: Option<&Executor>,
) -> Result<Address> {
    if !table.env.is_empty() {
        let what = "`env` requires `command`";
        return Err(file.error(url.span(), what));
    }
    let wrong = |error| file.error(url.span(), &format!("failed to {error}"));
    let mut address = Address::new(url.get_ref()).map_err(wrong)?;
    for (name, source) in &table.headers {
        let value = environment::value(file, name.get_ref(), source, executor).await?;
        let wrong = |error| file.error(name.span(), &format!("failed to {error}"));
        address = address.header(name.get_ref(), &value).map_err(wrong)?;
    }
    if let Some(source) = &table.token {
        address = address.token(environment::value(file, "token", source, executor).await?);
    }
    Ok(address)
}
