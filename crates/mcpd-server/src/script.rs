//! Runnable script: its file, its spec, its schemas, and how a call starts it. Knows neither how
//! scripts are found nor what becomes of their output.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcpd_exec::Command;
use mcpd_protocol::ClientCapabilities;
use mcpd_scriptspec::{ScriptPath, ScriptSpec};
use serde_json::json;

use crate::message::raw::raw;
use crate::policy::EffectivePolicy;
use crate::policy::access::{self, Defaults};

pub(crate) mod fingerprint;
pub mod interpreter;
pub(crate) mod schema;
pub(crate) mod start_command;

use schema::Schemas;
use start_command::StartCommand;

/// Runnable script.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) path: ScriptPath,
    pub(crate) file: PathBuf,
    /// Working directory: relative paths in a script are relative to its root, wherever mcpd was
    /// started.
    pub(crate) directory: PathBuf,
    pub(crate) spec: Arc<ScriptSpec>,
    /// Schemas of its arguments and of its structured content.
    pub(crate) schemas: Schemas,
    /// Effective policy.
    pub(crate) policy: Arc<EffectivePolicy>,
    /// Capabilities that a client must declare, if the script requires any.
    pub(crate) required: Option<Box<ClientCapabilities>>,
    pub(crate) start_command: StartCommand,
}

impl Script {
    /// Returns the command of a call in which its interpreter reads `file`, under its policy.
    pub(crate) fn command_with(&self, file: Option<&Path>) -> Command {
        let command = self
            .start_command
            .command_with(file)
            .current_dir(&self.directory);
        self.policy
            .apply(command)
            .env("MCPD_TOOL", self.path.as_str())
    }

    /// Returns the command that prints its state, under the policy of its calls, because these
    /// write it.
    pub(crate) fn state_command(&self) -> Command {
        let command = self.start_command.command().current_dir(&self.directory);
        let command = self.policy.apply(command);
        command.env("MCPD_TOOL", self.path.as_str()).arg("--state")
    }

    /// Defaults of its arguments.
    pub(crate) fn defaults(&self) -> Defaults {
        access::declared_defaults(&raw(&self.spec.written_input_schema()))
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.path, self.file.display())
    }
}

/// Parses the capabilities in `requires`, if there are any. The part after a dot is a member,
/// such as in `elicitation.url`, or the id of an extension, which has dots of its own.
pub(crate) fn required_capabilities(names: &[String]) -> Option<Box<ClientCapabilities>> {
    if names.is_empty() {
        return None;
    }
    let mut required = json!({});
    for name in names {
        let (name, part) = name.split_once('.').unwrap_or((name, ""));
        if required[name].is_null() {
            required[name] = json!({});
        }
        if !part.is_empty() {
            required[name][part] = json!({});
        }
    }
    Some(Box::new(
        serde_json::from_value(required).unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_capabilities_are_parsed() {
        let names = [
            "sampling.tools",
            "sampling",
            "elicitation.url",
            "extensions.io.modelcontextprotocol/tasks",
        ];
        let required = required_capabilities(&names.map(str::to_owned));
        let expected = json!({
            "sampling": {"tools": {}},
            "elicitation": {"url": {}},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        });
        assert_eq!(serde_json::to_value(required).unwrap(), expected);
    }
}
