//! What can be another while a server runs: what scripts may do, what runs them, and what comes from elsewhere.

use std::sync::Arc;

use mcpd_protocol::Implementation;

use super::builder::command_tool;
use crate::catalog::live::Order;
use crate::error::Error;
use crate::interpreter::Interpreters;
use crate::policy::Policy;
use crate::run_command::RunCommand;
use crate::runs;
use crate::source::{Described, Host, Source};
use crate::sync::lock;
use crate::{Server, ServerBuilder};

/// What of a server can be another while it runs: see [`Server::reload`] and [`ServerBuilder::settings`].
#[derive(Debug, Default)]
#[must_use]
pub struct Settings {
    pub(super) policy: Policy,
    pub(super) interpreters: Interpreters,
    pub(super) run_command: Option<RunCommand>,
    pub(super) sources: Vec<Described>,
    pub(super) identity: Option<Implementation>,
    pub(super) instructions: Option<String>,
}

impl Settings {
    /// Tells clients this name, version and more in the place of those that the server was
    /// [built](ServerBuilder::identity) with. A client of a session has heard them when it began.
    pub fn identity(mut self, identity: Implementation) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Tells models how to use this server, before all that it was [built](ServerBuilder::instructions) with.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// What scripts may do and what they are given. By default none is confined.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// What runs the scripts that are no programs.
    pub fn interpreters(mut self, interpreters: Interpreters) -> Self {
        self.interpreters = interpreters;
        self
    }

    /// Serves the tool `run_command`, which runs whatever command a model writes: see [`RunCommand`].
    pub fn run_command(mut self, run_command: RunCommand) -> Self {
        self.run_command = Some(run_command);
        self
    }

    /// Serves what `source` offers. Where a script has the same path, the script is served.
    pub fn source(mut self, source: impl Source) -> Self {
        self.sources.push(Described::new(source));
        self
    }
}

/// Those that were taken over last, to tell what is another.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) policy: Policy,
    pub(super) interpreters: Interpreters,
    pub(super) run_command: Option<RunCommand>,
}

impl Current {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            policy: settings.policy.clone(),
            interpreters: settings.interpreters.clone(),
            run_command: settings.run_command.clone(),
        }
    }
}

impl Server {
    /// Goes by `settings` from now on, all of them or, if one is wrong, none. No connection ends and no call: one that
    /// has begun goes on as it began. Clients hear of the tools that come and go.
    ///
    /// Sources with the same [fingerprint](Source::fingerprint) go on, and what is as it was is not scanned again.
    /// Whether `run_command` is served at all was decided when the server started.
    ///
    /// # Errors
    ///
    /// When `run_command` can't be served as described.
    pub fn reload(&self, settings: Settings) -> Result<(), Error> {
        let new = Current::of(&settings);
        let mut current = lock(&self.inner.current);
        let is_same_policy = current.policy == new.policy;
        let is_same = is_same_policy && current.interpreters.is_like(&new.interpreters);
        let is_same_command = is_same_policy && current.run_command == new.run_command;
        let tool = match settings.run_command {
            Some(options) if !is_same_command => {
                let has_runs = self.catalog().tool(runs::START).is_some();
                Some(command_tool(options, &new.policy, has_runs)?)
            }
            _ => None,
        };
        if !is_same_policy {
            new.policy.warn_of_short_secrets();
            if let Some(auditor) = self.auditor() {
                auditor.redact(&new.policy);
            }
        }
        self.inner.catalog.order(Order {
            host: Host::new(&self.inner.probes, &new.policy, self.inner.watching),
            scripts: (!is_same).then_some((settings.policy, settings.interpreters)),
            tool,
            sources: settings.sources,
            is_same_policy,
        });
        let identity = self
            .inner
            .built_with
            .with(settings.identity, settings.instructions);
        self.inner.identity.store(Arc::new(identity));
        *current = new;
        Ok(())
    }
}

impl ServerBuilder {
    /// Starts with these, in the place of all that was said of them before.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }
}
