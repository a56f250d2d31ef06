//! The tool `run_command`: any command of a shell, written by a model. What it may do is for the operator to say;
//! unless told otherwise it is confined, and works in a directory that is empty at first and gone with the server.

use std::path::PathBuf;
use std::time::Duration;

use mcpd_exec::Sandbox;

use crate::policy::{PatternError, Profile};

mod rules;
mod tool;
mod words;

use rules::Rules;
pub(crate) use tool::CommandTool;

/// The name of the tool.
pub(crate) const NAME: &str = "run_command";

/// How long a call may ask for at most, if the operator has no other wish.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// How the tool `run_command` is served. See [`ServerBuilder::run_command`](crate::ServerBuilder::run_command).
///
/// ```
/// use std::time::Duration;
/// use mcpd_server::{RunCommand, Server};
///
/// # fn main() -> Result<(), mcpd_server::PatternError> {
/// let run_command = RunCommand::default()
///     .directory("/srv/project")
///     .max_timeout(Duration::from_secs(3600))
///     .allow("git *")?
///     .allow("ls")?;
/// let server = Server::builder().run_command(run_command);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct RunCommand {
    profile: Profile,
    directory: Option<PathBuf>,
    timeout: Option<Duration>,
    max_timeout: Option<Duration>,
    shell: Vec<String>,
    rules: Rules,
}

impl Default for RunCommand {
    /// Commands are confined at the level `guarded`, in a directory of their own. A call may ask for 10 minutes.
    fn default() -> Self {
        let shell = match cfg!(windows) {
            true => ["cmd.exe", "/c"],
            false => ["/bin/sh", "-c"],
        };
        Self {
            profile: Profile::new(Sandbox::guarded()),
            directory: None,
            timeout: None,
            max_timeout: None,
            shell: shell.map(str::to_owned).to_vec(),
            rules: Rules::default(),
        }
    }
}

impl RunCommand {
    /// Confines commands so, or more strictly where the [`Policy`](crate::Policy) says more. They may write in their
    /// directory at every level.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Runs commands in `directory`. By default it is one of this server's own, which is deleted with the server.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets how long a command may run, if the call does not say. By default that is as long as any script.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how long a call may ask for at most, and a command may run unless a longer [time-out](Self::timeout) is set.
    pub fn max_timeout(mut self, timeout: Duration) -> Self {
        self.max_timeout = Some(timeout);
        self
    }

    /// Runs commands with another shell: a program, and what it is given before the command. By default that is
    /// `/bin/sh -c`, or `cmd.exe /c` on Windows.
    pub fn shell(mut self, words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.shell = words.into_iter().map(Into::into).collect();
        self
    }

    /// Checks whether commands can be given to the [shell](Self::shell), and be read as it reads them where some are
    /// [allowed](Self::allow) or [denied](Self::deny). A server that serves the tool checks that, too.
    ///
    /// # Errors
    ///
    /// What is wrong with the shell, as a sentence without its capital and its full stop.
    pub fn check_shell(&self) -> Result<(), String> {
        tool::check_shell(&self.shell, &self.rules)
    }

    /// Runs only commands that match one of the patterns that are allowed. A pattern is words with `*` and `?`: the
    /// name of a program and its arguments; `*` as the last word stands for any number of arguments.
    ///
    /// A rule keeps models from mistakes. It is no boundary: only the sandbox is.
    ///
    /// # Errors
    ///
    /// The pattern can't be read.
    pub fn allow(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.rules.allow(pattern)?;
        Ok(self)
    }

    /// Runs no command that matches the pattern, whatever is [allowed](Self::allow).
    ///
    /// # Errors
    ///
    /// The pattern can't be read, or names the path of a program, which is denied under any.
    pub fn deny(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.rules.deny(pattern)?;
        Ok(self)
    }
}
