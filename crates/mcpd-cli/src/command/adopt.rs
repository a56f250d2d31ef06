//! `mcpd adopt`: drafts of sidecars for programs that know nothing of mcpd.

use std::fs;
use std::io::Read as _;
use std::path::{self, Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_scriptspec::adopt::{CommandLine, Form, Sidecar, TaskFile, Unread};
use mcpd_scriptspec::{Dialect, Severity, excerpt};

use self::probe::Prober;
use crate::args::{Adopt, Subcommands};
use crate::exit_code::ExitCode;
use crate::output;

mod place;
mod probe;

/// Maximum number of sub-commands of one program.
const MAX_SUBCOMMANDS: usize = 100;

/// Maximum length of a quoted line in a note, in characters.
const EXCERPT: usize = 60;

/// A draft and what it is of.
struct Draft {
    /// Name of the tool: that of its program, and the words of its sub-command.
    name: String,
    /// Program with the words before those of the sidecar.
    program: Vec<String>,
    /// Directory in which the program runs; that of the caller by default.
    directory: Option<PathBuf>,
    /// The sidecar can stand beside the program, which is a file of the user.
    beside: Option<PathBuf>,
    sidecar: Sidecar,
}

/// Drafts the sidecars, and prints or writes them.
pub(crate) async fn run(args: &Adopt) -> anyhow::Result<ExitCode> {
    let prober = Prober::new()?;
    let mut drafts = Vec::new();
    for program in &args.programs {
        let path = Path::new(program);
        if path.is_dir() {
            directory(&prober, path, &mut drafts).await?;
        } else if let Some(file) = task_file(path) {
            tasks(path, file, &mut drafts)?;
        } else {
            self::program(&prober, program, args, &mut drafts).await?;
        }
    }
    if drafts.is_empty() {
        bail!("adopt anything: no option, argument or task was found");
    }
    for draft in &drafts {
        match &args.write {
            Some(directory) => place::write(draft, directory)?,
            None if args.json => output::write_json(&definition(draft)?)?,
            None => output::write_text(&draft_text(draft))?,
        }
    }
    Ok(ExitCode::Success)
}

fn draft_text(draft: &Draft) -> String {
    format!(
        "# {}.mcpd.toml, a draft: review it before use.\n{}\n",
        draft.name,
        draft.sidecar.text.trim_end()
    )
}

/// Definition of the tool, as models see it.
fn definition(draft: &Draft) -> anyhow::Result<serde_json::Value> {
    let path = format!("{}.mcpd.toml", draft.name);
    let described = Dialect::Sidecar.read(&path, draft.sidecar.text.as_bytes());
    let parsed = described.into_iter().next().map(|tool| tool.parsed);
    let parsed = parsed.context("read the draft")?;
    let is_error = |severity| severity == Severity::Error;
    let fault = parsed
        .diagnostics
        .iter()
        .find(|fault| is_error(fault.severity));
    match (parsed.spec, fault) {
        (Some(spec), _) => Ok(spec.definition(&draft.name)),
        (None, Some(fault)) => bail!("describe `{}`: {}", draft.name, fault.message),
        (None, None) => bail!("describe `{}`", draft.name),
    }
}

/// Kind of an existing file with tasks.
fn task_file(path: &Path) -> Option<TaskFile> {
    let name = path.file_name()?.to_str()?;
    TaskFile::of(name).filter(|_| path.is_file())
}

/// Drafts the programs and tasks in a directory that no sidecar describes.
async fn directory(prober: &Prober, path: &Path, drafts: &mut Vec<Draft>) -> anyhow::Result<()> {
    let entries = fs::read_dir(path).with_context(|| format!("read `{}`", path.display()))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for file in files {
        let has_sidecar = Dialect::SIDECARS.iter().any(|suffix| {
            let mut sidecar = file.clone().into_os_string();
            sidecar.push(suffix);
            Path::new(&sidecar).exists()
        });
        if let Some(kind) = task_file(&file) {
            tasks(&file, kind, drafts)?;
        } else if !has_sidecar && probe::is_executable(&file) {
            let text = fs::read(&file).unwrap_or_default();
            let describes_itself = Dialect::of(&file.to_string_lossy(), &text).is_some();
            if !describes_itself {
                let name = file.to_string_lossy().into_owned();
                let found = adopt_one(prober, &file, &[], &name, true).await?;
                drafts.extend(found.map(|(draft, _)| draft));
            }
        }
    }
    Ok(())
}

fn tasks(path: &Path, file: TaskFile, drafts: &mut Vec<Draft>) -> anyhow::Result<()> {
    let text = fs::read_to_string(path).with_context(|| format!("read `{}`", path.display()))?;
    let (tasks, unread) = file.read(&text);
    report(&path.to_string_lossy(), text.as_bytes(), &unread);
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let directory = fs::canonicalize(parent.unwrap_or(Path::new(".")))?;
    for task in tasks {
        let sidecar = Sidecar::draft(file.runner()[0], &[&task.name], &task.command_line);
        drafts.push(Draft {
            name: task.name.replace(
                |char: char| !(char.is_alphanumeric() || "-_".contains(char)),
                "-",
            ),
            program: file
                .runner()
                .iter()
                .map(|word| (*word).to_owned())
                .collect(),
            directory: Some(directory.clone()),
            beside: None,
            sidecar,
        });
    }
    Ok(())
}

/// Drafts a program, and its sub-commands if they are wanted.
async fn program(
    prober: &Prober,
    program: &str,
    args: &Adopt,
    drafts: &mut Vec<Draft>,
) -> anyhow::Result<()> {
    let (file, words) = match Path::new(program).is_file() {
        true => (PathBuf::from(program), Vec::new()),
        false => {
            let mut words = program.split_whitespace();
            let name = words.next().context("adopt a program without a name")?;
            (probe::find(name)?, words.collect())
        }
    };
    if let Some(from) = &args.from {
        let (read, text) = read_file(prober, from).await?;
        report(&from.to_string_lossy(), &text, &read.unread);
        if read.is_empty() {
            bail!(
                "read `{}`: it has no option and no argument",
                from.display()
            );
        }
        drafts.push(draft(&file, &words, &read, &text));
        return Ok(());
    }
    let leaves_out = args.subcommands.is_none();
    let found = adopt_one(prober, &file, &words, program, leaves_out).await?;
    let Some((draft, read)) = found else {
        bail!(
            "adopt `{program}`: its help has no options and no arguments, and it has no manual page; read another text with `--from`"
        );
    };
    match args.subcommands {
        None => {
            drafts.push(draft);
            return Ok(());
        }
        Some(Subcommands::Choice) => {
            if read.commands.is_empty() {
                bail!("adopt `{program}`: its help has no sub-commands to choose from");
            }
            let sidecar = Sidecar::draft_with_choice(&draft.name, &words, &read);
            drafts.push(Draft { sidecar, ..draft });
            return Ok(());
        }
        Some(Subcommands::Tools) => {}
    }
    for command in read.commands.iter().take(MAX_SUBCOMMANDS) {
        let mut words = words.clone();
        words.push(&command.name);
        let name = format!("{program} {}", command.name);
        let found = adopt_one(prober, &file, &words, &name, true).await?;
        match found {
            Some((draft, _)) => drafts.push(draft),
            None => output::note(&format!("{name}: no help was found\n")),
        }
    }
    Ok(())
}

/// Reads a file in any form; a manual page in its source is rendered first.
async fn read_file(prober: &Prober, from: &Path) -> anyhow::Result<(CommandLine, Vec<u8>)> {
    let text = read_text(from)?;
    let name = from.file_name().unwrap_or_default().to_string_lossy();
    let form = Form::of(&name, &text);
    if form != Form::Manual {
        return Ok((CommandLine::read(form, &text), text));
    }
    let page = prober.render(text).await?;
    let page = page.with_context(|| {
        format!(
            "read the manual page `{}`: it describes no command line, or `man` could not render it",
            from.display()
        )
    })?;
    Ok((page.read, page.text))
}

fn read_text(from: &Path) -> anyhow::Result<Vec<u8>> {
    if from == Path::new("-") {
        let mut text = Vec::new();
        std::io::stdin()
            .read_to_end(&mut text)
            .context("read stdin")?;
        return Ok(text);
    }
    fs::read(from).with_context(|| format!("read `{}`", from.display()))
}

/// Asks a program for its help, and drafts its sidecar.
async fn adopt_one(
    prober: &Prober,
    file: &Path,
    words: &[&str],
    name: &str,
    is_last: bool,
) -> anyhow::Result<Option<(Draft, CommandLine)>> {
    let help = match prober.help(file, words).await? {
        Some(help) => help,
        None => match prober.manual(file, words).await? {
            Some(page) => {
                output::note(&format!(
                    "{name}: read the manual page, as it has no help\n"
                ));
                page
            }
            None => return Ok(None),
        },
    };
    report(name, &help.text, &help.read.unread);
    let count = help.read.commands.len();
    if is_last && count > 0 {
        output::note(&format!(
            "{name}: {count} sub-commands are left out; `--subcommands` drafts each\n"
        ));
    }
    Ok(Some((
        draft(file, words, &help.read, &help.text),
        help.read,
    )))
}

fn draft(file: &Path, words: &[&str], read: &CommandLine, text: &[u8]) -> Draft {
    let program = file
        .file_name()
        .map_or_else(|| file.to_string_lossy(), |name| name.to_string_lossy());
    let sidecar = Sidecar::draft(&program, words, read);
    let mut name = program.into_owned();
    for word in words {
        name = format!("{name}/{word}");
    }
    report(&name, text, &sidecar.left_out);
    // A script elsewhere runs it, in any directory.
    let program_path = path::absolute(file).unwrap_or_else(|_| file.to_owned());
    Draft {
        name,
        program: vec![program_path.to_string_lossy().into_owned()],
        directory: None,
        beside: words.is_empty().then(|| file.to_owned()),
        sidecar,
    }
}

/// Says what could not be read, each with its line.
fn report(name: &str, text: &[u8], unread: &[Unread]) {
    for one in unread {
        let before = text.get(..one.span.start).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let quoted = String::from_utf8_lossy(text.get(one.span.clone()).unwrap_or_default());
        let quoted = excerpt(quoted.trim(), EXCERPT);
        output::note(&format!("{name}: line {line}: {}: {quoted}\n", one.message));
    }
}
