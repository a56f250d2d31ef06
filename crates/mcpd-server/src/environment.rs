//! What of mcpd's own environment a script does not get to see: settings and secrets of the server,
//! and the names under which a script is told about its own call.

use std::ffi::OsString;
use std::sync::Arc;

use mcpd_exec::Command;

/// The variables of this process that scripts don't inherit.
#[derive(Debug, Clone)]
pub struct Environment {
    hidden: Arc<[OsString]>,
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
        Self {
            hidden: std::env::vars_os()
                .map(|(name, _)| name)
                .filter(is_ours)
                .collect(),
        }
    }

    /// The command with the environment a script starts from.
    pub(crate) fn prepare(&self, command: Command) -> Command {
        self.hidden
            .iter()
            .fold(command, |command, name| command.env_remove(name))
    }
}
