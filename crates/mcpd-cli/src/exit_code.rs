//! Every exit code of mcpd. Scripts and CI depend on them: a code never changes its meaning.

use std::process;

/// Exit code of a command, for the shell.
///
/// The numbers are those of MCP's own command-line client, with 130 as shells count signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ExitCode {
    /// The command succeeded.
    Success = 0,
    /// The command line is wrong, mcpd could not do its job, or `check`, `test` or `audit` found
    /// faults.
    Failure = 1,
    /// The parameters of a BASIC program are invalid; the code that scripts use.
    BadRequest = 2,
    /// The remote server wants a token, or another one.
    Unauthorized = 3,
    /// The remote server can't be reached.
    Unreachable = 4,
    /// There is no such tool, or it reported a failure.
    Tool = 5,
    /// The user interrupted a call.
    Interrupted = 130,
}

impl From<ExitCode> for process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}
