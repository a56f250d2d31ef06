//! Environment of scripts: the part of mcpd's own that they inherit, and additions. Settings and
//! secrets of the server are never part of it, nor the names that describe a script's own call.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

use mcpd_exec::{Account, Command, Level, RunAs, Variables};

/// Variables that a confined script inherits: location, user and locale.
#[cfg(not(windows))]
const ORDINARY_VARIABLES: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ",
];
/// Likewise, with the variables that no program of Windows runs without.
#[cfg(windows)]
const ORDINARY_VARIABLES: &[&str] = &[
    "PATH",
    "PATHEXT",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "COMSPEC",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "LANG",
    "LC_*",
    "TZ",
];

/// Names that a script would mistake for attributes of its own call.
const CALL_VARIABLES: &str = "MCP_*";

/// Variables of mcpd, of its own calls, and of a service manager for the service alone.
const WITHHELD_VARIABLES: &[&str] = &[
    CALL_VARIABLES,
    "TOOL_QUERY",
    "TOOL_ARGS",
    "LISTEN_*",
    "NOTIFY_SOCKET",
    "WATCHDOG_*",
    "CREDENTIALS_DIRECTORY",
];

/// Defaults of variables for every script, unless the operator sets, passes or drops them.
///
/// Python buffers output into a pipe, and loses it when it is killed at a timeout.
const DEFAULT_VARIABLES: &[(&str, &str)] = &[("PYTHONUNBUFFERED", "1")];

/// Settings and secrets of the server, which no pattern passes on.
const SERVER_VARIABLES: &[&str] = &["MCPD_*"];

/// Directories of expendable files, without which programs such as compilers and package managers
/// fail. A confined script gets them in a place where it may write.
const CACHE_VARIABLES: &[&str] = &["XDG_CACHE_HOME", "XDG_STATE_HOME"];

/// Differences between the environment of scripts and that of this process.
///
/// An unconfined script inherits everything except what is for mcpd alone, such as `MCPD_*` and
/// `MCP_*`: clients put the API keys of scripts into the environment, and mcpd its own. A
/// confined script inherits the variables that every program needs, such as `PATH` and `HOME`,
/// and those that are [passed](Self::pass).
#[derive(Debug, Clone, Default)]
pub struct Environment {
    rules: EnvironmentRules,
    /// Inherited variables without and with confinement, computed at first use.
    inherited: [OnceLock<Variables>; 2],
}

/// Declared differences from the environment of this process.
#[derive(Debug, Clone, Default, PartialEq)]
struct EnvironmentRules {
    passed: Vec<String>,
    dropped: Vec<String>,
    reserved: Vec<String>,
    set: BTreeMap<String, String>,
}

impl PartialEq for Environment {
    /// Compares the rules alone: the rest follows from them.
    fn eq(&self, other: &Self) -> bool {
        self.rules == other.rules
    }
}

/// Initial environment of one script.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inherited {
    variables: Variables,
    set: BTreeMap<String, String>,
}

