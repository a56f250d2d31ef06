//! Effective policy of one script: the operator's settings, and the script's own where these are
//! stricter.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use mcpd_exec::warm::WarmStart;
use mcpd_exec::{Command, Level, Limits, Sandbox};
use mcpd_scriptspec::{OutputFormat, Role, ScriptSpec, TaskSupport};
use serde_json::value::{RawValue, to_raw_value};

use super::request_secrets::RequestSecret;
use super::{ClientDirectories, Policy, Probing, Redactor, Secret, Start, ToolSettings};
use crate::policy::caller_variables::CallerVariables;
use crate::policy::concurrency::ConcurrencyLimit;
use crate::policy::environment::Inherited;
use crate::support::own_files::OwnFiles;
use crate::support::regular_file;

mod confinement;
mod of_call;

use confinement::Confinement;
pub(super) use confinement::Confinements;

/// Captured bytes of an output that is useful only as a whole.
const MAX_STRUCTURED_OUTPUT: usize = 16 << 20;

/// Default number of concurrent runs of a script.
const DEFAULT_CONCURRENCY: NonZeroUsize = NonZeroUsize::new(16).expect("it is not zero");

/// Permissions, limits and environment of one script.
#[derive(Debug, Clone)]
pub struct EffectivePolicy {
    sandbox: Arc<Sandbox>,
    limits: Limits,
    environment: Arc<Inherited>,
    variables: Vec<(String, Secret)>,
    /// Variables of callers, and the names of those that it accepts, if not all.
    callers: Arc<CallerVariables>,
    accepted_from_callers: Option<Vec<String>>,
    request_variables: Vec<(String, RequestSecret)>,
    /// Directories that its clients may work in, if it runs there.
    client_directories: Option<ClientDirectories>,
    writes_client_directory: bool,
    redacts: bool,
    redactor: Option<Arc<Redactor>>,
    keeps_escapes: bool,
    concurrency_limit: ConcurrencyLimit,
    /// Tells whether that limit was chosen for this script.
    has_own_concurrency: bool,
    task: TaskSupport,
    warm: Option<WarmStart>,
    own_files: Arc<OwnFiles>,
    ignored_arguments: Arc<BTreeSet<String>>,
}

impl EffectivePolicy {
    pub(super) fn new(
        policy: &Policy,
        settings: ToolSettings,
        directory: &Path,
        spec: Option<&ScriptSpec>,
    ) -> Self {
        let confinement = Confinement::new(policy, &settings, directory, spec, None);
        Self::with_confinement(policy, settings, spec, confinement)
    }

    fn with_confinement(
        policy: &Policy,
        settings: ToolSettings,
        spec: Option<&ScriptSpec>,
        confinement: Confinement,
    ) -> Self {
        let Confinement {
            sandbox,
            environment,
            mut limits,
            writes_client_directory,
        } = confinement;
        let declared = spec.and_then(|spec| spec.timeout);
        limits.wall = settings.timeout.or(declared).unwrap_or(limits.wall);
        if spec.is_some_and(is_wanted_whole) {
            limits.capture_head = limits.capture_head.max(MAX_STRUCTURED_OUTPUT);
        }
        let declared = spec.and_then(|spec| spec.concurrency?.try_into().ok());
        let own_concurrency = settings.concurrency.or(declared);
        let concurrency = own_concurrency.unwrap_or(DEFAULT_CONCURRENCY);
        let declared_task = spec.map(|spec| spec.task);
        let variables = match spec {
            Some(_) => settings.variables,
            None => Vec::new(),
        };
        let redacts = settings.redact != Some(false);
        Self {
            own_files: Arc::clone(&policy.own_files),
            environment,
            sandbox,
            limits,
            redacts,
            redactor: redacts.then(|| Redactor::of(&variables)).flatten(),
            keeps_escapes: settings.keeps_escapes.unwrap_or_default(),
            variables,
            callers: Arc::clone(&policy.callers),
            accepted_from_callers: settings.caller_variables,
            client_directories: (settings.runs_in_client_directory == Some(true))
                .then(|| policy.client_directories.clone()),
            writes_client_directory,
            request_variables: match spec {
                Some(_) => settings.request_variables,
                None => Vec::new(),
            },
            concurrency_limit: ConcurrencyLimit::new(concurrency),
            has_own_concurrency: own_concurrency.is_some(),
            warm: match settings.start {
                Some(Start::Warm(warm)) => Some(warm),
                Some(Start::Cold) | None => None,
            },
            task: settings.task.or(declared_task).unwrap_or_default(),
            ignored_arguments: Arc::clone(&policy.ignored_arguments),
        }
    }

