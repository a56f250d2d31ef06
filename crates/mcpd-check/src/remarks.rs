//! Remarks about a catalog, for the terminal: why a tool is missing from it, and what is wrong.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcpd_scriptspec::{Role, suggest};
use mcpd_server::{Catalog, Tool};

use crate::finding::{EXECUTABLE_HINT, faulty_sources, shortfall};

/// Finds a tool by its path, or by its name in lists.
///
/// # Errors
///
/// There is none: says why, for a reader who knows scripts by their place below `directory`.
pub fn find_tool(catalog: &Catalog, name: &str, directory: &Path) -> Result<Arc<Tool>, String> {
    // A remote server has the names of lists only.
    let listed = name.replace(['/', '.'], "_");
    let tool = catalog.tool(name).or_else(|| catalog.tool(&listed));
    tool.cloned().ok_or_else(|| {
        let hint = hint(catalog, name, directory);
        format!("there is no tool `{}`{hint}", name.escape_debug())
    })
}

/// Returns why there is no such tool, or what to do.
fn hint(catalog: &Catalog, name: &str, directory: &Path) -> String {
    let mut scripts = catalog.scan().scripts.iter();
    if let Some(script) = scripts.find(|script| script.path.as_str() == name) {
        return match script.spec.as_deref().map(|spec| &spec.role) {
            Some(Role::Prompt) => ": it is a prompt; render it with `mcpd prompt`".to_owned(),
            Some(Role::Resource { uri, .. }) => {
                format!(": it is the resource `{uri}`; read it with `mcpd read`")
            }
            _ if let Some(held_back) = &script.held_back => {
                format!(": it is held back: {held_back}; see `mcpd approve`")
            }
            _ => {
                let what = if script.is_faulty() {
                    "faulty"
                } else {
                    "passed over"
                };
                let check = check_command([&script.file], None);
                format!(": the script is {what}; run `{check}` for the reason")
            }
        };
    }
    if lacks_right(&directory.join(name)) {
        return ": the file is not executable; run `chmod +x` on it".to_owned();
    }
    let paths = catalog.tools().iter().map(|tool| tool.path().as_str());
    let hint = match nearest_path(name, paths) {
        Some(path) => format!("; did you mean `{path}`?"),
        None => "; `mcpd list` shows all tools".to_owned(),
    };
    hint + &faulty_sources(catalog)
}

/// Suggests a path: one with this last component, or else the most similar one.
#[must_use]
pub fn nearest_path<'a>(
    name: &str,
    paths: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let is_its_end = |path: &&str| path.rsplit('/').next() == Some(name);
    let ending = paths.clone().find(is_its_end);
    ending.or_else(|| suggest(name, paths))
}

/// Describes what is wrong with the catalog, by the words `how` and the `check` command that shows
/// the reasons; or why the catalog may be empty.
#[must_use]
pub fn describe_faults(catalog: &Catalog, how: &str, check: &str) -> Option<String> {
    if let Some(shortfall) = shortfall(catalog) {
        return Some(format!("{how}: {shortfall}; run `{check}` for details"));
    }
    let is_empty = catalog.tools().is_empty() && catalog.scan().scripts.is_empty();
    let passed = catalog.scan().passed_over.iter();
    let passed = passed.filter(|file| file.is_remarkable()).count();
    let sources: Vec<_> = catalog
        .offers()
        .iter()
        .map(|offer| offer.source())
        .collect();
    let why = match passed {
        0 if !sources.is_empty() => format!("none from {} yet", sources.join(" or ")),
        0 => EXECUTABLE_HINT.to_owned(),
        1 => format!("1 file was passed over; run `{check}` for the reason"),
        _ => format!("{passed} files were passed over; run `{check}` for the reasons"),
    };
    is_empty.then(|| format!("no tools found: {why}"))
}

/// The command that checks `paths` and the additions in `configuration`, quoted for the shell.
#[must_use]
pub fn check_command<'a>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
    configuration: Option<&Path>,
) -> String {
    let paths = paths.into_iter().map(|path| path.to_string_lossy());
    let mut paths: Vec<_> = paths.collect();
    if let Some(file) = configuration {
        paths.extend(["--config".into(), file.to_string_lossy()]);
    }
    let paths = paths.iter().map(|path| &**path);
    // Paths have no NUL, which is the only unquotable character.
    shlex::try_join(["mcpd", "check"].into_iter().chain(paths)).unwrap_or_default()
}

/// Returns whether the file exists and has no execute permission.
#[cfg(unix)]
fn lacks_right(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 == 0)
}

/// This system has no execute permission.
#[cfg(not(unix))]
fn lacks_right(_: &Path) -> bool {
    false
}
