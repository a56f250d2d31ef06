//! Diagnosis of failed starts: from the error number to the cause. The system reports "no such
//! file" for a script whose interpreter is missing, so the file itself is inspected.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::StartError;
use crate::command::Command;
use crate::os::{self, Fault};
use crate::sandbox::Level;
#[cfg(unix)]
use crate::spawner;

/// Length of a `#!` line that the kernel reads, in bytes.
pub(super) const SHEBANG_LIMIT: u64 = 256;

/// Rejects values that the system calls would silently misread.
pub(crate) fn check(command: &Command) -> Result<(), StartError> {
    let nul = |text: &OsStr| text.as_encoded_bytes().contains(&0);
    // No file name contains NUL.
    if nul(command.parts.program.as_os_str()) {
        return Err(StartError::NotFound {
            program: command.parts.program.clone(),
        });
    }
    if let Some(directory) = &command.parts.current_dir
        && nul(directory.as_os_str())
    {
        return Err(StartError::CwdMissing {
            directory: directory.clone(),
        });
    }
    if let Some(index) = command.parts.args.iter().position(|arg| nul(arg)) {
        return Err(StartError::InvalidArgument {
            position: index + 1,
        });
    }
    for (name, value) in &command.parts.changes {
        let reason = if name.is_empty() {
            "the name is empty"
        } else if nul(name) {
            "the name contains a NUL byte"
        } else if name.as_encoded_bytes().contains(&b'=') {
            "the name contains `=`"
        } else if value.as_deref().is_some_and(nul) {
            "the value contains a NUL byte"
        } else {
            continue;
        };
        let name = name.to_string_lossy().escape_debug().to_string();
        return Err(StartError::InvalidEnv { name, reason });
    }
    Ok(())
}

/// Diagnoses why `program`, the resolved path of `command`, was not started.
pub(crate) fn diagnose(error: io::Error, command: &Command, program: PathBuf) -> StartError {
    let fault = os::fault(&error);
    if let (Fault::Missing | Fault::Denied | Fault::NotDirectory, Some(directory)) =
        (fault, &command.parts.current_dir)
        && !os::can_enter(directory)
    {
        return StartError::CwdMissing {
            directory: directory.clone(),
        };
    }
    match fault {
        Fault::Missing | Fault::NotDirectory => diagnose_missing(program),
        Fault::Denied => match hidden_file(command, &program) {
            Some((hidden, file)) => StartError::Hidden {
                program,
                file,
                hidden,
            },
            None => diagnose_denied(program),
        },
        Fault::Loop if fs::metadata(&program).is_err() => StartError::SymlinkLoop { program },
        Fault::Loop => bad_interpreter(program).unwrap_or_else(|program| io_error(program, error)),
        Fault::NotAProgram => not_a_program(program),
        Fault::TooLarge => StartError::ArgumentsTooLarge { program },
        Fault::Busy => StartError::TextBusy { program },
        Fault::Exhausted => StartError::Resource {
            program,
            source: error,
        },
        Fault::Other => io_error(program, error),
    }
}

/// Diagnoses ENOEXEC on a file. The system gives that error both for a `#!` line whose
/// interpreter is cut off, as if there were no such line, and for an interpreter that is no
/// program itself.
fn not_a_program(program: PathBuf) -> StartError {
    let start = read_start(&program).unwrap_or_default();
    let Some((interpreter, crlf)) = interpreter(&start) else {
        return no_shebang(program, &start);
    };
    let name = interpreter.as_os_str().as_encoded_bytes();
    let is_cut = start.len() as u64 == SHEBANG_LIMIT && start.ends_with(name);
    if is_cut || name.is_empty() {
        return StartError::NoInterpreter { program };
    }
    StartError::BadInterpreter {
        program,
        interpreter,
        crlf,
    }
}

/// Diagnoses a file that begins with `start`, has no `#!`, and is no binary of this system.
fn no_shebang(program: PathBuf, start: &[u8]) -> StartError {
    if start.starts_with("\u{feff}#!".as_bytes()) {
        StartError::ByteOrderMark { program }
    } else if is_text(start) {
        StartError::NoShebang { program }
    } else {
        StartError::ForeignBinary { program }
    }
}

/// Returns whether a file that begins so may be text. `start` may end inside a character.
fn is_text(start: &[u8]) -> bool {
    let is_utf8 =
        std::str::from_utf8(start).map_or_else(|error| error.error_len().is_none(), |_| true);
    is_utf8 && !start.contains(&0)
}

