//! Tool patterns that match nothing. A rule meant to deny a tool would
//! otherwise deny nothing, unnoticed.

use anyhow::anyhow;
use mcpd_scriptspec::{ScriptPath, suggest};
use mcpd_server::Catalog;
use mcpd_server::policy::CallPattern;

use super::sources;
use crate::faults::Fault;
use crate::file::File;
use crate::options::Selecting;
use crate::value::Spanned;

/// Faults of the tool patterns in `file` and of the flags that match nothing in `catalog`, and no
/// tool that a source may still add.
///
/// # Errors
///
/// A pattern is faulty, or a variable that decides about sources can't be read.
pub fn unmatched_patterns(
    file: &File,
    flags: &Selecting,
    catalog: &Catalog,
) -> anyhow::Result<Vec<Fault>> {
    let paths = paths(catalog);
    let mut unmatched = Vec::new();
    for (key, pattern) in patterns(file) {
        let text = pattern.get_ref();
        if !matches(file, &paths, text)? {
            let what = format!("`{key}`: {}", words(&paths, text));
            unmatched.push(file.error(pattern.span(), &what).into());
        }
    }
    let tools = flags.tools.iter().map(|pattern| ("--tools", pattern));
    let exclude = flags.exclude.iter().map(|pattern| ("--exclude", pattern));
    for (flag, pattern) in tools.chain(exclude) {
        if !matches(file, &paths, pattern)? {
            unmatched.push(anyhow!("`{flag}`: {}", words(&paths, pattern)).into());
        }
    }
    Ok(unmatched)
}

/// Returns whether a pattern matches one of `paths`, or a tool that a source may still add.
fn matches(file: &File, paths: &[&ScriptPath], pattern: &str) -> anyhow::Result<bool> {
    let calls = CallPattern::default().tool(pattern)?;
    let is_matched = paths.iter().any(|path| calls.matches_tool(path));
    Ok(is_matched || sources::may_match_source(file, pattern)?)
}

fn words(paths: &[&ScriptPath], pattern: &str) -> String {
    let nearest = suggest(pattern, paths.iter().map(|path| path.as_str()));
    let hint = nearest.map_or_else(
        || "`mcpd list` shows all paths".to_owned(),
        |path| format!("did you mean `{path}`?"),
    );
    format!("`{pattern}` matches nothing; {hint}")
}

/// Logs the unmatched patterns.
pub fn warn_of_unmatched(file: &File, flags: &Selecting, catalog: &Catalog) {
    match unmatched_patterns(file, flags, catalog) {
        Ok(faults) => faults.iter().for_each(|fault| tracing::warn!("{fault}")),
        Err(error) => tracing::warn!(
            "patterns in the configuration not checked for matches: failed to {error:#}"
        ),
    }
}

/// Paths of everything in the catalog, including faulty scripts.
fn paths(catalog: &Catalog) -> Vec<&ScriptPath> {
    let scripts = catalog.scan().scripts.iter().map(|script| &script.path);
    let tools = catalog.tools().iter().map(|tool| tool.path());
    let prompts = catalog.prompts().iter().map(|prompt| prompt.path());
    let resources = catalog.resources().iter().map(|resource| resource.path());
    let templates = catalog.templates().iter().map(|template| template.path());
    let offered = tools.chain(prompts).chain(resources).chain(templates);
    scripts.chain(offered).collect()
}

/// All tool patterns, with their keys.
fn patterns(file: &File) -> impl Iterator<Item = (&'static str, &Spanned<String>)> {
    let tables = &file.tables;
    let of_tools = tables.tool.iter().map(|tool| ("match", &tool.pattern));
    let clients = tables.token.iter().chain(&tables.certificate);
    let of_clients = clients.flat_map(|client| &client.tools);
    let scopes = tables.oauth.iter().flat_map(|oauth| &oauth.get_ref().scope);
    let of_scopes = scopes.map(|scope| scope.tools.get_ref());
    let profiles = tables.profile.values();
    let selected = profiles.flat_map(|profile| {
        let tools = profile.tools.iter().map(|tools| ("tools", tools));
        tools.chain([("exclude", &profile.exclude)])
    });
    let always_listed = [("always_listed", &tables.search.always_listed)];
    let granted = of_clients.chain(of_scopes).map(|tools| ("tools", tools));
    let rules = tables.rule.iter().map(|rule| rule.get_ref());
    let judged = rules.flat_map(|rule| {
        let allowed = rule.allow.iter().map(|allow| ("allow", allow.get_ref()));
        allowed.chain(rule.deny.iter().map(|deny| ("deny", deny.get_ref())))
    });
    let lists = granted.chain(judged).chain(selected).chain(always_listed);
    of_tools.chain(lists.flat_map(|(key, list)| list.iter().map(move |pattern| (key, pattern))))
}