impl Environment {
    /// Captures the environment of this process at first use.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::default()
    }

    /// Passes a variable on to every script. A name that ends with `*` is a prefix.
    #[must_use]
    pub fn pass(mut self, name: impl Into<String>) -> Self {
        self.rules.passed.push(name.into());
        self.inherited = Default::default();
        self
    }

    /// Withholds a variable from every script. A name that ends with `*` is a prefix.
    #[must_use]
    pub fn drop(mut self, name: impl Into<String>) -> Self {
        self.rules.dropped.push(name.into());
        self.inherited = Default::default();
        self
    }

    /// Withholds a variable unless it is [passed](Self::pass) or one that every program needs. It
    /// is meant for single scripts that a tool [gives](crate::policy::ToolPolicy::variable) it to.
    #[must_use]
    pub fn reserve(mut self, name: impl Into<String>) -> Self {
        self.rules.reserved.push(name.into());
        self.inherited = Default::default();
        self
    }

    /// Sets a variable for every script, inherited or not.
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.rules.set.insert(name.into(), value.into());
        self
    }

    /// Variables of an unconfined script, or of any other program that gets this environment.
    #[must_use]
    pub fn variables(&self) -> BTreeMap<OsString, OsString> {
        let inherited = self.inherited_variables(Level::None).iter();
        let set = self.rules.set.iter();
        inherited
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .chain(set.map(|(name, value)| (name.into(), value.into())))
            .collect()
    }

    /// Returns whether a variable is withheld because of its name alone, without a rule about it.
    #[must_use]
    pub fn withholds(&self, name: &OsStr) -> bool {
        let rules = &self.rules;
        matches_any(&[CALL_VARIABLES], name)
            && !matches_any(&rules.passed, name)
            && !matches_any(&rules.dropped, name)
            && !rules.set.keys().any(|key| OsStr::new(key) == name)
    }

    /// Returns a text of the differences from the environment of this process.
    pub(crate) fn rules_text(&self) -> String {
        format!("{:?}", self.rules)
    }

    fn passes_on(&self, name: &OsStr, level: Level) -> bool {
        let is_kept_back =
            || matches_any(WITHHELD_VARIABLES, name) || matches_any(&self.rules.reserved, name);
        let by_default =
            matches_any(ORDINARY_VARIABLES, name) || (level == Level::None && !is_kept_back());
        (by_default || matches_any(&self.rules.passed, name))
            && !matches_any(&self.rules.dropped, name)
            && !matches_any(SERVER_VARIABLES, name)
    }

    fn inherited_variables(&self, level: Level) -> &Variables {
        self.inherited[usize::from(level > Level::None)].get_or_init(|| {
            let variables = Variables::of_this_process(|name| self.passes_on(name, level));
            // Clients start servers without it.
            let home = Account::of_caller().map(|account| account.home().as_os_str().to_owned());
            match variables.get("HOME").is_none() && self.passes_on(OsStr::new("HOME"), level) {
                true => variables.with([("HOME", home)]),
                false => variables,
            }
        })
    }

    /// Returns the initial environment of a script with this confinement, and this user if it has
    /// another one than this process.
    pub(crate) fn for_level(&self, level: Level, run_as: Option<RunAs>) -> Inherited {
        let mut variables = self.inherited_variables(level).clone();
        if let Some(run_as) = run_as {
            variables = variables.with(self.user_variables(run_as));
        }
        let mut set = self.rules.set.clone();
        // Scripts have no terminal.
        let terminal = (level > Level::None).then_some(("TERM", "dumb"));
        for (name, value) in DEFAULT_VARIABLES.iter().copied().chain(terminal) {
            let is_wanted = || !matches_any(&self.rules.dropped, OsStr::new(name));
            if variables.get(name).is_none() && is_wanted() {
                set.entry(name.to_owned()).or_insert(value.to_owned());
            }
        }
        Inherited { variables, set }
    }

    /// Returns the variables that name the given user instead of the user of this process.
    fn user_variables(&self, run_as: RunAs) -> Vec<(&'static str, Option<OsString>)> {
        let account = Account::of_user(run_as.user);
        let mut variables = match account {
            Some(account) => account.variables().map(|(name, value)| (name, Some(value))),
            None => [
                ("HOME", Some("/".into())),
                ("USER", None),
                ("LOGNAME", None),
                ("SHELL", None),
            ],
        };
        for (name, value) in &mut variables {
            if matches_any(&self.rules.dropped, OsStr::new(name)) {
                *value = None;
            }
        }
        variables.into()
    }
}

impl Inherited {
    /// Returns the value of a variable, if it is text.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let inherited = || Some(self.variables.get(name)?.to_str()?.to_owned());
        self.set.get(name).cloned().or_else(inherited)
    }

    /// Sets the initial environment of a command.
    pub(crate) fn prepare(&self, command: Command) -> Command {
        let command = command.inherit(&self.variables);
        let command = CACHE_VARIABLES
            .iter()
            .copied()
            .fold(command, Command::temporary);
        self.set
            .iter()
            .fold(command, |command, (name, value)| command.env(name, value))
    }
}

