//! Interpreters by file extension: programs that run the files which are no programs themselves.
//! Each is searched for when the first script needs it, never during a call.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use mcpd_exec::Executor;
use mcpd_scriptspec::{Diagnostic, Dialect};
use tokio::sync::OnceCell;

mod script_kit;
mod versions;

use versions::Versions;

use crate::database::rows::Version;

/// First release of Node.js that runs TypeScript directly.
const NODE_FOR_TYPESCRIPT: Version = (22, 18);

/// First releases of Bun and Deno that load a module from a URL before a script.
const BUN_WITH_PRELOAD: Version = (1, 1);
const DENO_WITH_PRELOAD: Version = (2, 5);

/// Programs that run scripts, by the extensions of their files.
///
/// By default shells, Python, Node.js, Ruby, Perl, PHP, Lua and PowerShell run files of their
/// extensions, if they are in the `PATH` of this process. TypeScript is run by the first that is
/// installed of Node.js from 22.18 on, Bun from 1.1 on, Deno from 2.5 on, and tsx.
///
/// ```
/// use mcpd_server::Interpreters;
///
/// let interpreters = Interpreters::default().set("py", ["/opt/python/bin/python3", "-X", "utf8"]);
/// ```
#[derive(Debug, Clone)]
pub struct Interpreters {
    by_extension: BTreeMap<String, ExtensionEntry>,
    versions: Versions,
}

#[derive(Debug, Clone)]
struct ExtensionEntry {
    /// The first that is installed runs the files.
    choices: Vec<Choice>,
    check: Option<Check>,
    /// Cached, unless the next search may give another result.
    found: OnceCell<Result<Interpreter, MissingInterpreter>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice {
    program: OsString,
    args: Vec<OsString>,
    at_least: Option<Version>,
}

/// Static check of the text of a program that is described in a dialect.
pub(crate) type Check = fn(&str, Dialect) -> Vec<Diagnostic>;

/// Result of a search for a program.
enum SearchResult {
    At(PathBuf),
    TooOld,
    /// Not installed, or without an answer to the query for its version.
    Nowhere,
}

/// Program that runs files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interpreter {
    /// Path of the program.
    pub program: PathBuf,
    /// Arguments before the file.
    pub args: Vec<OsString>,
}

/// Missing interpreter for the files of an extension.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MissingInterpreter {
    /// No program is configured for them.
    #[error("no interpreter is known for {}", ExtensionFiles(.0))]
    Unknown(String),
    /// None of the configured programs is installed.
    #[error("no interpreter for `.{extension}` files is installed: {}", TriedPrograms(.tried))]
    #[non_exhaustive]
    NotInstalled {
        /// Extension of the files.
        extension: String,
        /// Programs that were searched for, in order.
        tried: Vec<String>,
    },
}

impl Default for Interpreters {
    fn default() -> Self {
        const PLAIN: &[(&str, &str)] = &[
            ("sh", "sh"),
            ("bash", "bash"),
            ("zsh", "zsh"),
            ("fish", "fish"),
            ("py", if cfg!(windows) { "python" } else { "python3" }),
            ("js", "node"),
            ("mjs", "node"),
            ("cjs", "node"),
            ("rb", "ruby"),
            ("pl", "perl"),
            ("php", "php"),
            ("lua", "lua"),
            ("ps1", "pwsh"),
        ];
        let typescript = || {
            let from = |version, words: &[&str]| Choice {
                at_least: Some(version),
                ..Choice::new(words.iter().copied())
            };
            ExtensionEntry::new([
                from(NODE_FOR_TYPESCRIPT, &["node"]),
                from(BUN_WITH_PRELOAD, &["bun"]),
                from(DENO_WITH_PRELOAD, &["deno", "run", "--allow-all"]),
                Choice::new(["tsx"]),
            ])
        };
        let plain = PLAIN.iter().map(|(extension, program)| {
            (*extension, ExtensionEntry::new([Choice::new([program])]))
        });
        let all = plain.chain([("ts", typescript()), ("tsx", typescript())]);
        Self {
            by_extension: all.map(|(name, entry)| (name.to_owned(), entry)).collect(),
            versions: Versions::default(),
        }
    }
}