    /// Returns the files of the server whose modes a run could change: none if the run has
    /// another user, sees them read-only, or is not confined at all.
    pub(crate) fn endangered_files(&self) -> Option<&Arc<OwnFiles>> {
        let may_change_modes =
            self.sandbox.level == Level::Guarded && self.sandbox.run_as.is_none();
        may_change_modes.then_some(&self.own_files)
    }

    /// Sandbox, shared.
    pub(crate) fn shared_sandbox(&self) -> &Arc<Sandbox> {
        &self.sandbox
    }

    /// Sandbox of its runs.
    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Limits of one run.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Names of the variables that only this script receives, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|(name, _)| name.as_str())
    }

    /// Names of the variables that it takes from each request, in order.
    pub fn request_variables(&self) -> impl Iterator<Item = &str> {
        self.request_variables.iter().map(|(name, _)| name.as_str())
    }

    /// Names of the variables of callers that it accepts: `None` stands for all.
    #[must_use]
    pub fn caller_variables(&self) -> Option<&[String]> {
        self.accepted_from_callers.as_deref()
    }

    /// Returns whether it runs in the directory of its client.
    #[must_use]
    pub fn runs_in_client_directory(&self) -> bool {
        self.client_directories.is_some()
    }

    /// Support of calls in the background.
    #[must_use]
    pub fn task(&self) -> TaskSupport {
        self.task
    }

    /// Warm start of its calls, if the operator has asked for it.
    #[must_use]
    pub fn warm(&self) -> Option<&WarmStart> {
        self.warm.as_ref()
    }

    /// Applies the policy to a command.
    pub(crate) fn apply(&self, command: Command) -> Command {
        let command = self
            .environment
            .prepare(command)
            .limits(self.limits.clone())
            .sandbox(Arc::clone(&self.sandbox));
        self.variables
            .iter()
            .fold(command, |command, (name, secret)| {
                command.env(name, &secret.0)
            })
    }

    /// Returns the value of a variable at the start of a run.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let own = self.variables.iter().find(|(own, _)| own == name);
        match own {
            Some((_, secret)) => Some(secret.0.clone()),
            None => self.environment.variable(name),
        }
    }

    /// Returns the arguments of a call without those that the operator ignores and the script
    /// does not declare; `None` if no argument is ignored.
    pub(crate) fn drop_ignored(
        &self,
        spec: &ScriptSpec,
        arguments: Option<&RawValue>,
    ) -> Option<Box<RawValue>> {
        if self.ignored_arguments.is_empty() {
            return None;
        }
        // Other arguments than an object are rejected by a later check.
        let mut members = mcpd_scriptspec::members(arguments).ok()?;
        let count = members.len();
        let is_ignored = |name: &str| self.ignored_arguments.contains(name) && !spec.declares(name);
        members.retain(|(name, _)| !is_ignored(name));
        if members.len() == count {
            return None;
        }
        let members: IndexMap<_, _> = members.into_iter().collect();
        to_raw_value(&members).ok()
    }

    /// Redactor of the output.
    pub(crate) fn redactor(&self) -> Option<&Arc<Redactor>> {
        self.redactor.as_ref()
    }

    /// Returns whether escape sequences stay in the output.
    pub(crate) fn keeps_escapes(&self) -> bool {
        self.keeps_escapes
    }

    /// Returns a redacted text as a terminal would show it. It is redacted once more, because a
    /// secret that escape sequences interrupt becomes whole only then.
    pub(crate) fn redact_for_terminal(&self, text: String) -> String {
        if self.keeps_escapes {
            return text;
        }
        let shown = match mcpd_exec::terminal_text(text.as_bytes()) {
            Cow::Borrowed(_) => return text,
            Cow::Owned(shown) => shown,
        };
        let shown = match &self.redactor {
            Some(redactor) => redactor.redact_bytes(shown, false),
            None => shown,
        };
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// Returns whether the operator or the script itself limits its concurrent runs.
    pub(crate) fn has_own_concurrency(&self) -> bool {
        self.has_own_concurrency
    }

    /// Concurrency limit of the script.
    pub(crate) fn concurrency_limit(&self) -> ConcurrencyLimit {
        self.concurrency_limit
    }

    /// Returns whether mcpd may read `file`, opened at a path without links, on behalf of the
    /// script.
    ///
    /// Otherwise a confined script could have mcpd read files that it may not read itself.
    pub(crate) fn may_read_for_script(&self, file: &File, path: &Path, directory: &Path) -> bool {
        let may_read = |run_as| regular_file::is_readable_by(run_as, file, path).unwrap_or(false);
        self.is_visible(path, directory) && self.sandbox.run_as.is_none_or(may_read)
    }

    /// Returns whether the path lies in a home in which programs keep private files, unless the
    /// script lies there too.
    fn is_private(&self, path: &Path, directory: &Path) -> bool {
        let kept = self.sandbox.hidden_by(path);
        kept.is_some_and(|kept| !resolve_path(directory).starts_with(kept))
    }

    /// Returns whether the script may see this path.
    fn is_visible(&self, path: &Path, directory: &Path) -> bool {
        if self.sandbox.level == Level::None && self.sandbox.run_as.is_none() {
            return true;
        }
        let is_below = |directory: &PathBuf| path.starts_with(resolve_path(directory));
        let is_its_own = is_below(&directory.to_owned()) || self.sandbox.write.iter().any(is_below);
        is_its_own && !self.sandbox.hidden.iter().any(is_below) && !self.is_private(path, directory)
    }
}

