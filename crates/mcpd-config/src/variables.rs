//! Names of mcpd's own variables: a misspelt one would have no effect, unnoticed.

use std::env::{self, VarError};
use std::ffi::OsStr;

use anyhow::Context as _;
use mcpd_scriptspec::suggest;
use mcpd_server::source::NO_SOURCES;

use crate::server::environment;
use crate::{File, listening};

/// Prefix of all names.
const PREFIX: &str = "MCPD_";

/// Token as `docs/clients.md` passes it to clients, which may start in mcpd's environment.
pub const TOKEN: &str = "MCPD_TOKEN";

/// Variable that every script gets, along with variables that are not for mcpd.
const TOOL: &str = "MCPD_TOOL";

/// Maximum number of variables named in one message.
const MAX_NAMES: usize = 10;

/// Warns of each variable with mcpd's prefix that is unknown, also to the `flags` of the program,
/// and of those that scripts don't get because of their names.
///
/// The flags are listed only if there is a variable to compare with them.
pub fn warn_of_variables(file: &File, flags: impl FnOnce() -> Vec<String>) {
    let names = env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let names: Vec<_> = names.collect();
    let ours: Vec<_> = names
        .iter()
        .filter(|name| name.starts_with(PREFIX))
        .cloned()
        .collect();
    let kept_back = describe_withheld(&names, file);
    for remark in remarks(&ours, flags).into_iter().chain(kept_back) {
        tracing::warn!("{remark}");
    }
}

/// Describes the variables that scripts don't get unless the operator passes them on.
fn describe_withheld(names: &[String], file: &File) -> Option<String> {
    if names.iter().any(|name| name == TOOL) {
        return None;
    }
    // Faulty rules are reported where they are used.
    let environment = environment::environment(file).ok()?;
    let given = file.tables.tool.iter().flat_map(|tool| tool.env.keys());
    let given: Vec<_> = given.map(|name| name.get_ref()).collect();
    let is_kept_back = |name: &&String| {
        environment.withholds(OsStr::new(name))
            && !listening::VARIABLES.contains(&name.as_str())
            && !given.contains(name)
    };
    let mut kept: Vec<_> = names.iter().filter(is_kept_back).collect();
    kept.sort_unstable();
    let shown = kept.iter().take(MAX_NAMES);
    let shown: Vec<_> = shown
        .map(|name| format!("`{}`", name.escape_debug()))
        .collect();
    let more = match kept.len().saturating_sub(MAX_NAMES) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    (!kept.is_empty()).then(|| {
        format!(
            "variables not passed to scripts: {}{more} (names that begin with `MCP_` describe the call); list them in `pass` of `[env]` in mcpd.toml to pass them, or in `drop` to silence this warning",
            shown.join(", ")
        )
    })
}

/// Value of a variable of this process.
///
/// # Errors
///
/// The value is not Unicode.
pub(crate) fn variable(name: &str) -> anyhow::Result<Option<String>> {
    match env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(error @ VarError::NotUnicode(_)) => Err(error).with_context(|| format!("read {name}")),
    }
}

fn remarks(ours: &[String], flags: impl FnOnce() -> Vec<String>) -> Vec<String> {
    if ours.is_empty() || ours.iter().any(|name| name == TOOL) {
        return Vec::new();
    }
    let mut known = flags();
    known.extend(listening::VARIABLES.map(str::to_owned));
    known.extend([NO_SOURCES, TOKEN].map(str::to_owned));
    let unknown = ours.iter().filter(|name| !known.contains(name));
    unknown.map(|name| remark(name, &known)).collect()
}

fn remark(name: &str, known: &[String]) -> String {
    // All known names share the prefix, so the comparison leaves it out.
    let known = known.iter().filter_map(|name| name.strip_prefix(PREFIX));
    let hint = match suggest(&name[PREFIX.len()..], known) {
        Some(meant) => format!("; did you mean `{PREFIX}{meant}`?"),
        None => String::new(),
    };
    format!("unknown variable `{}`{hint}", name.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], expected: &[&str]) {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let flags = ["MCPD_TIMEOUT", "MCPD_LOG", "MCPD_TOKEN_FILE"].map(str::to_owned);
        assert_eq!(remarks(&names, || flags.into()), expected);
    }

    #[test]
    fn unknown_variable_is_reported_with_a_suggestion() {
        check(
            &["MCPD_TIMEUOT", "MCPD_LISTENS", "MCPD_X"],
            &[
                "unknown variable `MCPD_TIMEUOT`; did you mean `MCPD_TIMEOUT`?",
                "unknown variable `MCPD_LISTENS`; did you mean `MCPD_LISTEN`?",
                "unknown variable `MCPD_X`",
            ],
        );
    }

    #[test]
    fn withheld_variables_are_reported_unless_passed_on() {
        let names = ["MCP_B", "MCP_A", "MCP_PORT", "MCP_PASSED", "MCPD_X", "PATH"];
        let names = names.map(str::to_owned);
        let mut file = File::default();
        file.tables.env = toml::from_str(r#"pass = ["MCP_PASS*"]"#).unwrap();
        let told = describe_withheld(&names, &file).unwrap();
        assert!(
            told.starts_with("variables not passed to scripts: `MCP_A`, `MCP_B` ("),
            "{told}"
        );
        file.tables.env = toml::from_str(r#"drop = ["MCP_*"]"#).unwrap();
        assert_eq!(describe_withheld(&names, &file), None);
        let of_a_script = names.into_iter().chain([TOOL.to_owned()]);
        let of_a_script: Vec<_> = of_a_script.collect();
        assert_eq!(describe_withheld(&of_a_script, &File::default()), None);
    }

    #[test]
    fn known_variables_are_not_reported() {
        check(&["MCPD_LOG", "MCPD_TOKEN_FILE", "MCPD_PORT"], &[]);
        check(&["MCPD_NO_SOURCES", "MCPD_TOKEN"], &[]);
        check(&["MCPD_CALL_ID", "MCPD_OPT_x", "MCPD_TOOL"], &[]);
    }
}
