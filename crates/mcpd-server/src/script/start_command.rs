//! Start command of a script: the file itself as a program, or an interpreter with the file.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcpd_exec::{Command, RunAs};
use mcpd_scriptspec::Invocation;
use mcpd_scriptspec::dialect::Condition;
use sha2::{Digest as _, Sha256};

use crate::script::interpreter::Interpreter;
use crate::support::private_dir::{self, LazyDirectory};
use crate::support::random_id;
use crate::support::regular_file;

/// Program and arguments that run a script, for any purpose.
#[derive(Debug, Clone)]
pub(crate) struct StartCommand {
    program: PathBuf,
    /// First arguments of the program: those of the interpreter, then the file.
    args: Vec<OsString>,
    /// File that the interpreter reads.
    file: Option<PathBuf>,
    /// Alternative files, each with conditions on the call.
    variants: Vec<FileVariant>,
    /// Variables of directories that the program must be able to write.
    temporary: &'static [&'static str],
    /// Keeps the file of a script that is a part of another one.
    _excerpts: Option<Arc<Excerpts>>,
}

/// File for calls that meet some conditions.
#[derive(Debug, Clone)]
pub(crate) struct FileVariant {
    pub(crate) conditions: Vec<Condition>,
    pub(crate) file: PathBuf,
}

impl StartCommand {
    /// Executes `file`, whose first line is `shebang` if that names an interpreter.
    pub(crate) fn of_program(file: &Path, shebang: Option<&str>) -> Self {
        Self {
            program: file.to_owned(),
            args: Vec::new(),
            file: None,
            variants: Vec::new(),
            temporary: shebang
                .and_then(interpreter_in)
                .map(|(program, _)| temporary_variables(Path::new(program)))
                .unwrap_or_default(),
            _excerpts: None,
        }
    }

    /// Runs `file` with `interpreter`.
    pub(crate) fn by(interpreter: &Interpreter, file: &Path) -> Self {
        Self {
            program: interpreter.program.clone(),
            args: interpreter.args.clone(),
            file: Some(file.to_owned()),
            variants: Vec::new(),
            temporary: temporary_variables(&interpreter.program),
            _excerpts: None,
        }
    }

    /// Runs one of `variants`, which are files of `excerpts`, with `interpreter`.
    pub(crate) fn of_excerpts(
        interpreter: &Interpreter,
        variants: Vec<FileVariant>,
        excerpts: Arc<Excerpts>,
    ) -> Self {
        Self {
            program: interpreter.program.clone(),
            args: interpreter.args.clone(),
            file: None,
            variants,
            temporary: temporary_variables(&interpreter.program),
            _excerpts: Some(excerpts),
        }
    }

    /// Returns the location of the interpreter, with all links resolved; `None` for a file that is
    /// a program of its own. A name without a directory is looked up in `search_path`. Blocks.
    pub(crate) fn interpreter(
        &self,
        search_path: Option<&str>,
        directory: &Path,
    ) -> Option<PathBuf> {
        let is_program = self.file.is_none() && self.variants.is_empty();
        let (name, own_path) = match is_program {
            true => {
                let line = first_line(&self.program)?;
                let (program, path) = interpreter_in(&line)?;
                (PathBuf::from(program), path.map(str::to_owned))
            }
            false => (self.program.clone(), None),
        };
        let search_path = own_path.as_deref().or(search_path);
        let found = match name.components().count() {
            1 => which::which_in(&name, search_path, directory).unwrap_or(name),
            _ => name,
        };
        Some(found.canonicalize().unwrap_or(found))
    }

    /// Returns the file that the interpreter reads in a call.
    pub(crate) fn file_for(&self, invocation: &Invocation) -> Option<&Path> {
        let is_for = |variant: &&FileVariant| {
            let mut conditions = variant.conditions.iter();
            conditions.all(|condition| condition.is_met_by(invocation))
        };
        let variant = self.variants.iter().find(is_for);
        variant
            .map(|variant| &*variant.file)
            .or(self.file.as_deref())
    }

    /// Returns the command without attributes of a call.
    pub(crate) fn command(&self) -> Command {
        self.command_with(self.file.as_deref())
    }

    /// Returns the command for a call in which the interpreter reads `file`.
    pub(crate) fn command_with(&self, file: Option<&Path>) -> Command {
        let command = Command::new(&self.program).args(&self.args);
        let temporary = self.temporary.iter().copied();
        let command = temporary.fold(command, Command::temporary);
        match file {
            Some(file) => command.arg(file).visible(file),
            None => command,
        }
    }
}

/// Variables of directories below a home that `program` must be able to write, and that a
/// confined run may have elsewhere. fish reports each that it cannot create on stderr; it stores
/// its history and variables in them.
pub(crate) fn temporary_variables(program: &Path) -> &'static [&'static str] {
    match program.file_name().and_then(OsStr::to_str) {
        Some("fish") => &["XDG_CONFIG_HOME", "XDG_DATA_HOME"],
        _ => &[],
    }
}

