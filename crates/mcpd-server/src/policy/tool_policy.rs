//! Settings of the operator for the scripts whose paths match a pattern, as a `[[tool]]` has them.

use std::fmt;
use std::hash::{Hash as _, Hasher};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use mcpd_exec::warm::WarmStart;
use mcpd_scriptspec::{ScriptPath, TaskSupport};

use super::request_secrets::{CredentialSource, RequestSecret};
use super::{Probing, SandboxProfile, redactor};
use crate::policy::pattern::{Pattern, PatternError};

/// Text of a secret, which `Debug` does not show.
#[derive(Clone, PartialEq)]
pub(super) struct Secret(pub(super) String);

impl Secret {
    /// Returns whether it is too short to be told from other text.
    pub(super) fn is_short(&self) -> bool {
        self.0.len() < redactor::MIN_LENGTH
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Settings of the scripts whose paths match a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolPolicy {
    pub(super) pattern: Pattern,
    pub(super) settings: ToolSettings,
}

/// Start of the runs of a script.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Start {
    Cold,
    Warm(WarmStart),
}

/// Settings of one policy of tools, or of several merged.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ToolSettings {
    pub(super) profile: Option<SandboxProfile>,
    pub(super) timeout: Option<Duration>,
    pub(super) concurrency: Option<NonZeroUsize>,
    pub(super) redact: Option<bool>,
    pub(super) keeps_escapes: Option<bool>,
    pub(super) task: Option<TaskSupport>,
    pub(super) asks_first: Option<bool>,
    pub(super) start: Option<Start>,
    pub(super) probing: Probing,
    pub(super) variables: Vec<(String, Secret)>,
    pub(super) runs_in_client_directory: Option<bool>,
    pub(super) caller_variables: Option<Vec<String>>,
    pub(super) request_variables: Vec<(String, RequestSecret)>,
}

impl ToolPolicy {
    /// Creates settings for the scripts whose paths match `pattern`: `*` matches a part of a name,
    /// `**` any number of names, `?` a character, `[ab]` and `{a,b}` either.
    ///
    /// # Errors
    ///
    /// Fails if the pattern is invalid.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        Ok(Self {
            pattern: Pattern::of_paths(pattern)?,
            settings: ToolSettings::default(),
        })
    }

    /// Creates settings for all scripts.
    pub(crate) fn for_all() -> Self {
        Self::new("**").expect("it is a pattern")
    }

    /// Sets the confinement of the scripts.
    #[must_use]
    pub fn sandbox(mut self, profile: SandboxProfile) -> Self {
        self.settings.profile = Some(profile);
        self
    }

    /// Sets the time limit of a run.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// Sets the maximum number of concurrent runs of each script.
    #[must_use]
    pub fn concurrency(mut self, concurrency: NonZeroUsize) -> Self {
        self.settings.concurrency = Some(concurrency);
        self
    }

    /// Sets whether the values of variables are redacted in the output of the scripts. They are
    /// by default.
    #[must_use]
    pub fn redact(mut self, redact: bool) -> Self {
        self.settings.redact = Some(redact);
        self
    }

    /// Sets whether escape sequences, and text overwritten after a carriage return, stay in the
    /// output. By default the output is converted to what a terminal would show.
    #[must_use]
    pub fn keep_escapes(mut self, keep: bool) -> Self {
        self.settings.keeps_escapes = Some(keep);
        self
    }

    /// Sets whether calls of the scripts run in the background, overriding the scripts.
    #[must_use]
    pub fn task(mut self, task: TaskSupport) -> Self {
        self.settings.task = Some(task);
        self
    }

    /// Sets whether calls of the scripts start [warm](mcpd_exec::Command::warm), and with which
    /// modules.
    #[must_use]
    pub fn warm(mut self, warm: Option<WarmStart>) -> Self {
        self.settings.start = Some(warm.map_or(Start::Cold, Start::Warm));
        self
    }

    /// Sets the confinement of the scripts during probes.
    #[must_use]
    pub fn probing(mut self, probing: Probing) -> Self {
        self.settings.probing = probing;
        self
    }

    /// Sets whether the scripts run in the directory that the client works in, in place of their
    /// root, and get it as `MCPD_CLIENT_DIR`. A call without such a directory is refused.
    #[must_use]
    pub fn run_in_client_directory(mut self, is_run_there: bool) -> Self {
        self.settings.runs_in_client_directory = Some(is_run_there);
        self
    }

    /// Sets a variable whose value is a secret.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let secret = Secret(value.into());
        self.settings.variables.push((name.into(), secret));
        self
    }

    /// Sets a variable to the value of a header of each request over HTTP, which is a secret; a
    /// request without it leaves the variable unset.
    #[must_use]
    pub fn header_variable(mut self, name: impl Into<String>, header: &str) -> Self {
        let source = RequestSecret::Header(header.to_ascii_lowercase());
        self.settings.request_variables.push((name.into(), source));
        self
    }

    /// Sets a variable to a credential of each caller. A call whose caller has none is refused.
    #[must_use]
    pub fn credential_variable(
        mut self,
        name: impl Into<String>,
        source: Arc<dyn CredentialSource>,
    ) -> Self {
        let source = RequestSecret::Credential(source);
        self.settings.request_variables.push((name.into(), source));
        self
    }

    /// Sets the variables of [callers](Policy::caller_variable) that the scripts get: all by
    /// default. A name that ends with `*` is a prefix.
    #[must_use]
    pub fn caller_variables(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.settings.caller_variables = Some(names.into_iter().collect());
        self
    }

    /// Warns of its secrets that are too short to be told from other text.
    pub(crate) fn warn_of_short_secrets(&self) {
        let Self { pattern, settings } = self;
        let variables = settings.variables.iter();
        for (name, _) in variables.filter(|(_, secret)| secret.is_short()) {
            if settings.redact != Some(false) {
                tracing::warn!(
                    tools = pattern.as_str(),
                    "secret `{name}` is too short to be redacted; a script that prints it discloses it"
                );
            }
        }
    }

    /// Hashes its settings, secrets included.
    pub(crate) fn hash_settings(&self, hasher: &mut impl Hasher) {
        format!("{:?}", self.settings).hash(hasher);
        for (_, secret) in &self.settings.variables {
            secret.0.hash(hasher);
        }
    }

    pub(super) fn covers(&self, path: &ScriptPath) -> bool {
        self.pattern.is_match(path.as_str())
    }
}

impl ToolSettings {
    /// Merges the settings of a later policy.
    pub(super) fn add(&mut self, later: &Self) {
        self.profile = later.profile.clone().or(self.profile.take());
        self.timeout = later.timeout.or(self.timeout);
        self.concurrency = later.concurrency.or(self.concurrency);
        self.redact = later.redact.or(self.redact);
        self.keeps_escapes = later.keeps_escapes.or(self.keeps_escapes);
        self.task = later.task.or(self.task);
        self.asks_first = later.asks_first.or(self.asks_first);
        self.start = later.start.clone().or(self.start.take());
        self.runs_in_client_directory = later
            .runs_in_client_directory
            .or(self.runs_in_client_directory);
        if let Some(names) = &later.caller_variables {
            self.caller_variables = Some(names.clone());
        }
        for (name, source) in &later.request_variables {
            self.variables.retain(|(known, _)| known != name);
            self.request_variables.retain(|(known, _)| known != name);
            self.request_variables.push((name.clone(), source.clone()));
        }
        for (name, secret) in &later.variables {
            self.variables.retain(|(known, _)| known != name);
            self.request_variables.retain(|(known, _)| known != name);
            self.variables.push((name.clone(), secret.clone()));
        }
    }
}
