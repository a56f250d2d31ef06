//! Policy of one call: with what its caller, its request and the directory of its client add.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use mcpd_exec::{Level, Sandbox};

use super::EffectivePolicy;
use crate::policy::principal::Principal;
use crate::policy::request_secrets::{self, SecretHeaders};
use crate::policy::{ClientDirectories, Redactor, Secret, environment};

impl EffectivePolicy {
    /// Returns whether `caller` brings variables.
    pub(crate) fn knows_caller(&self, caller: &str) -> bool {
        self.callers.of(caller).is_some()
    }

    /// Returns the policy of the runs that `caller` causes, if it brings variables that the
    /// script accepts.
    pub(crate) fn for_caller(&self, caller: &str) -> Option<Self> {
        let accepted = self.accepted_from_callers.as_ref();
        let is_accepted = |name: &str| {
            accepted.is_none_or(|names| environment::matches_any(names, OsStr::new(name)))
        };
        let brought = self.callers.of(caller)?.iter();
        let brought: Vec<_> = brought
            .filter(|(name, _)| is_accepted(name))
            .cloned()
            .collect();
        (!brought.is_empty()).then(|| self.with_variables(brought))
    }

    /// Returns whether each request brings variables of its own.
    pub(crate) fn depends_on_request(&self) -> bool {
        !self.request_variables.is_empty()
    }

    /// Returns the policy of the run that one request causes.
    ///
    /// # Errors
    ///
    /// The variable that has no value, and why.
    pub(crate) async fn for_request(
        &self,
        caller: &Principal,
        headers: &SecretHeaders,
    ) -> Result<Self, String> {
        let brought = request_secrets::resolve(&self.request_variables, caller, headers).await?;
        Ok(self.with_variables(brought))
    }

    /// Directories that its clients may work in, if it runs there.
    pub(crate) fn client_directories(&self) -> Option<&ClientDirectories> {
        self.client_directories.as_ref()
    }

    /// Returns the policy of a run in the directory of a client.
    pub(crate) fn in_client_directory(&self, directory: &Path) -> Self {
        let mut policy = self.clone();
        if policy.writes_client_directory && policy.sandbox.level > Level::None {
            let sandbox = Sandbox::clone(&policy.sandbox).write(directory);
            policy.sandbox = Arc::new(sandbox);
        }
        policy
    }

    /// Returns the policy of a script that runs on another machine, for the machine that its
    /// callers speak to: environment, secrets and directories are those of the other machine.
    pub(crate) fn for_elsewhere(mut self) -> Self {
        self.environment = Arc::default();
        self.variables.clear();
        self.callers = Arc::default();
        self.request_variables.clear();
        self.client_directories = None;
        self.redactor = None;
        self
    }

    fn with_variables(&self, variables: Vec<(String, Secret)>) -> Self {
        let mut policy = self.clone();
        for (name, secret) in variables {
            policy.variables.retain(|(known, _)| *known != name);
            policy.variables.push((name, secret));
        }
        if self.redacts {
            policy.redactor = Redactor::of(&policy.variables);
        }
        policy
    }
}
