//! What of mcpd's own environment a script does not get to see: settings and secrets of the server,
//! and the names under which a script is told about its own call.

use std::ffi::OsString;
use std::sync::Arc;

use mcpd_exec::Command;

/// How the environment of scripts differs from that of this process.
#[derive(Debug, Clone)]
pub struct Environment {
    hidden: Arc<[OsString]>,
    added: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Everything is inherited but `MCPD_*` and `MCP_*`: clients put the API keys of scripts into the
    /// environment, and mcpd its own.
    #[must_use]
    pub fn of_this_process() -> Self {
        let is_ours = |name: &OsString| {
            let name = name.as_encoded_bytes();
            name.starts_with(b"MCPD_") || name.starts_with(b"MCP_")
        };
        let names = std::env::vars_os().map(|(name, _)| name);
        Self {
            hidden: names.filter(is_ours).collect(),
            added: Vec::new(),
        }
    }

    /// The same with one more variable.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.added.push((name.into(), value.into()));
        self
    }

    /// The command with the environment a script starts from.
    pub(crate) fn prepare(&self, command: Command) -> Command {
        let command = self
            .hidden
            .iter()
            .fold(command, |command, name| command.env_remove(name));
        self.added
            .iter()
            .fold(command, |command, (name, value)| command.env(name, value))
    }
}
