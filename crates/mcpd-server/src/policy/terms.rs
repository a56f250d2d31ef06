//! What the policy comes to for one script: the operator's word, and the script's own where that is stricter.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use mcpd_exec::{Command, Level, Limits, Network, Sandbox};
use mcpd_scriptspec::{OutputFormat, Role, SandboxLevel, SandboxWish, ScriptSpec, TaskSupport};
use serde_json::value::{RawValue, to_raw_value};

use super::{Orders, Policy, Probing, Profile, Redactor, Secret, tighten};
use crate::environment::Inherited;
use crate::own_files::OwnFiles;
use crate::regular;
use crate::turns::Width;

/// How much of an output is kept that is of use only as a whole, in bytes.
const STRUCTURED_OUTPUT: usize = 16 << 20;

/// How many runs of a script there are at once if nobody has another wish.
const CONCURRENCY: NonZeroUsize = NonZeroUsize::new(16).expect("it is not zero");

/// What one script may do, and what it is given.
#[derive(Debug)]
pub struct Terms {
    sandbox: Arc<Sandbox>,
    limits: Limits,
    environment: Inherited,
    variables: Vec<(String, Secret)>,
    redactor: Option<Arc<Redactor>>,
    keeps_escapes: bool,
    width: Width,
    task: TaskSupport,
    own_files: Arc<OwnFiles>,
    ignored_arguments: Arc<BTreeSet<String>>,
}

impl Terms {
    pub(super) fn new(
        policy: &Policy,
        orders: Orders,
        directory: &Path,
        spec: Option<&ScriptSpec>,
    ) -> Self {
        Self::confined(policy, orders, directory, spec, &Sandbox::none())
    }

    /// Returns the terms of a script that is confined as `least` says in any case, and may write only what that allows.
    pub(super) fn confined(
        policy: &Policy,
        orders: Orders,
        directory: &Path,
        spec: Option<&ScriptSpec>,
        least: &Sandbox,
    ) -> Self {
        let Profile {
            mut sandbox,
            limits: kernel,
        } = match &orders.profile {
            Some(profile) => policy.floor.joined(profile),
            None => policy.floor.clone(),
        };
        if let Some(wish) = spec.and_then(|spec| spec.sandbox.as_ref()) {
            resolve_links(&mut sandbox);
            sandbox = sandbox.tightened(&wished(wish, directory));
        }
        // The environment of a described script depends on how it is called: its state is to be the same.
        let called_at = sandbox.level;
        sandbox = sandbox.tightened(least);
        let level = if spec.is_some() {
            called_at
        } else {
            sandbox.level
        };
        // Whoever may write there could put another file in its place.
        let is_written =
            |path: &&PathBuf| sandbox.write.iter().any(|write| path.starts_with(write));
        let hidden: Vec<_> = policy
            .hidden
            .iter()
            .filter(|path| !is_written(path))
            .cloned()
            .collect();
        sandbox.hidden.extend(hidden);
        let mut limits = policy.limits.clone();
        tighten(&mut limits, &kernel);
        let declared = spec.and_then(|spec| spec.timeout);
        limits.wall = orders.timeout.or(declared).unwrap_or(limits.wall);
        if spec.is_some_and(is_wanted_whole) {
            limits.capture_head = limits.capture_head.max(STRUCTURED_OUTPUT);
        }
        let declared = spec.and_then(|spec| spec.concurrency?.try_into().ok());
        let concurrency = orders.concurrency.or(declared).unwrap_or(CONCURRENCY);
        let declared_task = spec.map(|spec| spec.task);
        let variables = match spec {
            Some(_) => orders.variables,
            None => Vec::new(),
        };
        let secrets = variables
            .iter()
            .map(|(name, secret)| (name.as_str(), secret.0.as_str()));
        let redactor = match orders.redact {
            Some(false) => None,
            _ => Redactor::new(secrets).map(Arc::new),
        };
        Self {
            own_files: Arc::clone(&policy.own_files),
            environment: policy.environment.at(level, sandbox.run_as),
            sandbox: Arc::new(sandbox),
            limits,
            redactor,
            keeps_escapes: orders.keeps_escapes.unwrap_or_default(),
            variables,
            width: Width::new(concurrency),
            task: orders.task.or(declared_task).unwrap_or_default(),
            ignored_arguments: Arc::clone(&policy.ignored_arguments),
        }
    }

    /// Files of the server that a run under these terms could take from it by changing modes: none,
    /// if it is a process of another user, sees them read-only, or is not confined at all.
    pub(crate) fn endangered_files(&self) -> Option<&Arc<OwnFiles>> {
        let may_change_modes =
            self.sandbox.level == Level::Guarded && self.sandbox.run_as.is_none();
        may_change_modes.then_some(&self.own_files)
    }

    /// How it is confined, to be kept.
    pub(crate) fn shared_sandbox(&self) -> &Arc<Sandbox> {
        &self.sandbox
    }

