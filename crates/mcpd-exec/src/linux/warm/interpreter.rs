//! Interpreter of a script that can be started ahead: its command line and the variables that it
//! reads when it starts.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::command::Command;
use crate::error::diagnosis;
use crate::os;

/// Letters of options of Python that say nothing of the program to run.
const OPTIONS: &str = "bBEIOPsSu";

/// Names of variables that the interpreter, the C library or a launcher reads at the start; a name
/// that ends with `*` is a prefix.
const START_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "PYTHON*",
    "PYENV_*",
    "LD_*",
    "GLIBC_TUNABLES",
    "VIRTUAL_ENV",
];

/// Script with the interpreter that runs it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InterpretedScript {
    /// Program and first arguments.
    pub(super) words: Vec<OsString>,
    pub(super) script: PathBuf,
    /// First line, if it names the interpreter.
    pub(super) line: Vec<u8>,
    /// Arguments of the script.
    pub(super) arguments: Vec<OsString>,
}

impl InterpretedScript {
    /// Finds out what runs `command`, whose program is at `program`. Blocks.
    ///
    /// # Errors
    ///
    /// The reason that it can't be started ahead.
    pub(super) fn of(command: &Command, program: &Path) -> Result<Self, String> {
        let line = first_line(program).unwrap_or_default();
        if !line.starts_with(b"#!") && is_python(program.as_os_str().as_bytes()) {
            return Self::by_program(command, program);
        }
        let words = interpreter_words(&line).ok_or("its first line does not name Python alone")?;
        if !os::may_execute(program) {
            return Err("the script is not executable".to_owned());
        }
        Ok(Self {
            words,
            script: program.to_owned(),
            line,
            arguments: command.parts.args.clone(),
        })
    }

    fn by_program(command: &Command, program: &Path) -> Result<Self, String> {
        let mut arguments = command.parts.args.iter();
        let mut words = vec![program.as_os_str().to_owned()];
        let script = loop {
            let argument = arguments
                .next()
                .ok_or("the interpreter is given no script")?;
            match argument.as_bytes() {
                [b'-', ..] if is_option(argument.as_bytes()) => words.push(argument.clone()),
                [b'-', ..] => return Err("the interpreter has other options".to_owned()),
                _ => break PathBuf::from(argument),
            }
        };
        if !script.is_absolute() {
            return Err("the path of the script is relative".to_owned());
        }
        Ok(Self {
            words,
            script,
            line: Vec::new(),
            arguments: arguments.cloned().collect(),
        })
    }
}

/// Returns the variables of a command that its interpreter reads at the start.
pub(super) fn start_variables(command: &Command) -> Vec<(OsString, OsString)> {
    let inherited = command.base_variables();
    let inherited = inherited
        .iter()
        .filter(|(name, _)| !command.parts.changes.contains_key(*name));
    let changed = command.parts.changes.iter();
    let changed = changed.filter_map(|(name, value)| Some((name.as_os_str(), value.as_deref()?)));
    let all = inherited
        .chain(changed)
        .filter(|(name, _)| is_read_at_start(name));
    let mut all: Vec<_> = all
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    all.sort();
    all
}

fn is_read_at_start(name: &OsStr) -> bool {
    START_VARIABLES
        .iter()
        .any(|known| match known.strip_suffix('*') {
            Some(beginning) => name.as_bytes().starts_with(beginning.as_bytes()),
            None => name == *known,
        })
}

/// Returns the first line of a file, with its end. `None` without one, or if it is longer than the
/// kernel reads.
fn first_line(file: &Path) -> Option<Vec<u8>> {
    let mut start = diagnosis::read_start(file)?;
    let end = start.iter().position(|byte| *byte == b'\n')?;
    start.truncate(end + 1);
    Some(start)
}

/// Returns the program and the first arguments that the kernel starts for this first line, if they
/// are Python with nothing but harmless options.
fn interpreter_words(line: &[u8]) -> Option<Vec<OsString>> {
    let line = line.strip_prefix(b"#!")?.trim_ascii_start();
    let line = line.strip_suffix(b"\n")?;
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t'));
    let (program, rest) = line.split_at(end.unwrap_or(line.len()));
    // The kernel passes the rest as one argument.
    let rest = rest.trim_ascii();
    let is_fit = match program.rsplit(|byte| *byte == b'/').next()? {
        b"env" => is_fit_for_env(rest),
        _ => is_python(program) && (rest.is_empty() || is_option(rest)),
    };
    let words = [program, rest].into_iter().filter(|word| !word.is_empty());
    let absolute = program.starts_with(b"/");
    (is_fit && absolute).then(|| {
        words
            .map(|word| OsString::from_vec(word.to_vec()))
            .collect()
    })
}

/// Returns whether `env` starts Python with this argument.
fn is_fit_for_env(argument: &[u8]) -> bool {
    let Some(split) = argument.strip_prefix(b"-S") else {
        return is_python(argument);
    };
    let mut words = split
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    words.next().is_some_and(is_python) && words.all(is_option)
}

fn is_python(program: &[u8]) -> bool {
    let name = program
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default();
    let version = name.strip_prefix(b"python");
    version.is_some_and(|version| {
        version
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'.'))
    })
}

fn is_option(word: &[u8]) -> bool {
    let letters = word
        .strip_prefix(b"-")
        .filter(|letters| !letters.is_empty());
    letters.is_some_and(|letters| letters.iter().all(|byte| OPTIONS.as_bytes().contains(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_names_python_or_not() {
        for (line, expected) in [
            ("#!/usr/bin/python3\n", Some("/usr/bin/python3")),
            (
                "#! /usr/bin/python3.12 -Iu\n",
                Some("/usr/bin/python3.12|-Iu"),
            ),
            ("#!/usr/bin/env python3\n", Some("/usr/bin/env|python3")),
            (
                "#!/usr/bin/env -S python3 -u -B\n",
                Some("/usr/bin/env|-S python3 -u -B"),
            ),
            ("#!/usr/bin/env -S python3 -m x\n", None),
            ("#!/usr/bin/env -S A=b python3\n", None),
            ("#!/usr/bin/env -S uv run --script\n", None),
            ("#!/usr/bin/python3 -x\n", None),
            ("#!/usr/bin/python3 -\n", None),
            ("#!/usr/bin/python3\r\n", None),
            ("#!/usr/bin/python3-config\n", None),
            ("#!python3\n", None),
            ("#!/bin/sh\n", None),
            ("print(1)\n", None),
            ("#!/usr/bin/python3", None),
        ] {
            let words = interpreter_words(line.as_bytes());
            let words = words.map(|words| words.join(OsStr::new("|")));
            assert_eq!(words, expected.map(OsString::from), "{line:?}");
        }
    }

    #[test]
    fn variables_of_the_start_hold_no_secrets() {
        let command = Command::new("/x").env_clear();
        let command = command
            .env("PYTHONPATH", "/p")
            .env("API_KEY", "secret")
            .env("LC_ALL", "C");
        let names: Vec<_> = start_variables(&command)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["LC_ALL", "PYTHONPATH"]);
    }
}
