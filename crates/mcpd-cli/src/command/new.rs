//! `mcpd new`: a script that works, to begin from.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_check::Finding;
use mcpd_config::{File, tolerate_faults};
use mcpd_scriptspec::ScriptPath;
use mcpd_scriptspec::template::{self, Kind, Language};

use super::check;
use crate::args::{Confinement, New};
use crate::exit_code::ExitCode;
use crate::output;

/// Test cases of a tool in any language.
const CASES: &str = r#"[[case]]
name = "greets by name"
arguments = { name = "World" }
text = "Hello, World!"
"#;

/// Creates the script, says how to use it, and what keeps it from running here.
pub(crate) async fn run(args: &New) -> anyhow::Result<ExitCode> {
    let by_extension = language_of(&args.path);
    let language = args.lang.or(by_extension).unwrap_or(Language::Sh);
    // mcpd runs BASIC by its extension, and nothing else.
    let has_basic = [Some(language), by_extension].contains(&Some(Language::Basic));
    if has_basic && args.path.extension().is_some() && by_extension != Some(language) {
        bail!(
            "create `{}`: its extension is of another language",
            args.path.display()
        );
    }
    let kind = match (args.prompt, args.resource) {
        (true, _) => Kind::Prompt,
        (_, true) => Kind::Resource,
        _ => Kind::Tool,
    };
    let path = with_extension(&args.path, language);
    let name = name(&path)?;
    let Some(text) = template::script(language, kind, &name) else {
        bail!(
            "create `{}`: a script in BASIC is a tool; choose another language for a prompt or a resource",
            path.display()
        );
    };
    create(&path, &text).with_context(|| format!("create `{}`", path.display()))?;
    let command = use_it(&path, kind, &name);
    let mut created = format!("created {}\n", path.display());
    if kind == Kind::Tool
        && let Some(cases) = create_cases(&path)?
    {
        created += &format!("created {}\n", cases.display());
    }
    output::write_text(&format!("{created}{command}\n"))?;
    let created = [path];
    let confinement = Confinement::default();
    let examined = check::examine(
        &created,
        &confinement,
        &File::default(),
        false,
        tolerate_faults,
    )
    .await?;
    if let Some(catalog) = examined {
        let findings = Finding::all(&catalog);
        if !findings.is_empty() {
            output::note_styled(&check::human(&findings, &catalog));
        }
    }
    Ok(ExitCode::Success)
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

/// Creates an executable file; one that is there is never overwritten.
fn create(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(directory) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        fs::create_dir_all(directory)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o777);
    let mut file = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("the file exists; remove it first, or choose another name")
        }
        file => file?,
    };
    file.write_all(text.as_bytes()).inspect_err(|_| {
        // Nothing is left of a script that could not be written whole.
        fs::remove_file(path).ok();
    })?;
    Ok(())
}

/// Creates the test cases of a tool, unless it has some.
fn create_cases(script: &Path) -> anyhow::Result<Option<PathBuf>> {
    let mut path = script.as_os_str().to_owned();
    path.push(mcpd_testcase::SUFFIX);
    let path = PathBuf::from(path);
    match OpenOptions::new().write(true).create_new(true).open(&path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
        file => file.and_then(|mut file| file.write_all(CASES.as_bytes())),
    }
    .with_context(|| format!("create `{}`", path.display()))?;
    Ok(Some(path))
}

/// The command that uses the script.
fn use_it(path: &Path, kind: Kind, name: &str) -> String {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_string_lossy(),
        _ => ".".into(),
    };
    let (verb, what, arguments) = match kind {
        Kind::Tool => ("call", name.to_owned(), " name=World"),
        Kind::Prompt => ("prompt", name.to_owned(), " name=World"),
        Kind::Resource => ("read", template::resource_uri(name), ""),
    };
    output::shell_command(["mcpd", verb, &directory, &what]) + arguments
}
