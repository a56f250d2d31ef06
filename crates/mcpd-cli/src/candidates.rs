//! Names that a shell completes: tools, prompts and arguments of the place on the command line.
//!
//! A shell runs mcpd at each press of the key, with the words so far behind `--`. What scripts said
//! of themselves is remembered, so that most answers run nothing.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use clap_complete::engine::CompletionCandidate;
use mcpd_clients::Client;
use mcpd_config::File;
use mcpd_exec::Limits;
use mcpd_server::Catalog;
use serde_json::Value;
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::args::{self, Command, CommandLine};

/// Longest time for an answer: the line is typed meanwhile.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Names of the clients.
pub(crate) fn clients() -> Vec<CompletionCandidate> {
    let clients = Client::all().iter();
    let clients = clients.map(|one| candidate(one.name().to_owned(), Some(one.title().to_owned())));
    let all = candidate(
        "all".to_owned(),
        Some("Each client that is found".to_owned()),
    );
    clients.chain([all]).collect()
}

/// Names of the tools.
pub(crate) fn tools(typed: &OsStr) -> Vec<CompletionCandidate> {
    let names = |catalog: &Catalog, _: &ArgMatches| {
        let tools = catalog.tools().iter();
        let tools = tools.map(|tool| {
            let description = tool.definition().description.clone();
            candidate(tool.path().to_string(), description)
        });
        tools.collect()
    };
    starting_with(typed, of_catalog(names))
}

/// Names of the prompts.
pub(crate) fn prompts(typed: &OsStr) -> Vec<CompletionCandidate> {
    let names = |catalog: &Catalog, _: &ArgMatches| {
        let prompts = catalog.prompts().iter();
        let prompts = prompts.map(|prompt| {
            let description = prompt.definition().description.clone();
            candidate(prompt.path().to_string(), description)
        });
        prompts.collect()
    };
    starting_with(typed, of_catalog(names))
}

/// URIs of the resources.
pub(crate) fn resources(typed: &OsStr) -> Vec<CompletionCandidate> {
    let uris = |catalog: &Catalog, _: &ArgMatches| {
        let resources = catalog.resources().iter().map(|one| one.definition());
        let resources = resources.map(|one| candidate(one.uri.clone(), one.description.clone()));
        resources.collect()
    };
    starting_with(typed, of_catalog(uris))
}

/// Arguments of the tool, each with `=`.
pub(crate) fn arguments(typed: &OsStr) -> Vec<CompletionCandidate> {
    let names = |catalog: &Catalog, line: &ArgMatches| {
        let tool = line.try_get_one::<String>("tool").ok().flatten();
        let Some(tool) = tool.and_then(|tool| catalog.tool(tool)) else {
            return Vec::new();
        };
        let schema = tool.definition().input_schema.get();
        let mut schema: Value = serde_json::from_str(schema).unwrap_or_default();
        let properties = schema["properties"].take();
        let properties = properties.as_object().into_iter().flatten();
        let properties = properties.flat_map(|(name, schema)| argument(name, schema));
        properties.collect()
    };
    starting_with(typed, of_catalog(names))
}

/// An argument with each of its choices, or without a value.
fn argument(name: &str, schema: &Value) -> Vec<CompletionCandidate> {
    let description = schema["description"].as_str().map(str::to_owned);
    let choices = match (&schema["enum"], &schema["type"]) {
        (Value::Array(choices), _) => choices.iter().filter_map(Value::as_str).collect(),
        (_, Value::String(kind)) if kind == "boolean" => vec!["true", "false"],
        _ => vec![""],
    };
    let candidates = choices
        .into_iter()
        .map(|choice| candidate(format!("{name}={choice}"), description.clone()));
    candidates.collect()
}

fn candidate(value: String, description: Option<String>) -> CompletionCandidate {
    let first_line = description.and_then(|text| Some(text.lines().next()?.to_owned()));
    CompletionCandidate::new(value).help(first_line.map(Into::into))
}

fn starting_with(typed: &OsStr, all: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    let typed = typed.as_encoded_bytes();
    let is_wanted = |candidate: &CompletionCandidate| {
        let value = candidate.get_value().as_encoded_bytes();
        value.starts_with(typed)
    };
    all.into_iter().filter(is_wanted).collect()
}

/// Arguments of the command on the line that the shell completes, as far as they are there.
fn line() -> Option<ArgMatches> {
    let line = env::args_os().skip_while(|word| word != "--").skip(1);
    let definition = args::definition().ignore_errors(true);
    let mut matches = definition.try_get_matches_from(line).ok()?;
    matches.remove_subcommand().map(|(_, matches)| matches)
}

/// Reads names from the catalog of the directory on the line; none if it takes too long.
fn of_catalog(
    names: impl FnOnce(&Catalog, &ArgMatches) -> Vec<CompletionCandidate>,
) -> Vec<CompletionCandidate> {
    let Some(line) = line() else {
        return Vec::new();
    };
    let Ok(Some(directory)) = line.try_get_one::<PathBuf>("directory") else {
        return Vec::new();
    };
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let found = runtime.block_on(async { timeout(TIME_LIMIT, catalog_of(directory)).await.ok()? });
    runtime.shutdown_timeout(Duration::ZERO);
    found.map_or_else(Vec::new, |catalog| names(&catalog, &line))
}

/// Catalog of a directory, as `mcpd list` finds it.
async fn catalog_of(directory: &Path) -> Option<Arc<Catalog>> {
    let words = ["mcpd".into(), "list".into(), directory.into()];
    let line = CommandLine::parse(words.into_iter()).ok()?;
    let file = File::find(line.search()).ok()?;
    let Command::List(list) = line.combine(&file).ok()?.command else {
        return None;
    };
    let server = mcpd_config::server_for_query(
        &file,
        list.roots.all(),
        &list.enabling,
        &list.scanning,
        &list.confinement,
        Limits::default(),
    );
    let server = server.await.ok()?.start().ok()?;
    server.catalog_ready().await;
    Some(server.catalog())
}