impl Interpreters {
    /// Returns whether `other` has the same programs.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let same = |(ours, theirs): ((&String, &ExtensionEntry), (&String, &ExtensionEntry))| {
            ours.0 == theirs.0 && ours.1.choices == theirs.1.choices
        };
        let (ours, theirs) = (&self.by_extension, &other.by_extension);
        ours.len() == theirs.len() && ours.iter().zip(theirs).all(same)
    }

    /// Learns versions of programs from a database, and keeps those of others there.
    #[cfg(feature = "database")]
    pub(crate) fn keep_versions_in(mut self, database: crate::database::Database) -> Self {
        self.versions.database = Some(database);
        self
    }

    /// Takes over the source of versions.
    pub(crate) fn with_versions_of(mut self, other: &Self) -> Self {
        self.versions = other.versions.clone();
        self
    }

    /// Sets the program and its first arguments for the files of an extension, such as `py`, in
    /// place of any earlier ones.
    #[must_use]
    pub fn set(
        mut self,
        extension: &str,
        words: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Self {
        let entry = ExtensionEntry::new([Choice::new(words)]);
        self.by_extension
            .insert(extension.to_ascii_lowercase(), entry);
        self
    }

    /// Checks the text of every program for an extension before it is served: one in which
    /// `check` finds an error is not. The check also receives the dialect of the description. It
    /// belongs to the present interpreter, and is dropped when another one is [set](Self::set).
    #[must_use]
    pub fn check(mut self, extension: &str, check: fn(&str, Dialect) -> Vec<Diagnostic>) -> Self {
        if let Some(entry) = self.by_extension.get_mut(&extension.to_ascii_lowercase()) {
            entry.check = Some(check);
        }
        self
    }

    /// Replaces the check of an extension, if there is one.
    #[must_use]
    pub fn replace_check(
        self,
        extension: &str,
        check: fn(&str, Dialect) -> Vec<Diagnostic>,
    ) -> Self {
        match self.check_for(extension) {
            Some(_) => self.check(extension, check),
            None => self,
        }
    }

    /// Extensions of files that can be run if their programs are installed.
    pub fn extensions(&self) -> impl Iterator<Item = &str> {
        self.by_extension.keys().map(String::as_str)
    }

    /// Returns the program for the files of an extension. If its version matters, queries that
    /// with `executor`. The search through the `PATH` blocks for a moment.
    ///
    /// # Errors
    ///
    /// Fails if there is none.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again.
    pub async fn find(
        &self,
        extension: &str,
        executor: &Executor,
    ) -> Result<&Interpreter, MissingInterpreter> {
        let extension = extension.to_ascii_lowercase();
        let Some(entry) = self.by_extension.get(&extension) else {
            return Err(MissingInterpreter::Unknown(extension));
        };
        let search = || entry.search(&extension, &self.versions, executor);
        let found = entry.found.get_or_try_init(search).await?;
        found.as_ref().map_err(Clone::clone)
    }

    /// Returns the check of programs for the files of an extension, if there is one.
    pub(crate) fn check_for(&self, extension: &str) -> Option<Check> {
        self.by_extension
            .get(&extension.to_ascii_lowercase())?
            .check
    }

    /// Returns whether a program is configured for the files of an extension, installed or not.
    pub(crate) fn has_interpreter(&self, extension: &str) -> bool {
        self.by_extension
            .contains_key(&extension.to_ascii_lowercase())
    }
}

impl ExtensionEntry {
    fn new(choices: impl IntoIterator<Item = Choice>) -> Self {
        Self {
            choices: choices.into_iter().collect(),
            check: None,
            found: OnceCell::new(),
        }
    }

    /// Searches for an installed program. Returns an outer error if another search may succeed,
    /// so that only this result is not cached, and known versions are not queried again for each
    /// file.
    async fn search(
        &self,
        extension: &str,
        versions: &Versions,
        executor: &Executor,
    ) -> Result<Result<Interpreter, MissingInterpreter>, MissingInterpreter> {
        let mut is_too_old = false;
        for choice in &self.choices {
            match choice.find(versions, executor).await {
                SearchResult::At(program) => {
                    return Ok(Ok(Interpreter {
                        program,
                        args: choice.args.clone(),
                    }));
                }
                SearchResult::TooOld => is_too_old = true,
                SearchResult::Nowhere => {}
            }
        }
        let missing = MissingInterpreter::NotInstalled {
            extension: extension.to_owned(),
            tried: self.choices.iter().map(ToString::to_string).collect(),
        };
        if is_too_old {
            Ok(Err(missing))
        } else {
            Err(missing)
        }
    }
}

impl Choice {
    fn new(words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let mut words = words.into_iter().map(Into::into);
        Self {
            program: words.next().unwrap_or_default(),
            args: words.collect(),
            at_least: None,
        }
    }

