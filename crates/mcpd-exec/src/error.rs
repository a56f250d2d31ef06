//! Errors of starting a process. A process that ran and failed is an outcome.

pub(crate) mod diagnosis;

use std::io;
use std::path::PathBuf;

use self::diagnosis::SHEBANG_LIMIT;
use crate::enforcement::MissingMechanism;

/// Reason that nothing was run.
///
/// The texts complete "failed to" and name local paths: they are for the operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no such file, or no such program in `PATH`.
    #[error("start `{program}`: no such file or command", program = program.display())]
    NotFound {
        /// The program as it was given.
        program: PathBuf,
    },
    /// The file may not be executed.
    #[error("start `{program}`: permission denied; make it executable (chmod +x), and its directories accessible", program = program.display())]
    NotExecutable {
        /// The file.
        program: PathBuf,
    },
    /// The program, or the interpreter in its first line, is hidden from confined processes.
    #[error("start `{program}`: `{file}` is in `{hidden}`, which is hidden from sandboxed processes; move it elsewhere or make it readable with `read`", program = program.display(), file = file.display(), hidden = hidden.display())]
    #[non_exhaustive]
    Hidden {
        /// The program.
        program: PathBuf,
        /// The file that can't be read: the program, or its interpreter.
        file: PathBuf,
        /// The entry that hides it.
        hidden: PathBuf,
    },
    /// The file is executable, but neither a binary of this system nor a script with a `#!` line.
    #[error("start `{program}`: it has no `#!` line and is not a binary of this system; add a first line such as `#!/bin/sh`", program = program.display())]
    NoShebang {
        /// The file.
        program: PathBuf,
    },
    /// A byte order mark stands before the `#!` of the file.
    #[error("start `{program}`: a byte order mark precedes its `#!` line; save it as UTF-8 without BOM", program = program.display())]
    ByteOrderMark {
        /// The file.
        program: PathBuf,
    },
    /// The file is executable, but neither a binary of this system nor text.
    #[error("start `{program}`: it is neither a binary of this system and processor nor a UTF-8 text with a `#!` line", program = program.display())]
    ForeignBinary {
        /// The file.
        program: PathBuf,
    },
    /// The first line of the file begins with `#!`, and the system finds no interpreter in it.
    #[error("start `{program}`: its `#!` line names no interpreter within the first {SHEBANG_LIMIT} bytes; use a shorter path", program = program.display())]
    NoInterpreter {
        /// The file.
        program: PathBuf,
    },
    /// The interpreter the file needs can't be started.
    #[error("start `{program}`: {fault}", program = program.display(), fault = interpreter_fault(interpreter, *crlf))]
    #[non_exhaustive]
    BadInterpreter {
        /// The file.
        program: PathBuf,
        /// The interpreter its `#!` line names, without a carriage return.
        interpreter: PathBuf,
        /// The `#!` line ends with a carriage return, which the system takes as part of the name.
        crlf: bool,
    },
    /// A binary needs a dynamic loader that is not installed.
    #[error("start `{program}`: its dynamic loader is missing; it was built for another system or C library", program = program.display())]
    NoLoader {
        /// The file.
        program: PathBuf,
    },
    /// The program is a directory.
    #[error("start `{program}`: it is a directory", program = program.display())]
    IsDirectory {
        /// The directory.
        program: PathBuf,
    },
    /// The symbolic links of the path form a loop.
    #[error("start `{program}`: its symbolic links form a loop", program = program.display())]
    SymlinkLoop {
        /// The path.
        program: PathBuf,
    },
    /// Arguments and environment are larger than the system passes on.
    #[error("start `{program}`: arguments and environment are too large; pass large values on standard input", program = program.display())]
    ArgumentsTooLarge {
        /// The file.
        program: PathBuf,
    },
    /// The file was open for writing during all attempts.
    #[error("start `{program}`: it is open for writing; try again when it is complete", program = program.display())]
    TextBusy {
        /// The file.
        program: PathBuf,
    },
    /// The directory to start in does not exist or can't be entered.
    #[error("enter the directory `{directory}`: it is missing or not accessible", directory = directory.display())]
    CwdMissing {
        /// The directory.
        directory: PathBuf,
    },
    /// An environment variable that no system call can express.
    #[error("set the variable `{name}`: {reason}")]
    #[non_exhaustive]
    InvalidEnv {
        /// The variable's name, made printable.
        name: String,
        /// The fault, as a clause.
        reason: &'static str,
    },
    /// An argument that no system call can express.
    #[error("pass argument {position}: it contains a NUL byte; pass it on standard input")]
    #[non_exhaustive]
    InvalidArgument {
        /// Counted from 1.
        position: usize,
    },
    /// The [precondition](crate::Command::precondition) of the command does not hold.
    #[error("start a process: {reason}")]
    #[non_exhaustive]
    Refused {
        /// The reason that the check has returned.
        reason: String,
    },
    /// The maximum of runs is running, and the queue is full.
    #[error("start another process: {queued} are already waiting; try again later")]
    #[non_exhaustive]
    Busy {
        /// Number of waiting runs.
        queued: usize,
    },
    /// The executor was shut down before the process was started.
    #[error("start a process: the executor is shutting down")]
    ShuttingDown,
    /// The system can't confine the process as asked.
    #[error("enforce the sandbox of `{program}`: {missing}", program = program.display(), missing = join_missing(missing))]
    #[non_exhaustive]
    Unenforceable {
        /// The program.
        program: PathBuf,
        /// The missing mechanisms, each with its cause.
        missing: Vec<MissingMechanism>,
    },
    /// A step between creating the process and executing its program failed.
    #[error("start `{program}`: failed to {step}", program = program.display())]
    #[non_exhaustive]
    Setup {
        /// The program.
        program: PathBuf,
        /// The failed step, after "failed to".
        step: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The processes of the same user or control group already reach the
    /// [limit](crate::Limits::processes).
    #[error("start `{program}`: its user or control group has reached the limit of {limit} processes; raise the limit, or try again when some have ended", program = program.display())]
    #[non_exhaustive]
    TooManyProcesses {
        /// The program.
        program: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// The system lacks processes, memory or file descriptors to start or to watch the process.
    #[error("start `{program}`: the system is out of a resource", program = program.display())]
    #[non_exhaustive]
    Resource {
        /// The program.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Any other error of the system.
    #[error("start `{program}`", program = program.display())]
    #[non_exhaustive]
    Io {
        /// The program.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

fn join_missing(missing: &[MissingMechanism]) -> String {
    let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
    missing.join("; ")
}

fn interpreter_fault(interpreter: &std::path::Path, crlf: bool) -> String {
    let interpreter = interpreter.display();
    if crlf {
        format!(
            "its `#!` line ends with a carriage return after `{interpreter}`; save it with Unix line endings"
        )
    } else {
        format!(
            "its interpreter `{interpreter}` cannot be executed; install it or fix the `#!` line"
        )
    }
}
