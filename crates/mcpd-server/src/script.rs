//! Runnable script: its file, its spec, its schemas, and how a call starts it, here or elsewhere.
//! Knows neither how scripts are found nor what becomes of their output.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use mcpd_exec::Command;
use mcpd_protocol::ClientCapabilities;
use mcpd_scriptspec::{ScriptPath, ScriptSpec};
use serde_json::json;

use crate::limits::run_queue::ScriptQueue;
use crate::message::raw::raw;
use crate::policy::access::{self, Defaults};
use crate::policy::principal::Principal;
use crate::policy::{EffectivePolicy, SecretHeaders};
use crate::remote::{Place, Traits};
use crate::support::sync::lock;

pub(crate) mod fingerprint;
pub mod interpreter;
pub(crate) mod schema;
pub(crate) mod start_command;
pub(crate) mod version_check;

use schema::Schemas;
use start_command::StartCommand;
use version_check::VersionCheck;

/// Runnable script.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) path: ScriptPath,
    pub(crate) file: PathBuf,
    /// Working directory: relative paths in a script are relative to its root, wherever mcpd was
    /// started.
    pub(crate) directory: PathBuf,
    pub(crate) spec: Arc<ScriptSpec>,
    /// Schemas of its arguments and of its structured content.
    pub(crate) schemas: Arc<Schemas>,
    /// Effective policy.
    pub(crate) policy: Arc<EffectivePolicy>,
    /// Capabilities that a client must declare, if the script requires any.
    pub(crate) required: Option<Box<ClientCapabilities>>,
    pub(crate) launch: Launch,
    /// Approval that each run checks, where only approved scripts are served.
    pub(crate) version_check: OnceLock<Arc<dyn VersionCheck>>,
    pub(crate) for_callers: ForCallers,
    /// It runs in the directory of the client, and not in its root.
    pub(crate) is_in_client_directory: bool,
}

/// How a script is started.
#[derive(Debug, Clone)]
pub(crate) enum Launch {
    /// By a command on this machine.
    Here(StartCommand),
    /// By a worker. Its file and its directory are there, and empty here.
    There(Arc<Elsewhere>),
}

/// Where a script runs that is not here.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    pub(crate) place: Arc<dyn Place>,
    /// Version that said the spec.
    pub(crate) digest: Arc<str>,
    /// Source that offers it, for people.
    pub(crate) source: Arc<str>,
    /// Its calls here, which wait for the turn of their caller only.
    pub(crate) queue: Arc<ScriptQueue>,
}

/// Script as it runs for each caller, made at its first call; `None` if that makes no difference.
#[derive(Debug, Default)]
pub(crate) struct ForCallers(Mutex<BTreeMap<String, Option<Arc<Script>>>>);

impl Clone for ForCallers {
    /// The clone is another script.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Script {
    /// Returns the script as it runs for `caller`, with the variables that this one brings.
    pub(crate) fn for_caller(self: &Arc<Self>, caller: &Principal) -> Arc<Self> {
        if !self.policy.knows_caller(caller.name()) {
            return Arc::clone(self);
        }
        let mut for_callers = lock(&self.for_callers.0);
        let make = || Some(self.under(self.policy.for_caller(caller.name())?));
        let made = for_callers.entry(caller.name().to_owned());
        made.or_insert_with(make).as_ref().unwrap_or(self).clone()
    }

    /// Returns the script with the secrets that one request of `caller` brings.
    ///
    /// # Errors
    ///
    /// The variable that has no value, and why.
    pub(crate) async fn with_secrets_of(
        self: &Arc<Self>,
        caller: &Principal,
        headers: &SecretHeaders,
    ) -> Result<Arc<Self>, String> {
        if !self.policy.depends_on_request() {
            return Ok(Arc::clone(self));
        }
        Ok(self.under(self.policy.for_request(caller, headers).await?))
    }

    /// Returns the script as it runs in the directory of a client.
    pub(crate) fn in_client_directory(&self, directory: PathBuf) -> Arc<Self> {
        let policy = Arc::new(self.policy.in_client_directory(&directory));
        Arc::new(Self {
            policy,
            directory,
            is_in_client_directory: true,
            ..self.clone()
        })
    }

    fn under(&self, policy: EffectivePolicy) -> Arc<Self> {
        Arc::new(Self {
            policy: Arc::new(policy),
            ..self.clone()
        })
    }

    /// Returns its start command, if it runs here.
    pub(crate) fn start_command(&self) -> Option<&StartCommand> {
        match &self.launch {
            Launch::Here(start_command) => Some(start_command),
            Launch::There(_) => None,
        }
    }

    /// Returns where it runs, if that is not here.
    pub(crate) fn elsewhere(&self) -> Option<&Arc<Elsewhere>> {
        match &self.launch {
            Launch::Here(_) => None,
            Launch::There(elsewhere) => Some(elsewhere),
        }
    }

    /// Returns what it says of its runs.
    pub(crate) fn traits(&self) -> Traits {
        let hints = self.spec.annotations;
        Traits {
            is_read_only: hints.read_only == Some(true),
            is_idempotent: hints.idempotent == Some(true),
            needs_home: self.spec.state || self.policy.has_own_concurrency(),
        }
    }

    /// Returns the command of a call in which its interpreter reads `file`, under its policy.
    pub(crate) fn command_with(
        &self,
        start_command: &StartCommand,
        file: Option<&Path>,
    ) -> Command {
        let command = start_command
            .command_with(file)
            .current_dir(&self.directory);
        let command = match self.is_in_client_directory {
            true => command.fixed_directory(),
            false => command,
        };
        self.policy
            .apply(command)
            .env("MCPD_TOOL", self.path.as_str())
    }

    /// Returns the command that prints its state, under the policy of its calls, because these
    /// write it.
    pub(crate) fn state_command(&self, start_command: &StartCommand) -> Command {
        let command = start_command.command().current_dir(&self.directory);
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
        match &self.launch {
            Launch::Here(_) => write!(f, "`{}` ({})", self.path, self.file.display()),
            Launch::There(elsewhere) => write!(f, "`{}` ({})", self.path, elsewhere.source),
        }
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