/// Looks for reasons that would keep `program` from starting, without starting it.
///
/// # Errors
///
/// The first reason that was found.
#[cfg(unix)]
pub(crate) fn inspect(command: &Command, program: &Path) -> Result<(), StartError> {
    use rustix::fs::{Access, access};

    let program = program.to_owned();
    let is_executable = match fs::metadata(&program) {
        Ok(metadata) => os::is_executable(&metadata),
        Err(error) => return Err(diagnose(error, command, program)),
    };
    if !is_executable {
        return Err(diagnose_denied(program));
    }
    if let Err(error) = access(&program, Access::EXEC_OK) {
        return Err(diagnose(error.into(), command, program));
    }
    let Some(start) = read_start(&program) else {
        // An unreadable file can't be judged.
        return Ok(());
    };
    if !is_program(&start) {
        return Err(no_shebang(program, &start));
    }
    // A relative interpreter is resolved from the directory that the program starts in.
    let directory = command.parts.current_dir.clone().unwrap_or_default();
    let fault = match interpreter(&start) {
        Some((interpreter, crlf)) if crlf || !can_execute(&directory.join(&interpreter)) => {
            Some((interpreter, crlf))
        }
        Some((interpreter, _)) if interpreter.ends_with("env") => missing_in_path(command, &start),
        _ => None,
    };
    let Some((interpreter, crlf)) = fault else {
        return Ok(());
    };
    Err(StartError::BadInterpreter {
        program,
        interpreter,
        crlf,
    })
}

/// Inspects nothing on this system.
///
/// # Errors
///
/// None.
#[cfg(not(unix))]
pub(crate) fn inspect(_: &Command, _: &Path) -> Result<(), StartError> {
    Ok(())
}

/// Returns the interpreter that `env` in the first line would not find, with true if a carriage
/// return sticks to its name.
#[cfg(unix)]
fn missing_in_path(command: &Command, start: &[u8]) -> Option<(PathBuf, bool)> {
    let line = start.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let words = line.split([' ', '\t']);
    let mut words = words.filter(|word| !word.is_empty()).skip(1);
    let name = match words.next()? {
        // `-S` alone splits the rest, and treats a carriage return as a blank.
        "-S" => words.next()?.trim_end_matches('\r'),
        name => name,
    };
    // Options and assignments make `env` do more than look up a name.
    if name.starts_with('-') || name.contains('=') {
        return None;
    }
    let mut wanted = command.clone();
    wanted.parts.program = name.into();
    let bare = name.trim_end_matches('\r');
    spawner::resolve(&wanted)
        .is_err()
        .then(|| (bare.into(), bare != name))
}

/// Returns whether a file that begins so is more than text that only a shell would run.
#[cfg(all(unix, not(target_os = "macos")))]
fn is_program(start: &[u8]) -> bool {
    // A program for other binary files may be registered (`binfmt_misc`).
    start.starts_with(b"#!") || !is_text(start)
}

/// Returns whether a file that begins so is more than text that only a shell would run.
#[cfg(target_os = "macos")]
fn is_program(start: &[u8]) -> bool {
    /// Magic numbers: 32 and 64 bits in either byte order, and universal binaries.
    const MACH_O: [&[u8; 4]; 6] = [
        b"\xfe\xed\xfa\xce",
        b"\xfe\xed\xfa\xcf",
        b"\xce\xfa\xed\xfe",
        b"\xcf\xfa\xed\xfe",
        b"\xca\xfe\xba\xbe",
        b"\xca\xfe\xba\xbf",
    ];
    start.starts_with(b"#!") || MACH_O.iter().any(|magic| start.starts_with(*magic))
}

fn io_error(program: PathBuf, source: io::Error) -> StartError {
    StartError::Io { program, source }
}

fn diagnose_missing(program: PathBuf) -> StartError {
    match fs::metadata(&program) {
        Err(_) => StartError::NotFound { program },
        Ok(_) => {
            bad_interpreter(program).unwrap_or_else(|program| StartError::NoLoader { program })
        }
    }
}

/// Returns the entry that hides `program` or the interpreter in its first line, and the hidden
/// file of the two.
fn hidden_file(command: &Command, program: &Path) -> Option<(PathBuf, PathBuf)> {
    let sandbox = &command.parts.sandbox;
    let hides = |path: PathBuf| {
        let place = path.canonicalize().ok()?;
        let hidden = sandbox
            .hidden_by(&path)
            .or_else(|| sandbox.hidden_by(&place));
        let led_to = || {
            let mut hidden = sandbox.hidden.iter();
            let is_above = |hidden: &&PathBuf| {
                hidden
                    .canonicalize()
                    .is_ok_and(|hidden| place.starts_with(hidden))
            };
            hidden
                .find(is_above)
                .filter(|_| sandbox.level > Level::None)
                .cloned()
        };
        Some((hidden.or_else(led_to)?, path))
    };
    let interpreter = || shebang(program).map(|(interpreter, _)| interpreter);
    hides(program.to_owned()).or_else(|| hides(interpreter()?))
}

