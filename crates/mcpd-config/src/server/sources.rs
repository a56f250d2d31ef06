//! Sources of tools besides scripts: the action endpoint of `MCP_ENDPOINT`, those of
//! `[[endpoint]]`, and the servers of `[[upstream]]`. An mcpd that is itself a source has none.

use std::path::Path;

use anyhow::{Context as _, bail};
use mcpd_exec::Executor;
use mcpd_scriptspec::{PathError, ScriptPath};
use mcpd_server::Settings;
use mcpd_server::endpoint::Endpoint;
use mcpd_server::source::NO_SOURCES;

use super::{environment, upstreams};
use crate::file::File;
use crate::tables::EndpointTable;
use crate::value::Spanned;
use crate::variables::variable;

const ENDPOINT: &str = "MCP_ENDPOINT";

/// Adds all sources to `settings`. Programs that print secrets run with `executor`,
/// and not at all without one.
///
/// # Errors
///
/// A faulty table, with its place.
pub(crate) async fn add(
    mut settings: Settings,
    file: &File,
    executor: Option<&Executor>,
) -> anyhow::Result<Settings> {
    if !has_sources(file)? {
        return Ok(settings);
    }
    if let Some(line) = of_variable()? {
        settings = settings.source(endpoint_of_variable(&line)?);
    }
    for table in &file.tables.endpoint {
        settings = settings.source(endpoint_of_table(file, table, executor).await?);
    }
    upstreams::add(settings, file, executor).await
}

/// Returns whether any source is configured.
pub(crate) fn has_sources(file: &File) -> anyhow::Result<bool> {
    if variable(NO_SOURCES)?.is_some() {
        return Ok(false);
    }
    let tables = &file.tables;
    let in_file = !tables.endpoint.is_empty() || !tables.upstream.is_empty();
    Ok(in_file || of_variable()?.is_some())
}

/// Returns whether `pattern` may match a tool of a source, which may take its time to answer.
pub(crate) fn may_match_source(file: &File, pattern: &str) -> anyhow::Result<bool> {
    // Workers come and go.
    if !file.tables.cluster.url.is_empty() {
        return Ok(true);
    }
    if !has_sources(file)? {
        return Ok(false);
    }
    let tables = &file.tables;
    let endpoints = tables.endpoint.iter().map(|table| table.prefix.as_ref());
    let upstreams = tables.upstream.iter().map(|table| {
        let prefix = table.prefix.as_ref().unwrap_or(&table.name);
        Some(prefix).filter(|prefix| !prefix.get_ref().is_empty())
    });
    let mut prefixes = endpoints.chain(upstreams);
    let is_below = |prefix: Option<&Spanned<String>>| {
        prefix.is_none_or(|prefix| {
            let rest = pattern.strip_prefix(prefix.get_ref().as_str());
            rest.is_some_and(|rest| rest.starts_with('/'))
        })
    };
    let is_open = pattern.starts_with(['*', '?', '[', '{']);
    Ok(is_open || of_variable()?.is_some() || prefixes.any(is_below))
}

fn of_variable() -> anyhow::Result<Option<String>> {
    let line = variable(ENDPOINT)?;
    Ok(line.filter(|line| !line.trim().is_empty()))
}

fn endpoint_of_variable(line: &str) -> anyhow::Result<Endpoint> {
    let Some(words) = shlex::split(line) else {
        bail!("use the command of {ENDPOINT}: unclosed quotation mark");
    };
    if words.is_empty() {
        bail!("use the command of {ENDPOINT}: expected a program and its arguments");
    }
    let here = std::path::absolute(Path::new(".")).context("find the current directory")?;
    Ok(Endpoint::new(words, here))
}

async fn endpoint_of_table(
    file: &File,
    table: &EndpointTable,
    executor: Option<&Executor>,
) -> anyhow::Result<Endpoint> {
    let command = table.command.get_ref();
    if command.is_empty() {
        let what = "`command`: expected a program and its arguments";
        return Err(file.error(table.command.span(), what));
    }
    let mut endpoint = Endpoint::new(file.command(command), file.directory());
    if let Some(prefix) = &table.prefix {
        endpoint = endpoint.prefix(prefix.get_ref());
        let wrong = |error: PathError| file.error(prefix.span(), &format!("`prefix`: {error}"));
        prefix.get_ref().parse::<ScriptPath>().map_err(wrong)?;
    }
    if let Some(timeout) = table.timeout {
        endpoint = endpoint.timeout(timeout.0);
    }
    if let Some(refresh) = table.refresh {
        endpoint = endpoint.refresh(refresh.0);
    }
    for (name, value) in environment::variables(file, &table.env, executor).await? {
        endpoint = endpoint.variable(name, value);
    }
    Ok(endpoint)
}
