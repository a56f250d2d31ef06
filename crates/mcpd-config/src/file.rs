//! `mcpd.toml` as a file: its search path, and the places of its faults.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_scriptspec::suggest;

use crate::directories;
use crate::faults::LocatedFault;
use crate::options::ToolNames;
use crate::roots::Reviewed;
use crate::server::kit::Commands;
use crate::tables::Tables;
use crate::value::Spanned;

/// File name in every directory of the search path.
const NAME: &str = "mcpd.toml";

/// Places of the configuration file, in order.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "callers say all of it")]
pub struct Search<'a> {
    /// The file that the user names, in place of a search.
    pub named: Option<&'a Path>,
    /// Also look in the working directory. Not for a server whose client chooses that directory
    /// and whose content others often write.
    pub in_project: bool,
}

/// The configuration file, with what it takes to point into it.
#[derive(Debug, Default)]
pub struct File {
    path: PathBuf,
    /// The directory of the file, as an absolute path.
    directory: PathBuf,
    text: String,
    pub(crate) tables: Tables,
    /// Contents that are served for sources.
    pub(crate) reviewed: Reviewed,
}

impl File {
    /// Reads the named file, or else the first one that exists in the project, for the user and
    /// for the system. Without any of them nothing is configured.
    ///
    /// # Errors
    ///
    /// The file can't be read or has an unknown key or a faulty value.
    pub fn find(search: Search<'_>) -> anyhow::Result<Self> {
        if let Some(path) = search.named {
            return Self::read(path);
        }
        let project = search.in_project.then(PathBuf::new);
        let places = project.into_iter().chain(directories::configurations());
        places
            .filter(|place| !is_without(place))
            .map(|place| place.join(NAME))
            .next()
            .map_or_else(|| Ok(Self::default()), |path| Self::read(&path))
    }

    /// Reads the configuration again, for a server that uses the file at `before`: without that
    /// file, the server would lose its rules.
    ///
    /// # Errors
    ///
    /// See [`find`](Self::find); also, the file before is gone.
    pub fn find_again(search: Search<'_>, before: Option<&Path>) -> anyhow::Result<Self> {
        let file = Self::find(search)?;
        if let Some(before) = before
            && file.path() != Some(before)
            && before.parent().is_some_and(is_without)
        {
            bail!(
                "reload the configuration `{}`: the file no longer exists; restore it, or restart mcpd to run without it",
                before.display()
            );
        }
        Ok(file)
    }

