//! The tool `run_command`: shell commands written by a model. The operator sets its permissions;
//! by default commands are confined, and run in an empty directory that is deleted with the
//! server.

use std::path::PathBuf;
use std::time::Duration;

use mcpd_exec::Sandbox;

use crate::policy::SandboxProfile;
use crate::policy::pattern::PatternError;

mod rules;
mod shell_parser;
mod tool;

use rules::CommandRules;
pub(crate) use tool::CommandTool;

/// Name of the tool.
pub(crate) const NAME: &str = "run_command";

/// Default upper bound of the timeout that a call may request.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Settings of the tool `run_command`. See
/// [`ServerBuilder::run_command`](crate::ServerBuilder::run_command).
///
/// ```
/// use std::time::Duration;
/// use mcpd_server::{RunCommand, Server};
///
/// # fn main() -> Result<(), mcpd_server::policy::PatternError> {
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
    profile: SandboxProfile,
    directory: Option<PathBuf>,
    timeout: Option<Duration>,
    max_timeout: Option<Duration>,
    shell: Vec<String>,
    rules: CommandRules,
}

impl Default for RunCommand {
    /// Confines commands at the level `guarded`, in a directory of their own. A call may request
    /// up to 10 minutes.
    fn default() -> Self {
        let shell = match cfg!(windows) {
            true => ["cmd.exe", "/c"],
            false => ["/bin/sh", "-c"],
        };
        Self {
            profile: SandboxProfile::new(Sandbox::guarded()),
            directory: None,
            timeout: None,
            max_timeout: None,
            shell: shell.map(str::to_owned).to_vec(),
            rules: CommandRules::default(),
        }
    }
}

impl RunCommand {
    /// Sets the minimum confinement of commands; a [`Policy`](crate::Policy) may be stricter.
    /// Commands may write in their directory at every level.
    pub fn sandbox(mut self, profile: SandboxProfile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets the directory of commands. The default is one of this server's own, deleted with the
    /// server.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets the timeout of calls that request none. The default is that of scripts.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the maximum timeout that a call may request, and the timeout of all others unless a
    /// longer [timeout](Self::timeout) is set.
    pub fn max_timeout(mut self, timeout: Duration) -> Self {
        self.max_timeout = Some(timeout);
        self
    }

    /// Sets the shell: a program and its arguments before the command. The default is `/bin/sh
    /// -c`, or `cmd.exe /c` on Windows.
    pub fn shell(mut self, words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.shell = words.into_iter().map(Into::into).collect();
        self
    }

    /// Checks whether the [shell](Self::shell) accepts commands, and, if some are
    /// [allowed](Self::allow) or [denied](Self::deny), parses them as mcpd does. A server with
    /// the tool makes this check as well.
    ///
    /// # Errors
    ///
    /// Returns the fault of the shell, as a sentence without capital and full stop.
    pub fn check_shell(&self) -> Result<(), String> {
        tool::check_shell(&self.shell, &self.rules)
    }

    /// Allows only commands that match one of the allowed patterns. A pattern consists of words
    /// with `*` and `?`: the name of a program and its arguments; `*` as the last word matches
    /// any number of arguments.
    ///
    /// A rule guards against mistakes of models. It is no security boundary: only the sandbox is.
    ///
    /// # Errors
    ///
    /// Fails if the pattern is invalid.
    pub fn allow(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.rules.allow(pattern)?;
        Ok(self)
    }

    /// Rejects commands that match the pattern, even if they are [allowed](Self::allow).
    ///
    /// # Errors
    ///
    /// Fails if the pattern is invalid, or names a program by its path; a program is denied under
    /// any path.
    pub fn deny(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.rules.deny(pattern)?;
        Ok(self)
    }
}