    /// How it is confined.
    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// What one run of it may use.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The names of the variables that it alone is given, in their order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|(name, _)| name.as_str())
    }

    /// Whether calls go on in the background.
    #[must_use]
    pub fn task(&self) -> TaskSupport {
        self.task
    }

    /// The command under these terms.
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

    /// Returns the value of a variable that a run starts with.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let own = self.variables.iter().find(|(own, _)| own == name);
        match own {
            Some((_, secret)) => Some(secret.0.clone()),
            None => self.environment.variable(name),
        }
    }

    /// Returns the arguments of a call without those that the operator has ignored and the script doesn't declare; nothing
    /// if none of them is ignored.
    pub(crate) fn without_ignored(
        &self,
        spec: &ScriptSpec,
        arguments: Option<&RawValue>,
    ) -> Option<Box<RawValue>> {
        if self.ignored_arguments.is_empty() {
            return None;
        }
        // Arguments that are no object are refused when they are checked.
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

    /// What takes its secrets out of what it prints.
    pub(crate) fn redactor(&self) -> Option<&Arc<Redactor>> {
        self.redactor.as_ref()
    }

    /// Returns whether escape sequences stay in what it prints.
    pub(crate) fn keeps_escapes(&self) -> bool {
        self.keeps_escapes
    }

    /// Returns a text that it gave, without secrets, as a terminal would show it: a secret that was
    /// broken up by escape sequences comes together only then.
    pub(crate) fn readable(&self, text: String) -> String {
        if self.keeps_escapes {
            return text;
        }
        let shown = match mcpd_exec::shown(text.as_bytes()) {
            Cow::Borrowed(_) => return text,
            Cow::Owned(shown) => shown,
        };
        let shown = match &self.redactor {
            Some(redactor) => redactor.bytes(shown, false),
            None => shown,
        };
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// How many runs of it there may be at once.
    pub(crate) fn width(&self) -> Width {
        self.width
    }

    /// Whether mcpd may read `file`, which it has opened at a path without links, on its behalf.
    ///
    /// A confined script could otherwise have mcpd read what it may not read itself.
    pub(crate) fn may_hand_over(&self, file: &File, path: &Path, directory: &Path) -> bool {
        let may_read = |run_as| regular::is_readable_by(run_as, file, path).unwrap_or(false);
        self.may_be_shown(path, directory) && self.sandbox.run_as.is_none_or(may_read)
    }

    /// Returns whether programs keep it in a home for themselves, unless that is where the script is.
    fn is_kept(&self, path: &Path, directory: &Path) -> bool {
        let kept = self.sandbox.hidden_by(path);
        kept.is_some_and(|kept| !real(directory).starts_with(kept))
    }

    /// The same for all that is said of paths.
    fn may_be_shown(&self, path: &Path, directory: &Path) -> bool {
        if self.sandbox.level == Level::None && self.sandbox.run_as.is_none() {
            return true;
        }
        let is_below = |directory: &PathBuf| path.starts_with(real(directory));
        let is_its_own = is_below(&directory.to_owned()) || self.sandbox.write.iter().any(is_below);
        is_its_own && !self.sandbox.hidden.iter().any(is_below) && !self.is_kept(path, directory)
    }
}

/// Terms of one script while it is asked what it is, or for its state.
#[derive(Debug)]
pub(crate) struct ProbeTerms {
    probing: Probing,
    terms: Terms,
    /// Those of its calls.
    unconfined: Terms,
}

impl ProbeTerms {
    pub(super) fn new(
        policy: &Policy,
        orders: Orders,
        directory: &Path,
        spec: Option<&ScriptSpec>,
        probing: Probing,
    ) -> Self {
        let unconfined = Terms::new(policy, orders.clone(), directory, spec);
        let terms = Terms::confined(policy, orders, directory, spec, &probing.sandbox());
        Self {
            probing,
            terms,
            unconfined,
        }
    }

    /// Returns the terms.
    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns the terms where the system has nothing to confine it with, if it may run there at all.
    pub(crate) fn fallback(&self) -> Option<&Terms> {
        self.probing.may_fall_back().then_some(&self.unconfined)
    }

    /// Returns whether it may do less than when it is called.
    pub(crate) fn is_confined(&self) -> bool {
        self.terms.sandbox != self.unconfined.sandbox
    }

    /// Returns how far it is confined for the sake of the probe, whatever its calls may do.
    pub(crate) fn level(&self) -> Level {
        self.probing.confinement()
    }

    /// Returns how long it may take.
    pub(crate) fn time_limit(&self) -> Duration {
        self.probing.time_limit()
    }
}

/// Resolves the links in the paths of `sandbox`: a wish that leaves by one what is allowed allows nothing.
fn resolve_links(sandbox: &mut Sandbox) {
    let add_resolved = |paths: &mut Vec<PathBuf>| {
        let resolved: Vec<_> = paths.iter().map(|path| real(path)).collect();
        paths.extend(resolved);
        paths.sort();
        paths.dedup();
    };
    sandbox.write = sandbox.write.iter().map(|path| real(path)).collect();
    sandbox.resolved = true;
    add_resolved(&mut sandbox.hidden);
    add_resolved(&mut sandbox.homes);
}

/// Of a text the beginning and the end are worth something; of JSON, or of a resource, they aren't.
fn is_wanted_whole(spec: &ScriptSpec) -> bool {
    spec.output != OutputFormat::Text || matches!(spec.role, Role::Resource { .. })
}

fn wished(wish: &SandboxWish, directory: &Path) -> Sandbox {
    let mut sandbox = match wish.level {
        SandboxLevel::Strict => Sandbox::strict(),
        _ => Sandbox::guarded(),
    };
    if !wish.network {
        sandbox.network = Network::Off;
    }
    for path in &wish.write {
        sandbox = sandbox.write(real(&absolute(path, directory)));
    }
    for path in &wish.read {
        sandbox = sandbox.read(real(&absolute(path, directory)));
    }
    for path in &wish.hide {
        sandbox = sandbox.hide(absolute(path, directory));
    }
    sandbox
}

/// A path as a script writes it: `~/` is the home directory of whoever runs mcpd.
fn absolute(path: &str, directory: &Path) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => directory.join(path),
    }
}

/// Where a path leads, as far as there is anything yet.
pub(super) fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let Some(parent) = path.parent() else {
        return path.to_owned();
    };
    let mut parent = real(parent);
    match path.file_name() {
        Some(name) => parent.push(name),
        // It ends with `..`.
        None => {
            parent.pop();
        }
    }
    parent
}

#[cfg(test)]
mod tests;
