//! Drafts of sidecars for programs that know nothing of mcpd: from their help, their manual pages,
//! and the files of task runners.
//!
//! A program is asked within limits, in a sandbox without network or a place to write. A draft is
//! for review: nothing serves it before it is written.

use std::fmt;
use std::fs;
use std::path::{self, Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_exec::Executor;
use mcpd_scriptspec::adopt::{CommandLine, Form, Sidecar, TaskFile, Unread};
use mcpd_scriptspec::{Dialect, Severity, excerpt};
use serde_json::Value;

use self::probe::Prober;

mod place;
mod probe;

/// Maximum number of sub-commands of one program.
const MAX_SUBCOMMANDS: usize = 100;

/// Maximum length of a quoted line in a remark, in characters.
const EXCERPT: usize = 60;

/// Form of sub-commands in drafts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subcommands {
    /// They are left out.
    #[default]
    LeftOut,
    /// A tool for each, with its own options.
    Tools,
    /// One tool with a choice, for sub-commands without options of their own.
    Choice,
}

/// A draft and what it is of.
#[derive(Debug)]
pub struct Draft {
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

impl Draft {
    /// Text of the sidecar, with a line before it that names it.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "# {}.mcpd.toml, a draft: review it before use.\n{}\n",
            self.name,
            self.sidecar.text.trim_end()
        )
    }

    /// Definition of the tool, as models see it.
    ///
    /// # Errors
    ///
    /// The draft has a fault.
    pub fn definition(&self) -> anyhow::Result<Value> {
        let path = format!("{}.mcpd.toml", self.name);
        let described = Dialect::Sidecar.read(&path, self.sidecar.text.as_bytes());
        let parsed = described.into_iter().next().map(|tool| tool.parsed);
        let parsed = parsed.context("read the draft")?;
        let is_error = |severity| severity == Severity::Error;
        let fault = parsed
            .diagnostics
            .iter()
            .find(|fault| is_error(fault.severity));
        match (parsed.spec, fault) {
            (Some(spec), _) => Ok(spec.definition(&self.name)),
            (None, Some(fault)) => bail!("describe `{}`: {}", self.name, fault.message),
            (None, None) => bail!("describe `{}`", self.name),
        }
    }
}

/// Drafts of several programs, with a reader of the remarks about what could not be read.
pub struct Adoption<'a> {
    prober: Prober,
    remark: &'a (dyn Fn(&str) + Sync),
    drafts: Vec<Draft>,
}

impl fmt::Debug for Adoption<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adoption")
            .field("drafts", &self.drafts)
            .finish_non_exhaustive()
    }
}

impl<'a> Adoption<'a> {
    /// Adoption that runs programs with `executor`, and passes each remark, without a line end, to
    /// `remark`.
    #[must_use]
    pub fn new(executor: Executor, remark: &'a (dyn Fn(&str) + Sync)) -> Self {
        Self {
            prober: Prober::new(executor),
            remark,
            drafts: Vec::new(),
        }
    }

    /// The drafts so far.
    #[must_use]
    pub fn drafts(&self) -> &[Draft] {
        &self.drafts
    }

    /// Drafts what `program` names: a program, with words of a sub-command or without; a script; a
    /// file with tasks; or all of them in a directory.
    ///
    /// # Errors
    ///
    /// There is no such program, or nothing describes its command line.
    pub async fn adopt(&mut self, program: &str, subcommands: Subcommands) -> anyhow::Result<()> {
        let path = Path::new(program);
        if path.is_dir() {
            self.adopt_directory(path).await
        } else if let Some(file) = task_file(path) {
            self.adopt_tasks(path, file)
        } else {
            self.adopt_program(program, subcommands).await
        }
    }

    /// Drafts a program from a text about it, and does not run it: help, a manual page or
    /// completions, whose form is recognized by the name of its file and its content.
    ///
    /// # Errors
    ///
    /// There is no such program, or the text has no option and no argument.
    pub async fn adopt_from(
        &mut self,
        program: &str,
        from: &Path,
        text: Vec<u8>,
    ) -> anyhow::Result<()> {
        let (file, words) = named_program(program)?;
        let (read, text) = self.read(from, text).await?;
        self.report(&from.to_string_lossy(), &text, &read.unread);
        if read.is_empty() {
            bail!(
                "read `{}`: it has no option and no argument",
                from.display()
            );
        }
        let draft = self.draft(&file, &words, &read, &text);
        self.drafts.push(draft);
        Ok(())
    }