fn diagnose_denied(program: PathBuf) -> StartError {
    match fs::metadata(&program) {
        Ok(metadata) if metadata.is_dir() => StartError::IsDirectory { program },
        Ok(metadata) if os::is_executable(&metadata) => match shebang(&program) {
            Some((interpreter, crlf)) if !can_execute(&interpreter) => StartError::BadInterpreter {
                program,
                interpreter,
                crlf,
            },
            _ => StartError::NotExecutable { program },
        },
        _ => StartError::NotExecutable { program },
    }
}

fn can_execute(interpreter: &Path) -> bool {
    fs::metadata(interpreter).is_ok_and(|metadata| os::is_executable(&metadata))
}

/// Blames the interpreter, or gives the path back if the file names none.
fn bad_interpreter(program: PathBuf) -> Result<StartError, PathBuf> {
    match shebang(&program) {
        Some((interpreter, crlf)) => Ok(StartError::BadInterpreter {
            program,
            interpreter,
            crlf,
        }),
        None => Err(program),
    }
}

/// Returns the interpreter in the first line of a program, and whether a carriage return sticks
/// to it.
fn shebang(program: &Path) -> Option<(PathBuf, bool)> {
    interpreter(&read_start(program)?)
}

/// Returns the interpreter of a program that begins with `start`; see [`shebang`].
fn interpreter(start: &[u8]) -> Option<(PathBuf, bool)> {
    let line = start
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let words = String::from_utf8_lossy(line);
    let interpreter = words.trim_ascii_start().split([' ', '\t', '\r']).next()?;
    // A carriage return spoils the name only right after it. After an argument it belongs to
    // that.
    let crlf = words.trim_ascii_start()[interpreter.len()..].starts_with('\r');
    Some((PathBuf::from(interpreter), crlf))
}

/// Reads as much of a file as its first line may take.
///
/// It reads only regular files: opening a named pipe would block until its other end is open.
pub(crate) fn read_start(program: &Path) -> Option<Vec<u8>> {
    if !fs::metadata(program).ok()?.is_file() {
        return None;
    }
    let mut start = Vec::new();
    File::open(program)
        .ok()?
        .take(SHEBANG_LIMIT)
        .read_to_end(&mut start)
        .ok()?;
    Some(start)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Checks that a file with these contents and permissions gives the error of this name.
    #[track_caller]
    fn check(contents: &[u8], mode: u32, expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, contents).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let command = Command::new(&file).current_dir("/");
        let found = format!("{:?}", inspect(&command, &file));
        assert!(found.starts_with(expected), "{found}");
    }

    #[test]
    fn program_is_inspected_before_another_starts_it() {
        check(b"#!/bin/sh\n", 0o755, "Ok");
        check(b"#!bin/sh\n", 0o755, "Ok");
        check(b"\xcf\xfa\xed\xfe\x0c", 0o755, "Ok");
        check(b"#!/usr/bin/env sh\n", 0o755, "Ok");
        check(b"#!/usr/bin/env -S sh -e\n", 0o755, "Ok");
        check(b"#!/usr/bin/env -S sh\r\n", 0o755, "Ok");
        check(
            b"#!/usr/bin/env -S no-such-shell -e\n",
            0o755,
            "Err(BadInterpreter",
        );
        check(
            b"#!/usr/bin/env no-such-shell\n",
            0o755,
            "Err(BadInterpreter",
        );
        check(b"#!/usr/bin/env sh\r\n", 0o755, "Err(BadInterpreter");
        check(b"#!/bin/sh\n", 0o644, "Err(NotExecutable");
        check(b"echo hello\n", 0o755, "Err(NoShebang");
        check(b"", 0o755, "Err(NoShebang");
        // The limit cuts a character.
        let long = format!("#{}", "ü".repeat(SHEBANG_LIMIT as usize));
        check(long.as_bytes(), 0o755, "Err(NoShebang");
        check(b"\xef\xbb\xbf#!/bin/sh\n", 0o755, "Err(ByteOrderMark");
        check(b"#!/bin/sh\r\n", 0o755, "Err(BadInterpreter");
        check(b"#!/no/such/interpreter\n", 0o755, "Err(BadInterpreter");
    }

    #[test]
    fn path_that_is_no_file_is_not_started_by_another() {
        let check = |path: &str, expected: &str| {
            let found = format!("{:?}", inspect(&Command::new(path), Path::new(path)));
            assert!(found.starts_with(expected), "{found}");
        };
        check("/", "Err(IsDirectory");
        check("/no/such/program", "Err(NotFound");
    }
}
