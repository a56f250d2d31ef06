//! Hot reload of settings: policy, interpreters, sources and identity of a running server.
//! `Server::reload` replaces the identity at once, and has the catalog apply the rest before its
//! next scan.

use std::sync::Arc;

use mcpd_protocol::Implementation;

use super::builder::command_tool;
use crate::catalog::live::Reconfiguration;
use crate::catalog::pins::Locked;
use crate::catalog::source::{Host, Source, SourceDescription};
use crate::policy::selection::Selections;
use crate::policy::{PatternError, Policy, Selection};
use crate::script::interpreter::Interpreters;
use crate::server::Server;
use crate::server::ServerBuilder;
use crate::server::error::Error;
use crate::support::sync::lock;
use crate::tools::background_tools;
use crate::tools::run_command::RunCommand;

/// Settings that can change while a server runs: see [`Server::reload`] and
/// [`ServerBuilder::settings`].
#[derive(Debug, Default)]
#[must_use]
pub struct Settings {
    pub(super) policy: Policy,
    pub(super) interpreters: Interpreters,
    pub(super) run_command: Option<RunCommand>,
    pub(super) sources: Vec<SourceDescription>,
    pub(super) identity: Option<Implementation>,
    pub(super) instructions: Option<String>,
    pub(super) selections: Selections,
    pub(super) locked: Option<Arc<Locked>>,
}

impl Settings {
    /// Sets name, version and other fields of the identity in place of those that the server was
    /// [built](ServerBuilder::identity) with. Clients with a session keep the identity from its
    /// start.
    pub fn identity(mut self, identity: Implementation) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets instructions for models, before all those that the server was
    /// [built](ServerBuilder::instructions) with.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets the policy of scripts. By default none is confined.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the interpreters of scripts that are not programs.
    pub fn interpreters(mut self, interpreters: Interpreters) -> Self {
        self.interpreters = interpreters;
        self
    }

    /// Serves only scripts, files and entries of sources that `locked` has approved, as they are
    /// there. A script that differs is not run, not even with `--help`.
    pub fn locked(mut self, locked: Locked) -> Self {
        self.locked = Some(Arc::new(locked));
        self
    }

    /// Serves the tool `run_command`, which runs any command that a model writes: see
    /// [`RunCommand`].
    pub fn run_command(mut self, run_command: RunCommand) -> Self {
        self.run_command = Some(run_command);
        self
    }

    /// Offers a selection under a name: over HTTP at `/mcp/NAME`, and to the clients whose names
    /// match one of the patterns in `clients`, in which `*` stands for any text. A client chooses
    /// its name itself, so a selection saves tokens of its context and protects nothing.
    ///
    /// # Errors
    ///
    /// Fails if a pattern is invalid.
    pub fn selection<'a>(
        mut self,
        name: impl Into<String>,
        selection: Selection,
        clients: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, PatternError> {
        self.selections.add(name.into(), selection);
        for pattern in clients {
            self.selections.add_client(pattern)?;
        }
        Ok(self)
    }

    /// Serves the offer of `source`. A script with the same path takes precedence.
    pub fn source(mut self, source: impl Source) -> Self {
        self.sources.push(SourceDescription::new(source));
        self
    }
}

/// Settings applied last, for comparison with the next ones.
#[derive(Debug)]
pub(super) struct AppliedSettings {
    pub(super) policy: Policy,
    pub(super) interpreters: Interpreters,
    pub(super) run_command: Option<RunCommand>,
    pub(super) locked: Option<Arc<Locked>>,
}

impl AppliedSettings {
    pub(super) fn of(settings: &Settings) -> Self {
        Self {
            policy: settings.policy.clone(),
            interpreters: settings.interpreters.clone(),
            run_command: settings.run_command.clone(),
            locked: settings.locked.clone(),
        }
    }
}

impl Server {
    /// Applies `settings`, all of them or, if one is invalid, none. Connections stay open, and
    /// running calls continue unchanged. Clients are notified of tools that come and go.
    ///
    /// Sources with the same [fingerprint](Source::fingerprint) keep running, and unchanged files
    /// are not scanned again. The tool `run_command` cannot be added or removed by a reload.
    ///
    /// # Errors
    ///
    /// Fails if `run_command` cannot be served as described.
    pub fn reload(&self, settings: Settings) -> Result<(), Error> {
        let new = AppliedSettings::of(&settings);
        let mut current = lock(&self.inner.applied);
        let is_same_policy = current.policy == new.policy;
        let is_same = is_same_policy
            && current.interpreters.is_like(&new.interpreters)
            && current.locked == new.locked;
        let is_same_command = is_same_policy && current.run_command == new.run_command;
        let tool = match settings.run_command {
            Some(options) if !is_same_command => {
                let has_background_tools =
                    self.catalog().tool(background_tools::START_TOOL).is_some();
                Some(command_tool(options, &new.policy, has_background_tools)?)
            }
            _ => None,
        };
        if !is_same_policy {
            new.policy.warn_of_short_secrets();
            let headers = Arc::new(new.policy.secret_headers());
            self.engine().secret_headers.store(headers);
            self.engine().observers.redact(&new.policy);
        }
        self.engine().set_choices(&new.policy, settings.selections);
        self.live_catalog()
            .request_reconfiguration(Reconfiguration {
                host: Host::new(&self.inner.probes, &new.policy, self.inner.watching),
                scripts: (!is_same).then_some((
                    settings.policy,
                    settings.interpreters,
                    settings.locked,
                )),
                tool,
                sources: settings.sources,
                is_same_policy,
            });
        let identity = self
            .inner
            .built_with
            .with(settings.identity, settings.instructions);
        self.engine().identity.store(Arc::new(identity));
        *current = new;
        Ok(())
    }
}

impl ServerBuilder {
    /// Sets all settings, in place of earlier ones.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }
}