/// Policy of a probe.
#[derive(Debug)]
pub(crate) struct ProbePolicy {
    probing: Probing,
    effective: EffectivePolicy,
    /// Policy of its calls.
    unconfined: EffectivePolicy,
}

impl ProbePolicy {
    pub(super) fn new(
        policy: &Policy,
        settings: ToolSettings,
        directory: &Path,
        probing: Probing,
    ) -> Self {
        let with_least = |least| {
            let confinement = Confinement::new(policy, &settings, directory, None, least);
            EffectivePolicy::with_confinement(policy, settings.clone(), None, confinement)
        };
        Self {
            effective: with_least(Some(&probing)),
            unconfined: with_least(None),
            probing,
        }
    }

    /// Returns the policy.
    pub(crate) fn effective_policy(&self) -> &EffectivePolicy {
        &self.effective
    }

    /// Returns the policy for systems that cannot confine the probe, if it may run there at all.
    pub(crate) fn fallback(&self) -> Option<&EffectivePolicy> {
        self.probing.may_fall_back().then_some(&self.unconfined)
    }

    /// Returns whether the probe is confined further than a call.
    pub(crate) fn is_confined(&self) -> bool {
        self.effective.sandbox != self.unconfined.sandbox
    }

    /// Returns the level required for probes, apart from that of calls.
    pub(crate) fn level(&self) -> Level {
        self.probing.confinement()
    }

    /// Returns the time limit.
    pub(crate) fn time_limit(&self) -> Duration {
        self.probing.time_limit()
    }
}

/// Returns whether a cut output is useless. The ends of a text are useful, those of JSON or of a
/// resource are not.
fn is_wanted_whole(spec: &ScriptSpec) -> bool {
    spec.output != OutputFormat::Text || matches!(spec.role, Role::Resource { .. })
}

/// Returns the target of a path, of which the last components need not exist yet.
pub(super) fn resolve_path(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let Some(parent) = path.parent() else {
        return path.to_owned();
    };
    let mut parent = resolve_path(parent);
    match path.file_name() {
        Some(name) => parent.push(name),
        // The path ends with `..`.
        None => {
            parent.pop();
        }
    }
    parent
}

#[cfg(test)]
mod tests;
