//! The variables that are mcpd's own, by their names: a misspelt one would change nothing without a word.

use std::env;

use mcpd_server::source::NO_SOURCES;

use super::listening;
use crate::{args, suggest};

/// What the names of all of them begin with.
const PREFIX: &str = "MCPD_";

/// The token as `docs/clients.md` hands it to clients, which may be started where mcpd is.
const TOKEN: &str = "MCPD_TOKEN";

/// What every script gets, and with it variables that are not for mcpd.
const TOOL: &str = "MCPD_TOOL";

/// Warns of each variable that looks like one of them and is none.
pub(crate) fn warn_of_unknown_variables() {
    let names = env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let ours: Vec<_> = names.filter(|name| name.starts_with(PREFIX)).collect();
    for remark in remarks(&ours) {
        tracing::warn!("{remark}");
    }
}

fn remarks(ours: &[String]) -> Vec<String> {
    if ours.is_empty() || ours.iter().any(|name| name == TOOL) {
        return Vec::new();
    }
    let mut known = args::variables();
    known.extend(listening::VARIABLES.map(str::to_owned));
    known.extend([NO_SOURCES, TOKEN].map(str::to_owned));
    let unknown = ours.iter().filter(|name| !known.contains(name));
    unknown.map(|name| remark(name, &known)).collect()
}

fn remark(name: &str, known: &[String]) -> String {
    // All of them are alike in how they begin.
    let known = known.iter().filter_map(|name| name.strip_prefix(PREFIX));
    let hint = match suggest::nearest(&name[PREFIX.len()..], known) {
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
        assert_eq!(remarks(&names), expected);
    }

    #[test]
    fn what_nobody_reads_is_told_with_what_may_have_been_meant() {
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
    fn what_is_read_or_set_by_mcpd_is_not_told() {
        check(&["MCPD_LOG", "MCPD_TOKEN_FILE", "MCPD_PORT"], &[]);
        check(&["MCPD_NO_SOURCES", "MCPD_TOKEN"], &[]);
        check(&["MCPD_CALL_ID", "MCPD_OPT_x", "MCPD_TOOL"], &[]);
    }
}