    /// Reads this file.
    ///
    /// # Errors
    ///
    /// See [`find`](Self::find).
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let named = || format!("read the configuration `{}`", path.display());
        let text = fs::read_to_string(path).with_context(named)?;
        Self::of_text(path, text)
    }

    /// Reads the text that the file at `path` has, or will have when an editor saves it.
    ///
    /// # Errors
    ///
    /// See [`find`](Self::find).
    pub fn of_text(path: &Path, text: String) -> anyhow::Result<Self> {
        let named = || format!("read the configuration `{}`", path.display());
        let absolute = std::path::absolute(path).with_context(named)?;
        let mut file = Self {
            path: path.to_owned(),
            directory: absolute.parent().map(Path::to_owned).unwrap_or_default(),
            text,
            tables: Tables::default(),
            reviewed: Reviewed::default(),
        };
        file.tables = toml::from_str(&file.text).map_err(|error| {
            let span = error.span().unwrap_or_default();
            let what = match file.key(span.start) {
                Some(key) => format!("`{key}`: {}", words(error.message())),
                None => file.single(span.start, error.message()),
            };
            let meant = intended_name(error.message()).map(str::to_owned);
            let fault = file.fault(span, &what);
            LocatedFault { meant, ..fault }
        })?;
        Ok(file)
    }

    /// Error that points at a place.
    pub(crate) fn error(&self, span: Range<usize>, what: &str) -> anyhow::Error {
        self.fault(span, what).into()
    }

    fn fault(&self, span: Range<usize>, what: &str) -> LocatedFault {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line = self.line(span.start);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before[start..].chars().count() + 1;
        let end = self.text[start..]
            .find('\n')
            .map_or(self.text.len(), |length| start + length);
        let table = self.text[..end].lines().rev().find_map(header);
        let table = table
            .map(|table| format!("in {table}: "))
            .unwrap_or_default();
        LocatedFault {
            file: self.path.clone(),
            line,
            column,
            message: format!("{table}{what}"),
            span,
            meant: None,
        }
    }

    /// Error about the value of `key`, which is at `span`.
    pub(crate) fn failure(
        &self,
        key: &str,
        span: Range<usize>,
        error: &impl fmt::Display,
    ) -> anyhow::Error {
        self.error(span, &format!("`{key}`: failed to {error:#}"))
    }

    /// Line of a place, from 1 on.
    pub(crate) fn line(&self, place: usize) -> usize {
        let before = self.text.get(..place).unwrap_or_default();
        before.matches('\n').count() + 1
    }

    /// Content of the file.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The key whose value is at a place.
    fn key(&self, place: usize) -> Option<&str> {
        let before = self.text.get(..place)?;
        let line = before.rsplit('\n').next()?;
        line.split_once('=').map(|(key, _)| key.trim())
    }

    /// Rephrases the parser's message about a `[tool]` where `[[tool]]` is meant.
    fn single(&self, place: usize, message: &str) -> String {
        if message != "invalid type: map, expected a sequence" {
            return words(message);
        }
        let name = self.text[place..].trim_start_matches('[');
        let name = name.split([']', '.']).next().unwrap_or_default();
        format!("expected an array of tables; write `[[{name}]]`")
    }

    /// Absolute form of a path in the file, which is relative to the file's directory.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        self.directory.join(mcpd_exec::expand_home(path))
    }

    /// Absolute form of the path of a key, if it is set.
    pub(crate) fn absolute_path(&self, path: Option<&Spanned<PathBuf>>) -> Option<PathBuf> {
        path.map(|path| self.absolute(path.get_ref()))
    }

    /// Control group of `cgroup`.
    pub fn cgroup(&self) -> Option<PathBuf> {
        self.absolute_path(self.tables.cgroup.as_ref())
    }

    /// Token file of `token_file`.
    pub fn token_file(&self) -> Option<PathBuf> {
        self.absolute_path(self.tables.token_file.as_ref())
    }

    /// Returns whether clients may use the token that mcpd makes.
    pub fn accepts_agent_token(&self) -> bool {
        self.tables.agent_token.unwrap_or(true)
    }

    /// Rules of `check.select` and `check.ignore`.
    pub fn checked_rules(&self) -> (Option<Vec<String>>, Option<Vec<String>>) {
        let check = &self.tables.check;
        (check.select.clone(), check.ignore.clone())
    }

    /// Spelling of tool names in `tool_names`.
    pub fn tool_names(&self) -> Option<ToolNames> {
        self.tables.tool_names
    }

    /// Returns whether `roots`, `[[root]]` or `enable` says what to serve, be it nothing.
    pub fn says_what_to_serve(&self) -> bool {
        self.roots().is_some() || self.tables.enable.is_some()
    }

    /// Directories of `roots` and `[[root]]`, if there is any of these keys.
    pub(crate) fn roots(&self) -> Option<Vec<PathBuf>> {
        let is_set = self.tables.roots.is_some() || !self.tables.root.is_empty();
        let roots = self.root_texts().filter_map(|(_, root, _)| self.root(root));
        is_set.then(|| roots.collect())
    }

    /// Returns whether clients get a short list of tools, and search for the others.
    pub fn has_search(&self) -> bool {
        self.tables.search.enabled == Some(true)
    }

    /// Directory of `run_command.workdir`.
    pub(crate) fn workdir(&self) -> Option<PathBuf> {
        let workdir = self.tables.run_command.workdir.as_ref();
        workdir.map(|path| self.absolute(path.get_ref()))
    }

    /// A program in the file: a path, or a bare name, which is looked up in `PATH`.
    pub(crate) fn program(&self, word: &str) -> OsString {
        if word.contains('/') {
            // Messages name the path, and need not repeat `./`.
            let path: PathBuf = self.absolute(Path::new(word)).components().collect();
            path.into()
        } else {
            word.into()
        }
    }

    /// A program in the file and its arguments.
    pub(crate) fn command(&self, words: &[String]) -> Vec<String> {
        let mut words = words.to_owned();
        // A path that is no text stays relative: commands run in the directory of the file.
        if let Some(program) = words.first_mut()
            && let Ok(path) = self.program(program).into_string()
        {
            *program = path;
        }
        words
    }

    /// Commands that show and hide the window of a Script Kit.
    ///
    /// # Errors
    ///
    /// A command is empty and names no program.
    pub(crate) fn kit(&self) -> anyhow::Result<Commands> {
        let command = |words: &Option<Spanned<Vec<String>>>| match words {
            Some(words) if words.get_ref().is_empty() => {
                Err(self.error(words.span(), "expected a program and its arguments"))
            }
            Some(words) => Ok(self.command(words.get_ref())),
            None => Ok(Vec::new()),
        };
        Ok(Commands {
            show: command(&self.tables.kit.show)?,
            hide: command(&self.tables.kit.hide)?,
            directory: self.directory.clone(),
        })
    }

    /// Path of the file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        (!self.path.as_os_str().is_empty()).then_some(&self.path)
    }

    /// Path of the file, unless it is found from the working directory without a flag.
    pub fn path_to_show(&self) -> Option<&Path> {
        self.path().filter(|path| *path != NAME)
    }

    /// Directory of the file.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Returns whether a directory has no configuration. On any other error the file may exist, and
