//! Selection of rules by their codes, as `--select` and `--ignore` make it.

use std::fmt;

use mcpd_scriptspec::suggest;

use crate::rules;

/// Rules whose findings count. The longest name that matches a code decides; of the same name in
/// both lists, `ignore`.
///
/// ```
/// use mcpd_check::Selection;
///
/// let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
/// let selection = Selection::new(&names(&["help"]), &names(&["help-failed"]))?;
/// assert!(selection.includes("help-timed-out"));
/// assert!(!selection.includes("help-failed"));
/// assert!(!selection.includes("unknown-field"));
/// # Ok::<(), mcpd_check::UnknownCode>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Selection {
    select: Vec<String>,
    ignore: Vec<String>,
}

/// Name that matches no rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownCode {
    name: String,
}

impl UnknownCode {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
        }
    }
}

impl Selection {
    /// Selects the rules of these names, or all if `select` is empty, except those of `ignore`. A
    /// name is a code, or its first words: `help` names all codes that begin with `help-`.
    ///
    /// # Errors
    ///
    /// A name matches no rule.
    pub fn new(select: &[String], ignore: &[String]) -> Result<Self, UnknownCode> {
        for name in select.iter().chain(ignore) {
            if !rules::all().any(|rule| matches(name, rule.code)) {
                return Err(UnknownCode::new(name));
            }
        }
        Ok(Self {
            select: select.to_vec(),
            ignore: ignore.to_vec(),
        })
    }

    /// Returns whether findings of this code count.
    #[must_use]
    pub fn includes(&self, code: &str) -> bool {
        let longest = |names: &[String]| {
            let matching = names.iter().filter(|name| matches(name, code));
            matching.map(String::len).max()
        };
        let selected = longest(&self.select).or(self.select.is_empty().then_some(0));
        selected > longest(&self.ignore)
    }
}

fn matches(name: &str, code: &str) -> bool {
    let rest = code.strip_prefix(name);
    !name.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Returns the hint about a code that no rule has: a similar one, if there is any.
pub(crate) fn similar_code(name: &str) -> Option<&'static str> {
    suggest(name, rules::all().map(|rule| rule.code))
}

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.escape_debug();
        write!(f, "no rule has the code `{name}`; ")?;
        match similar_code(&self.name) {
            Some(code) => write!(f, "did you mean `{code}`?"),
            None => f.write_str("`mcpd check --explain` lists all rules"),
        }
    }
}

impl std::error::Error for UnknownCode {}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(select: &[&str], ignore: &[&str], code: &str, expected: bool) {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let selection = Selection::new(&names(select), &names(ignore)).unwrap();
        assert_eq!(selection.includes(code), expected);
    }

    #[test]
    fn longest_name_decides() {
        check(&[], &[], "help-failed", true);
        check(&[], &["help"], "help-failed", false);
        check(&["help-failed"], &["help"], "help-failed", true);
        check(&["help-failed"], &["help"], "unknown-field", false);
        check(&["help"], &["help"], "help-failed", false);
        check(&["unknown"], &[], "unknown-field", true);
        check(&["unknown"], &[], "missing-description", false);
    }

    #[test]
    fn unknown_name_is_an_error_with_a_suggestion() {
        let refused = |name: &str| {
            Selection::new(&[name.to_owned()], &[])
                .unwrap_err()
                .to_string()
        };
        let expected = "no rule has the code `unknown-feild`; did you mean `unknown-field`?";
        assert_eq!(refused("unknown-feild"), expected);
        assert!(Selection::new(&[], &["hel".to_owned()]).is_err());
        for name in ["", "X"] {
            let expected =
                format!("no rule has the code `{name}`; `mcpd check --explain` lists all rules");
            assert_eq!(refused(name), expected);
        }
    }
}
