//! Selections of tools: those of the flags, and the named ones of `[profile.NAME]`.

use anyhow::anyhow;
use mcpd_server::policy::{Access, Selection};
use mcpd_server::{Principal, Settings};

use crate::file::{File, suggestion};
use crate::options::{Selecting, SelectionParts};
use crate::tables::ProfileTable;
use crate::value::Spanned;

/// Maximum length of the name of a profile, in bytes.
const MAX_NAME: usize = 64;

/// Adds all profiles to the settings of a server, which serves each at a path of its own.
///
/// # Errors
///
/// A faulty profile, with its place.
pub(crate) fn add(settings: Settings, file: &File) -> anyhow::Result<Settings> {
    let profiles = file.tables.profile.iter();
    profiles
        .into_iter()
        .try_fold(settings, |settings, (name, table)| {
            let selection = selection(file, name, table)?;
            let clients = table.clients.iter().map(String::as_str);
            let added = settings.selection(name.get_ref(), selection, clients);
            added.map_err(|error| file.failure("clients", name.span(), &error))
        })
}

/// Selection of the flags: a profile, narrowed by the others.
///
/// # Errors
///
/// There is no such profile, or a pattern is invalid.
pub(crate) fn requested(file: &File, flags: &Selecting) -> anyhow::Result<Vec<Selection>> {
    let mut selections = Vec::new();
    if let Some(name) = &flags.profile {
        let profile = find(file, name).map_err(|what| anyhow!("use `--profile {name}`: {what}"))?;
        selections.push(profile?);
    }
    let own = flags.selection()?;
    if !own.is_everything() {
        selections.push(own);
    }
    Ok(selections)
}

/// The client that started this process, with what the flags select and nothing else.
///
/// # Errors
///
/// There is no such profile, or a pattern is invalid.
pub fn selected(file: &File, flags: &Selecting) -> anyhow::Result<Principal> {
    let selections = requested(file, flags)?.into_iter();
    let access = selections.fold(Access::default(), Access::select);
    Ok(Principal::local().with_access(access))
}

/// Selection of the profile that a client has.
///
/// # Errors
///
/// There is no such profile, or it is faulty, with its place.
pub(crate) fn of_client(file: &File, name: &Spanned<String>) -> anyhow::Result<Selection> {
    let profile = find(file, name.get_ref());
    profile.map_err(|what| file.error(name.span(), &format!("`profile`: {what}")))?
}

/// Finds a profile by its name; the outer error is a suggestion.
fn find(file: &File, name: &str) -> Result<anyhow::Result<Selection>, String> {
    let mut profiles = file.tables.profile.iter();
    match profiles.find(|(known, _)| known.get_ref() == name) {
        Some((name, table)) => Ok(selection(file, name, table)),
        None => {
            let known = file.tables.profile.keys();
            let known: Vec<_> = known.map(|known| known.get_ref().as_str()).collect();
            let suggestion = suggestion(name, &known);
            Err(format!("there is no `[profile.{name}]`; {suggestion}"))
        }
    }
}

fn selection(
    file: &File,
    name: &Spanned<String>,
    table: &ProfileTable,
) -> anyhow::Result<Selection> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let text = name.get_ref();
    if text.is_empty() || text.len() > MAX_NAME || !text.bytes().all(is_allowed) {
        let what = format!(
            "the name of a profile is a part of an address: expected up to {MAX_NAME} ASCII letters, digits, `-` and `_`"
        );
        return Err(file.error(name.span(), &what));
    }
    let parts = SelectionParts {
        tools: table.tools.as_deref().unwrap_or_default(),
        exclude: &table.exclude,
        tags: &table.tags,
        is_read_only: table.read_only,
        max_tools: table.max_tools,
    };
    parts.combine(
        |pattern| pattern.get_ref(),
        |key, pattern, error| file.failure(key, pattern.span(), &error),
    )
}