    /// Drafts the programs and tasks in a directory that no sidecar describes.
    async fn adopt_directory(&mut self, path: &Path) -> anyhow::Result<()> {
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
                self.adopt_tasks(&file, kind)?;
            } else if !has_sidecar && probe::is_executable(&file) {
                let text = fs::read(&file).unwrap_or_default();
                let describes_itself = Dialect::of(&file.to_string_lossy(), &text).is_some();
                if !describes_itself {
                    let name = file.to_string_lossy().into_owned();
                    let found = self.adopt_one(&file, &[], &name, true).await?;
                    self.drafts.extend(found.map(|(draft, _)| draft));
                }
            }
        }
        Ok(())
    }

    fn adopt_tasks(&mut self, path: &Path, file: TaskFile) -> anyhow::Result<()> {
        let text =
            fs::read_to_string(path).with_context(|| format!("read `{}`", path.display()))?;
        let (tasks, unread) = file.read(&text);
        self.report(&path.to_string_lossy(), text.as_bytes(), &unread);
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let directory = fs::canonicalize(parent.unwrap_or(Path::new(".")))?;
        for task in tasks {
            let sidecar = Sidecar::draft(file.runner()[0], &[&task.name], &task.command_line);
            self.drafts.push(Draft {
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
    async fn adopt_program(
        &mut self,
        program: &str,
        subcommands: Subcommands,
    ) -> anyhow::Result<()> {
        let (file, words) = named_program(program)?;
        let leaves_out = subcommands == Subcommands::LeftOut;
        let found = self.adopt_one(&file, &words, program, leaves_out).await?;
        let Some((draft, read)) = found else {
            bail!(
                "adopt `{program}`: its help has no options and no arguments, and it has no manual page; read another text with `--from`"
            );
        };
        match subcommands {
            Subcommands::LeftOut => {
                self.drafts.push(draft);
                return Ok(());
            }
            Subcommands::Choice => {
                if read.commands.is_empty() {
                    bail!("adopt `{program}`: its help has no sub-commands to choose from");
                }
                let sidecar = Sidecar::draft_with_choice(&draft.name, &words, &read);
                self.drafts.push(Draft { sidecar, ..draft });
                return Ok(());
            }
            Subcommands::Tools => {}
        }
        for command in read.commands.iter().take(MAX_SUBCOMMANDS) {
            let mut words = words.clone();
            words.push(&command.name);
            let name = format!("{program} {}", command.name);
            let found = self.adopt_one(&file, &words, &name, true).await?;
            match found {
                Some((draft, _)) => self.drafts.push(draft),
                None => self.remark(&format!("{name}: no help was found")),
            }
        }
        Ok(())
    }

    /// Reads a text in any form; a manual page in its source is rendered first.
    async fn read(&self, from: &Path, text: Vec<u8>) -> anyhow::Result<(CommandLine, Vec<u8>)> {
        let name = from.file_name().unwrap_or_default().to_string_lossy();
        let form = Form::of(&name, &text);
        if form != Form::Manual {
            return Ok((CommandLine::read(form, &text), text));
        }
        let page = self.prober.render(text).await?;
        let page = page.with_context(|| {
            format!(
                "read the manual page `{}`: it describes no command line, or `man` could not render it",
                from.display()
            )
        })?;
        Ok((page.read, page.text))
    }

    /// Asks a program for its help, and drafts its sidecar.
    async fn adopt_one(
        &self,
        file: &Path,
        words: &[&str],
        name: &str,
        is_last: bool,
    ) -> anyhow::Result<Option<(Draft, CommandLine)>> {
        let help = match self.prober.help(file, words).await? {
            Some(help) => help,
            None => match self.prober.manual(file, words).await? {
                Some(page) => {
                    self.remark(&format!("{name}: read the manual page, as it has no help"));
                    page
                }
                None => return Ok(None),
            },
        };
        self.report(name, &help.text, &help.read.unread);
        let count = help.read.commands.len();
        if is_last && count > 0 {
            self.remark(&format!(
                "{name}: {count} sub-commands are left out; `--subcommands` drafts each"
            ));
        }
        let draft = self.draft(file, words, &help.read, &help.text);
        Ok(Some((draft, help.read)))
    }

    fn draft(&self, file: &Path, words: &[&str], read: &CommandLine, text: &[u8]) -> Draft {
        let program = file
            .file_name()
            .map_or_else(|| file.to_string_lossy(), |name| name.to_string_lossy());
        let sidecar = Sidecar::draft(&program, words, read);
        let mut name = program.into_owned();
        for word in words {
            name = format!("{name}/{word}");
        }
        self.report(&name, text, &sidecar.left_out);
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

    fn remark(&self, text: &str) {
        (self.remark)(text);
    }

    /// Remarks on what could not be read, each with its line.
    fn report(&self, name: &str, text: &[u8], unread: &[Unread]) {
        for one in unread {
            let before = text.get(..one.span.start).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let quoted = String::from_utf8_lossy(text.get(one.span.clone()).unwrap_or_default());
            let quoted = excerpt(quoted.trim(), EXCERPT);
            self.remark(&format!("{name}: line {line}: {}: {quoted}", one.message));
        }
    }
}

/// Returns whether the text names a program, rather than a directory or a file with tasks.
#[must_use]
pub fn is_program(text: &str) -> bool {
    let path = Path::new(text);
    !path.is_dir() && task_file(path).is_none()
}

/// Kind of an existing file with tasks.
fn task_file(path: &Path) -> Option<TaskFile> {
    let name = path.file_name()?.to_str()?;
    TaskFile::of(name).filter(|_| path.is_file())
}

/// File of a program, and the words behind its name.
fn named_program(program: &str) -> anyhow::Result<(PathBuf, Vec<&str>)> {
    if Path::new(program).is_file() {
        return Ok((PathBuf::from(program), Vec::new()));
    }
    let mut words = program.split_whitespace();
    let name = words.next().context("adopt a program without a name")?;
    Ok((probe::find(name)?, words.collect()))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn programs_of_a_directory_are_drafted_and_written() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("count");
        let help = "Usage: count [OPTION]... FILE\n  -l, --lines  count lines\n\nCommands:\n  all  count all\n";
        fs::write(&program, format!("#!/bin/sh\nprintf '{help}'\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(
            directory.path().join("Makefile"),
            "## Builds it.\nbuild:\n\ttrue\n",
        )
        .unwrap();
        let remarks = Mutex::new(Vec::new());
        let remark = |text: &str| remarks.lock().unwrap().push(text.to_owned());
        let executor = Executor::new(mcpd_exec::Config::default()).unwrap();
        let mut adoption = Adoption::new(executor, &remark);
        let path = directory.path().to_str().unwrap();
        adoption.adopt(path, Subcommands::LeftOut).await.unwrap();

        let names: Vec<_> = adoption.drafts().iter().map(|draft| &*draft.name).collect();
        assert_eq!(names, ["build", "count"]);
        let count = &adoption.drafts()[1];
        assert!(
            count.text().contains("\n[options.lines]\n"),
            "{}",
            count.text()
        );
        assert_eq!(count.definition().unwrap()["name"], "count");
        assert!(
            remarks
                .lock()
                .unwrap()
                .iter()
                .any(|one| one.contains("1 sub-commands are left out"))
        );

        let written = count.write_beside().unwrap();
        assert_eq!(written, directory.path().join("count.mcpd.toml"));
        assert!(count.write_beside().is_err(), "it is there");
        assert!(
            adoption.drafts()[0].write_beside().is_err(),
            "it is no file"
        );
        let tools = directory.path().join("tools");
        adoption.drafts()[0].write_into(&tools).unwrap();
        let wrapper = fs::read_to_string(tools.join("build")).unwrap();
        assert!(wrapper.ends_with("\" </dev/null\n"), "{wrapper}");
    }
}