/// reading it reports the fault.
fn is_without(place: &Path) -> bool {
    let Err(error) = place.join(NAME).symlink_metadata() else {
        return false;
    };
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => true,
        // A container with an arbitrary user ID often has the home directory of another user. The
        // log is not set up yet, so no warning can be logged.
        ErrorKind::PermissionDenied => directories::own_configuration().as_deref() == Some(place),
        _ => false,
    }
}

/// The header of a table, if a line is one.
fn header(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let length = line.rfind(']')? + 1;
    let header = &line[..length];
    let is_named = |char: char| char.is_alphanumeric() || "[]._-\"' ".contains(char);
    (header.starts_with('[') && header.chars().all(is_named)).then_some(header)
}

/// Rephrases the parser's message: names the unknown key, and suggests a known one.
fn words(message: &str) -> String {
    let is_key = message.starts_with("unknown field");
    if !is_key && !message.starts_with("unknown variant") {
        return without_value(message)
            .replace('\n', "; ")
            .replace("a sequence", "an array")
            .replace("a nonzero usize", "a whole number above 0")
            .replace("a nonzero u32", "a whole number above 0")
            .replace("u64", "a whole number")
            .replace("f64", "a number");
    }
    let mut names = message.split('`').skip(1).step_by(2);
    let given = names.next().unwrap_or_default();
    let known: Vec<_> = names.collect();
    let kind = if is_key { "key" } else { "value" };
    format!("unknown {kind} `{given}`; {}", suggestion(given, &known))
}

/// Returns the known name that an unknown key or value must mean.
fn intended_name(message: &str) -> Option<&str> {
    let is_name = ["unknown field", "unknown variant"];
    let is_unknown = is_name.iter().any(|start| message.starts_with(start));
    let mut names = message.split('`').skip(1).step_by(2).filter(|_| is_unknown);
    let given = names.next()?;
    suggest(given, names)
}

/// Removes a misplaced text from the message, because it may be a secret.
fn without_value(message: &str) -> Cow<'_, str> {
    let parts = message
        .split_once("string \"")
        .zip(message.rsplit_once("\", expected"));
    match parts {
        Some(((before, _), (_, after))) => format!("{before}a string, expected{after}").into(),
        None => message.into(),
    }
}

/// Suggests the known name nearest to `given`.
pub(crate) fn suggestion(given: &str, known: &[&str]) -> String {
    match suggest(given, known.iter().copied()) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "none is defined".to_owned(),
        None => format!("known: {}", known.join(", ")),
    }
}