/// Returns the first line of a file, if it is readable.
fn first_line(file: &Path) -> Option<String> {
    /// Maximum length that the kernel reads.
    const MAX_LINE: u64 = 256;
    let mut start = Vec::new();
    if let Ok(Some(script)) = regular_file::open(file) {
        // An unreadable file may still be executable.
        script.take(MAX_LINE).read_to_end(&mut start).ok();
    }
    let line = start.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}

/// Returns the program in the first line of a script, if it has one, and the `PATH` in which that
/// line has it searched, if it says so.
fn interpreter_in(line: &str) -> Option<(&str, Option<&str>)> {
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let program = words.next()?;
    let named = program
        .ends_with("/env")
        .then(|| program_of_env(words))
        .flatten();
    Some(named.unwrap_or((program, None)))
}

/// Returns the program that `env` starts with these arguments, and the `PATH` in which it searches
/// it, unless that is the inherited one.
fn program_of_env<'a>(words: impl Iterator<Item = &'a str>) -> Option<(&'a str, Option<&'a str>)> {
    /// Path in which programs are searched without a `PATH`.
    const NO_PATH: &str = "/usr/bin:/bin";
    let split = |word: &'a str| {
        let joined = ["--split-string=", "-vS", "-S"];
        let rest = joined.iter().find_map(|flag| word.strip_prefix(flag));
        rest.unwrap_or(word)
    };
    let mut words = words.map(split).filter(|word| !word.is_empty());
    let mut path = None;
    while let Some(word) = words.next() {
        match word {
            "-i" | "-" | "--ignore-environment" => path = Some(NO_PATH),
            "-u" | "--unset" if words.next() == Some("PATH") => path = Some(NO_PATH),
            "-C" | "--chdir" => drop(words.next()),
            _ if word.starts_with('-') => {}
            _ => match word.split_once('=') {
                Some(("PATH", own)) => path = Some(own),
                Some(_) => {}
                None => return Some((word, path)),
            },
        }
    }
    None
}

/// Files of scripts that are parts of other files, each written once. Other users cannot list
/// them; they are deleted with the last script that runs one.
#[derive(Debug)]
pub(crate) struct Excerpts(LazyDirectory);

impl Default for Excerpts {
    fn default() -> Self {
        Self(LazyDirectory::new("mcpd-scripts-"))
    }
}

impl Excerpts {
    /// Returns a file with this text, in a directory that only this user and the user of the
    /// script can enter. Blocks.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub(crate) fn write(
        &self,
        extension: &str,
        text: &str,
        run_as: Option<RunAs>,
    ) -> io::Result<PathBuf> {
        let directory = self.0.path()?;
        let hash = Sha256::digest(text);
        let file = directory
            .join(random_id::hex(&hash[..16]))
            .with_extension(extension);
        if !file.exists() {
            // Renamed into place when complete, because another scan may see it at once.
            let mut complete = tempfile::NamedTempFile::new_in(directory)?;
            io::Write::write_all(&mut complete, text.as_bytes())?;
            complete.persist(&file)?;
        }
        if run_as.is_some() {
            // Readable for every user that knows its name, which is a hash of its content.
            private_dir::set_mode(directory, 0o711)?;
            private_dir::set_mode(&file, 0o644)?;
        }
        Ok(file)
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[track_caller]
    fn check_mode(path: &Path, mode: u32) {
        assert_eq!(path.metadata().unwrap().mode() & 0o777, mode);
    }

    #[test]
    fn start_command_gives_fish_temporary_directories() {
        for (line, is_fish) in [
            ("#!/usr/bin/fish", true),
            ("#!/usr/bin/env -S fish --no-config", true),
            ("#!/bin/sh fish", false),
            ("fish", false),
        ] {
            let start_command = StartCommand::of_program(Path::new("script"), Some(line));
            assert_eq!(!start_command.temporary.is_empty(), is_fish, "{line}");
        }
    }

    #[test]
    fn excerpt_is_written_once_and_privately() {
        let excerpts = Excerpts::default();
        let file = excerpts.write("sh", "echo 1", None).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"echo 1");
        assert_eq!(file.extension().unwrap(), "sh");
        check_mode(&file, 0o600);
        check_mode(file.parent().unwrap(), 0o700);

        let before = file.metadata().unwrap().ino();
        assert_eq!(excerpts.write("sh", "echo 1", None).unwrap(), file);
        assert_eq!(file.metadata().unwrap().ino(), before);
        assert_ne!(excerpts.write("sh", "echo 2", None).unwrap(), file);

        let other = Some(RunAs::new(1, 1));
        assert_eq!(excerpts.write("sh", "echo 1", other).unwrap(), file);
        check_mode(&file, 0o644);
        check_mode(file.parent().unwrap(), 0o711);

        drop(excerpts);
        assert!(!file.exists());
    }
}
