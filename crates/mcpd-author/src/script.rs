//! New scripts: one that works, to begin from, with its test cases.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_scriptspec::ScriptPath;
use mcpd_scriptspec::template::{self, Kind, Language};
use mcpd_server::catalog::scan::TEST_CASES;

use crate::new_file;
use crate::shell::quoted;

/// Test cases of a tool in any language.
const CASES: &str = r#"[[case]]
name = "greets by name"
arguments = { name = "World" }
text = "Hello, World!"
"#;

/// Script that was created.
#[derive(Debug)]
#[non_exhaustive]
pub struct NewScript {
    /// Its file.
    pub file: PathBuf,
    /// File with its test cases, if it got some.
    pub cases: Option<PathBuf>,
    name: String,
    kind: Kind,
}

impl NewScript {
    /// Creates a script at `path`, in the language of its extension by default, or else for the
    /// shell.
    ///
    /// # Errors
    ///
    /// The path does not fit a script of that language and kind, or is not free.
    pub fn create(path: &Path, language: Option<Language>, kind: Kind) -> anyhow::Result<Self> {
        let by_extension = language_of(path);
        let language = language.or(by_extension).unwrap_or(Language::Sh);
        // mcpd runs BASIC by its extension, and nothing else.
        let has_basic = [Some(language), by_extension].contains(&Some(Language::Basic));
        if has_basic && path.extension().is_some() && by_extension != Some(language) {
            bail!(
                "create `{}`: its extension is of another language",
                path.display()
            );
        }
        let file = with_extension(path, language);
        let name = name(&file)?;
        let Some(text) = template::script(language, kind, &name) else {
            bail!(
                "create `{}`: a script in BASIC is a tool; choose another language for a prompt or a resource",
                file.display()
            );
        };
        new_file::create(&file, &text, true)
            .with_context(|| format!("create `{}`", file.display()))?;
        let cases = match kind {
            Kind::Tool => create_cases(&file)?,
            _ => None,
        };
        Ok(Self {
            file,
            cases,
            name,
            kind,
        })
    }

    /// The command that uses the script.
    #[must_use]
    pub fn command(&self) -> String {
        let directory = match self.file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_string_lossy(),
            _ => ".".into(),
        };
        let (verb, what, arguments) = match self.kind {
            Kind::Tool => ("call", self.name.clone(), " name=World"),
            Kind::Prompt => ("prompt", self.name.clone(), " name=World"),
            Kind::Resource => ("read", template::resource_uri(&self.name), ""),
        };
        quoted(["mcpd", verb, &directory, &what]) + arguments
    }
}

/// Language of an extension.
fn language_of(path: &Path) -> Option<Language> {
    Language::of_extension(path.extension()?.to_str()?)
}

/// Adds the extension that the interpreter of a language needs, if the path has none.
fn with_extension(path: &Path, language: Language) -> PathBuf {
    match (path.extension(), language.extension()) {
        (None, Some(extension)) => path.with_extension(extension),
        _ => path.to_owned(),
    }
}

/// Name of the script, by which it is called: that of its file.
fn name(path: &Path) -> anyhow::Result<String> {
    let Some(file) = path.file_name().and_then(OsStr::to_str) else {
        bail!(
            "create `{}`: expected the path of a file, in UTF-8",
            path.display()
        );
    };
    if file.starts_with('-') {
        bail!("use the name `{file}`: it looks like a flag");
    }
    if file.starts_with(['.', '#']) || file.ends_with(['~', ' ']) {
        bail!("use the name `{file}`: files with such names are not served");
    }
    // A program in BASIC is named without its extension.
    let parsed: Result<ScriptPath, _> = file.strip_suffix(".bas").unwrap_or(file).parse();
    let name = parsed.with_context(|| format!("use the name `{file}`"))?;
    Ok(name.to_string())
}

/// Creates the test cases of a tool, unless it has some.
fn create_cases(script: &Path) -> anyhow::Result<Option<PathBuf>> {
    let mut path = script.as_os_str().to_owned();
    path.push(TEST_CASES);
    let path = PathBuf::from(path);
    match new_file::create(&path, CASES, false) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
        created => created.with_context(|| format!("create `{}`", path.display()))?,
    }
    Ok(Some(path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn tool_gets_cases_and_a_command_and_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/greet");
        let script = NewScript::create(&path, None, Kind::Tool).unwrap();
        assert_eq!(script.file, path);
        assert_eq!(
            script.cases,
            Some(directory.path().join("new/greet.test.toml"))
        );
        let command = script.command();
        assert!(command.ends_with("/new greet name=World"), "{command}");
        let again = NewScript::create(&path, None, Kind::Tool).unwrap_err();
        assert!(
            format!("{again:#}").contains("the file exists"),
            "{again:#}"
        );
    }

    #[test]
    fn path_has_to_fit_the_language() {
        let directory = tempfile::tempdir().unwrap();
        let refused = |name: &str, language, kind| {
            let path = directory.path().join(name);
            NewScript::create(&path, language, kind)
                .unwrap_err()
                .to_string()
        };
        let error = refused("a.py", Some(Language::Basic), Kind::Tool);
        assert!(
            error.ends_with("its extension is of another language"),
            "{error}"
        );
        let error = refused("a.bas", None, Kind::Prompt);
        assert!(error.contains("a script in BASIC is a tool"), "{error}");
        let error = refused("-a", None, Kind::Tool);
        assert!(error.contains("it looks like a flag"), "{error}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