    async fn find(&self, versions: &Versions, executor: &Executor) -> SearchResult {
        // Callers may block: they are on a thread that reads files, and another one need not be
        // free.
        let Ok(program) = which::which(&self.program) else {
            return SearchResult::Nowhere;
        };
        let Some(wanted) = self.at_least else {
            return SearchResult::At(program);
        };
        match versions.of(&program, executor).await {
            Some(version) if version >= wanted => SearchResult::At(program),
            Some(_) => SearchResult::TooOld,
            None => SearchResult::Nowhere,
        }
    }
}

impl MissingInterpreter {
    /// Advice for the operator.
    pub(crate) fn help(&self) -> String {
        match self {
            Self::Unknown(extension) if extension.is_empty() => {
                "make it executable with `chmod +x`".to_owned()
            }
            Self::Unknown(extension) => format!(
                "make it executable with `chmod +x`, or set its interpreter in mcpd.toml: `[interpreter]`, `{extension} = [\"/path/to/program\"]`"
            ),
            Self::NotInstalled { extension, .. } => format!(
                "install one, or set the interpreter in mcpd.toml: `[interpreter]`, `{extension} = [\"/path/to/program\"]`"
            ),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.program.display())?;
        match self.at_least {
            Some((major, minor)) => write!(f, " {major}.{minor} or later"),
            None => Ok(()),
        }
    }
}

/// Displays the files of an extension, which may be empty.
struct ExtensionFiles<'a>(&'a str);

impl fmt::Display for ExtensionFiles<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("files without an extension"),
            extension => write!(f, "`.{extension}` files"),
        }
    }
}

/// Displays the programs that were searched for.
struct TriedPrograms<'a>(&'a [String]);

impl fmt::Display for TriedPrograms<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [one] => write!(f, "{one} not found"),
            several => write!(f, "none of {} found", several.join(", ")),
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use mcpd_exec::Config;

    use super::*;

    /// Searches two programs for TypeScript, the first of which reports this version.
    async fn find_typescript(says: &str) -> Result<PathBuf, String> {
        let directory = tempfile::tempdir().unwrap();
        let node = directory.path().join("node");
        fs::write(&node, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        fs::set_permissions(&node, fs::Permissions::from_mode(0o755)).unwrap();
        let first = Choice {
            at_least: Some(NODE_FOR_TYPESCRIPT),
            ..Choice::new([&node])
        };
        let entry = ExtensionEntry::new([first, Choice::new(["no-such-program"])]);
        let interpreters = Interpreters {
            by_extension: [("ts".to_owned(), entry)].into(),
            versions: Versions::default(),
        };
        let executor = Executor::new(Config::default()).unwrap();
        let found = interpreters.find("TS", &executor).await;
        found
            .map(|found| found.program.strip_prefix(directory.path()).unwrap().into())
            .map_err(|missing| {
                missing
                    .to_string()
                    .replace(directory.path().to_str().unwrap(), "")
            })
    }

    #[tokio::test]
    async fn interpreter_installed_later_is_found_at_the_next_search() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("x");
        let interpreters = Interpreters::default().set("x", [&program]);
        let executor = Executor::new(Config::default()).unwrap();
        assert!(interpreters.find("x", &executor).await.is_err());
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(interpreters.find("x", &executor).await.is_ok());
    }

    #[tokio::test]
    async fn interpreter_that_is_too_old_is_skipped() {
        assert_eq!(find_typescript("v22.18.0").await, Ok("node".into()));
        assert_eq!(find_typescript("v24.1.0").await, Ok("node".into()));
        assert_eq!(
            find_typescript("deno 24.1.0 (stable)").await,
            Ok("node".into())
        );
        for old in ["v22.17.9", "v20.20.2", "nonsense"] {
            let missing = find_typescript(old).await.unwrap_err();
            assert_eq!(
                missing,
                "no interpreter for `.ts` files is installed: none of `/node` 22.18 or later, `no-such-program` found"
            );
        }
    }

    #[tokio::test]
    async fn interpreter_that_is_set_takes_precedence() {
        let executor = Executor::new(Config::default()).unwrap();
        let interpreters = Interpreters::default().set("SH", ["cat", "-n"]);
        let found = interpreters.find("sh", &executor).await.unwrap();
        assert!(found.program.ends_with("cat") && found.program.is_absolute());
        assert_eq!(found.args, ["-n"]);
        let missing = interpreters.find("xyz", &executor).await.unwrap_err();
        assert_eq!(
            missing.to_string(),
            "no interpreter is known for `.xyz` files"
        );
        let missing = interpreters.find("", &executor).await.unwrap_err();
        assert_eq!(
            missing.to_string(),
            "no interpreter is known for files without an extension"
        );
    }
}