/// Returns whether a pattern is this name, or is a prefix of it followed by `*`.
pub(super) fn matches_any(patterns: &[impl AsRef<str>], name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    patterns.iter().any(|pattern| {
        let pattern = pattern.as_ref();
        match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning.as_bytes()),
            None => name == pattern.as_bytes(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[&str] = &[
        "PATH", "LC_ALL", "API_KEY", "AWS_A", "AWS_B", "MCPD_X", "MCP_Y",
    ];

    #[track_caller]
    fn check(environment: &Environment, level: Level, expected: &[&str]) {
        let is_inherited = |name: &&&str| environment.passes_on(OsStr::new(name), level);
        let names: Vec<_> = ALL.iter().filter(is_inherited).copied().collect();
        assert_eq!(names, expected, "{level}");
    }

    #[test]
    fn unconfined_script_inherits_all_but_withheld_variables() {
        let all = ["PATH", "LC_ALL", "API_KEY", "AWS_A", "AWS_B"];
        check(&Environment::default(), Level::None, &all);
    }

    #[test]
    fn environment_variables_are_those_of_an_unconfined_script() {
        let environment = Environment::of_this_process()
            .drop("PATH")
            .reserve("CARGO_PKG_NAME")
            .set("A", "b");
        let variables = environment.variables();
        let has = |name: &str| variables.contains_key(&OsString::from(name));
        assert!(has("CARGO_MANIFEST_DIR") && !has("PATH") && !has("CARGO_PKG_NAME"));
        assert_eq!(variables[&OsString::from("A")], "b");
    }

    #[test]
    fn confined_script_inherits_ordinary_variables() {
        for level in [Level::Guarded, Level::Strict] {
            check(&Environment::default(), level, &["PATH", "LC_ALL"]);
            assert_eq!(
                Environment::default().for_level(level, None).set["TERM"],
                "dumb"
            );
        }
    }

    #[test]
    #[cfg(unix)]
    fn run_as_changes_the_variables_that_name_the_user() {
        let at = |environment: &Environment, user| {
            environment
                .for_level(Level::Guarded, Some(RunAs::new(user, user)))
                .variables
        };
        let root = at(&Environment::default(), 0);
        assert_eq!(root.get("USER"), Some(OsStr::new("root")));
        assert_eq!(root.get("HOME"), Some(OsStr::new("/root")));
        let unknown = at(&Environment::default(), 3_999_999_999);
        assert_eq!(unknown.get("HOME"), Some(OsStr::new("/")));
        assert_eq!(unknown.get("USER"), None);
        assert_eq!(
            at(&Environment::default().drop("HOME"), 0).get("HOME"),
            None
        );
    }

    #[test]
    fn python_is_unbuffered_unless_the_operator_says_otherwise() {
        let name = "PYTHONUNBUFFERED";
        let value = |environment: Environment, level| {
            let Inherited { variables, set } = environment.for_level(level, None);
            let inherited = variables.get(name).and_then(OsStr::to_str);
            set.get(name).cloned().or(inherited.map(str::to_owned))
        };
        for level in [Level::None, Level::Guarded, Level::Strict] {
            let default = value(Environment::default(), level);
            assert_eq!(default.as_deref(), Some("1"), "{level}");
            let set = Environment::default().set("PYTHONUNBUFFERED", "");
            assert_eq!(value(set, level).as_deref(), Some(""), "{level}");
            let dropped = Environment::default().drop("PYTHON*");
            assert_eq!(value(dropped, level), None, "{level}");
        }
    }

    #[test]
    fn passed_variable_is_inherited_unless_dropped() {
        let environment = Environment::default()
            .pass("AWS_*")
            .drop("AWS_B")
            .drop("PATH");
        check(&environment, Level::Guarded, &["LC_ALL", "AWS_A"]);
        check(&environment, Level::None, &["LC_ALL", "API_KEY", "AWS_A"]);
    }
    #[test]
    fn reserved_variable_is_inherited_only_if_passed() {
        let environment = Environment::default().reserve("API_KEY").reserve("PATH");
        check(
            &environment,
            Level::None,
            &["PATH", "LC_ALL", "AWS_A", "AWS_B"],
        );
        check(
            &environment.pass("API_*"),
            Level::Guarded,
            &["PATH", "LC_ALL", "API_KEY"],
        );
    }

    #[test]
    fn environment_equality_ignores_its_cache() {
        let environment = || Environment::default().pass("A");
        let asked = environment();
        asked.inherited_variables(Level::None);
        assert_eq!(asked, environment());
        for other in [
            environment().pass("B"),
            environment().drop("A"),
            environment().reserve("A"),
            environment().set("A", ""),
        ] {
            assert_ne!(asked, other);
        }
    }

    #[test]
    fn server_variables_are_never_passed() {
        let environment = Environment::default().pass("M*");
        check(&environment, Level::Strict, &["PATH", "LC_ALL", "MCP_Y"]);
    }
}
