//! Directory in which mcpd finds nothing of the machine it runs on: scripts, state, cache and home
//! are all below it, and the environment has nothing but `PATH` and the variables of the test.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::binary::{binary, repository};
use crate::wait::EVENT_TIMEOUT;

/// Tool that appends a line on each of its runs.
const COUNTER: &str = "#!/bin/sh\n\
    if [ \"${1-}\" = --help ]; then echo '{\"description\": \"Counts its runs\"}'; exit; fi\n\
    echo run >>\"${0%/*}/../runs\"\n";

/// Directory that is deleted at the end. Scripts are in `scripts`, and commands run with it as
/// their current directory.
#[derive(Debug)]
pub struct Sandbox {
    directory: TempDir,
    path: PathBuf,
    /// Environment beside `PATH` and the directories.
    variables: Vec<(String, String)>,
    /// Limit of open files for mcpd, if it differs from the default.
    open_files: Option<u32>,
}

impl Sandbox {
    /// Makes an empty sandbox.
    ///
    /// # Panics
    ///
    /// Panics if the file system refuses, or there is a configuration that holds for every mcpd of
    /// this machine.
    #[must_use]
    pub fn new() -> Self {
        let everywhere = Path::new("/etc/mcpd/mcpd.toml");
        assert!(
            !everywhere.exists(),
            "move `{}` away for the tests: what it says would hold for them, too",
            everywhere.display()
        );
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().canonicalize().expect("it exists");
        for directory in ["scripts", "tmp"] {
            fs::create_dir(path.join(directory)).expect("it is writable");
        }
        Self {
            directory,
            path,
            variables: Vec::new(),
            open_files: None,
        }
    }

    /// Returns the directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the executable file `scripts/<path>`.
    ///
    /// # Panics
    ///
    /// Panics if the file system refuses.
    #[must_use]
    pub fn with_script(self, path: &str, text: &str) -> Self {
        self.write_script(path, text);
        self
    }

    /// Adds a variable to the environment of every command.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the limit of open files for mcpd.
    #[must_use]
    pub fn with_open_files(mut self, open_files: u32) -> Self {
        self.open_files = Some(open_files);
        self
    }

    /// Adds a tool of this name, which counts its runs.
    ///
    /// # Panics
    ///
    /// Panics if the file system refuses.
    #[must_use]
    pub fn with_counter(self, name: &str) -> Self {
        self.with_script(name, COUNTER)
    }

    /// Returns the number of runs of all counters.
    #[must_use]
    pub fn runs(&self) -> usize {
        let runs = fs::read_to_string(self.path.join("runs"));
        runs.unwrap_or_default().lines().count()
    }

    /// Writes the executable file `scripts/<path>`, which is complete from the moment it appears.
    ///
    /// # Panics
    ///
    /// Panics if the file system refuses.
    pub fn write_script(&self, path: &str, text: &str) {
        let file = self.path.join("scripts").join(path);
        fs::create_dir_all(file.parent().expect("a file is in a directory")).expect("writable");
        let mut complete =
            tempfile::NamedTempFile::new_in(self.directory.path()).expect("writable");
        complete.write_all(text.as_bytes()).expect("writable");
        let executable = fs::Permissions::from_mode(0o755);
        complete
            .as_file()
            .set_permissions(executable)
            .expect("the file is ours");
        complete.persist(file).expect("writable");
    }

    /// Returns a command that runs mcpd here.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = match self.open_files {
            None => self.program(binary()),
            Some(open_files) => {
                let mut shell = self.program("sh");
                let limited = format!("ulimit -Sn {open_files} && exec \"$0\" \"$@\"");
                shell.args(["-c", &limited]).arg(binary());
                shell
            }
        };
        command.args(arguments);
        command
    }

    /// Returns a command that runs any program here.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "neither mcpd nor its clients are scripts"
    )]
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.path).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for (name, directory) in [
            ("HOME", "home"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_STATE_HOME", "state"),
            // A killed server leaves files here that nothing else would remove.
            ("TMPDIR", "tmp"),
        ] {
            command.env(name, self.path.join(directory));
        }
        command.envs(self.variables.iter().cloned());
        command
    }

    /// Runs mcpd to its end, and returns the transcript.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> String {
        self.transcript(&output(self.command(arguments), b""))
    }

    /// Runs mcpd like [`run`](Self::run), with this text on stdin.
    #[track_caller]
    pub fn run_with_stdin(&self, arguments: &[&str], stdin: &str) -> String {
        self.transcript(&output(self.command(arguments), stdin.as_bytes()))
    }

    /// Runs mcpd to its end, and returns its stdout byte for byte.
    ///
    /// # Panics
    ///
    /// Panics if its exit code is not 0.
    #[track_caller]
    pub fn stdout(&self, arguments: &[&str]) -> Vec<u8> {
        let output = output(self.command(arguments), b"");
        assert!(output.status.success(), "{}", self.transcript(&output));
        output.stdout
    }

    /// Returns exit code, stdout and stderr, without what differs from machine to machine.
    #[must_use]
    pub fn transcript(&self, output: &Output) -> String {
        let code = output
            .status
            .code()
            .map_or_else(|| output.status.to_string(), |code| code.to_string());
        let mut transcript = format!("exit code: {code}\n");
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            if !bytes.is_empty() {
                let text = self.redact(&String::from_utf8_lossy(bytes));
                transcript += &format!("----- {name} -----\n{text}");
            }
        }
        transcript
    }

    /// Replaces the paths of this machine in a text.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        text.replace(&*self.path.to_string_lossy(), "@@ROOT@@")
            .replace(&*repository().to_string_lossy(), "@@REPOSITORY@@")
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs a command to its end, for a minute at most.
///
/// # Panics
///
/// Panics if it does not end within a minute.
#[must_use]
#[track_caller]
pub fn output(command: Command, stdin: &[u8]) -> Output {
    output_within(EVENT_TIMEOUT, command, stdin)
}

/// Runs a command to its end within a time limit.
///
/// # Panics
///
/// Panics if it does not end in time.
#[must_use]
#[track_caller]
pub fn output_within(time_limit: Duration, mut command: Command, stdin: &[u8]) -> Output {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut pipe = child.stdin.take().expect("it is piped");
    let stdin = stdin.to_owned();
    // A program that ignores its stdin may close it at any time.
    thread::spawn(move || pipe.write_all(&stdin).ok());
    wait(time_limit, child)
}

/// Waits for the end of `child` and returns all its output.
///
/// # Panics
///
/// Panics if it does not end in time.
#[track_caller]
fn wait(time_limit: Duration, child: Child) -> Output {
    let pid = Pid::from_child(&child);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    if let Ok(output) = receiver.recv_timeout(time_limit) {
        return output.expect("its pipes can be read");
    }
    kill_process(pid, Signal::KILL).ok();
    panic!("it does not end");
}
