//! Confinement of a script: its sandbox and limits, without what else its policy consists of.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mcpd_exec::{Limits, Network, Sandbox};
use mcpd_scriptspec::ScriptSpec;
use mcpd_scriptspec::spec::{NetworkRequest, SandboxLevel, SandboxRequest};

use super::resolve_path;
use crate::policy::environment::Inherited;
use crate::policy::{Policy, Probing, SandboxProfile, ToolSettings, tighten};
use crate::support::sync::lock;

/// Sandbox of a script, the environment that belongs to it, and limits, without the script's own
/// timeout.
#[derive(Debug, Clone)]
pub(super) struct Confinement {
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) environment: Arc<Inherited>,
    pub(super) limits: Limits,
    pub(super) writes_client_directory: bool,
}

/// Cache of the confinements under one policy, by what else they depend on: the profile, and for
/// probes their settings.
///
/// Scripts with the same settings share one sandbox: it has hundreds of paths, and the executor
/// caches the rules that it derives from one.
#[derive(Debug, Clone, Default)]
pub(in crate::policy) struct Confinements(Arc<Mutex<Vec<(ConfinementSettings, Confinement)>>>);

/// Settings of a confinement apart from those of the whole policy.
type ConfinementSettings = (Option<SandboxProfile>, Option<Probing>);

impl PartialEq for Confinements {
    /// Compares nothing: the confinements follow from the policy.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Confinements {
    fn get_or_insert(
        &self,
        profile: Option<&SandboxProfile>,
        probing: Option<&Probing>,
        make: impl FnOnce() -> Confinement,
    ) -> Confinement {
        let mut known = lock(&self.0);
        let found = known
            .iter()
            .find(|((of, asked), _)| of.as_ref() == profile && asked.as_ref() == probing);
        if let Some((_, confinement)) = found {
            return confinement.clone();
        }
        let confinement = make();
        known.push(((profile.cloned(), probing.cloned()), confinement.clone()));
        confinement
    }
}

impl Confinement {
    /// Returns the confinement of a script, or that of its probe under these settings, which
    /// confine it further and let it write only where that allows it.
    pub(super) fn new(
        policy: &Policy,
        settings: &ToolSettings,
        directory: &Path,
        spec: Option<&ScriptSpec>,
        probing: Option<&Probing>,
    ) -> Self {
        let profile = settings.profile.as_ref();
        let wish = spec.and_then(|spec| spec.sandbox.as_ref());
        let least = || probing.map_or_else(Sandbox::none, Probing::sandbox);
        let compute = |wish| Self::compute(policy, profile, wish, &least());
        match wish {
            // Its paths are those of the moment and of the directory, links resolved.
            Some(wish) => compute(Some((wish, directory))),
            None => {
                let shared = &policy.confinements;
                shared.get_or_insert(profile, probing, || compute(None))
            }
        }
    }

    fn compute(
        policy: &Policy,
        profile: Option<&SandboxProfile>,
        wish: Option<(&SandboxRequest, &Path)>,
        least: &Sandbox,
    ) -> Self {
        let SandboxProfile {
            mut sandbox,
            limits: kernel,
            writes_client_directory,
        } = match profile {
            Some(profile) => policy.floor.combined_with(profile),
            None => policy.floor.clone(),
        };
        if let Some((wish, directory)) = wish {
            add_link_targets(&mut sandbox);
            sandbox = sandbox.tighten(&wished_sandbox(wish, directory));
        }
        sandbox = sandbox.tighten(least);
        // A path that the script may write to could be replaced anyway, so hiding it is of no
        // use.
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
        let environment = policy.environment.for_level(sandbox.level, sandbox.run_as);
        Self {
            sandbox: Arc::new(sandbox),
            environment: Arc::new(environment),
            limits,
            writes_client_directory,
        }
    }
}

/// Resolves the links in the paths of `sandbox`: a wish that leaves the permitted paths through a
/// link grants nothing.
fn add_link_targets(sandbox: &mut Sandbox) {
    let add_resolved = |paths: &mut Vec<PathBuf>| {
        let resolved: Vec<_> = paths.iter().map(|path| resolve_path(path)).collect();
        paths.extend(resolved);
        paths.sort();
        paths.dedup();
    };
    sandbox.write = sandbox
        .write
        .iter()
        .map(|path| resolve_path(path))
        .collect();
    sandbox.resolved = true;
    add_resolved(&mut sandbox.hidden);
    add_resolved(&mut sandbox.homes);
}

fn wished_sandbox(wish: &SandboxRequest, directory: &Path) -> Sandbox {
    let mut sandbox = match wish.level {
        SandboxLevel::Strict => Sandbox::strict(),
        _ => Sandbox::guarded(),
    };
    match &wish.network {
        NetworkRequest::Off => sandbox.network = Network::Off,
        NetworkRequest::Only(list) => {
            let list = list.iter().filter_map(|text| text.parse().ok());
            sandbox = sandbox.destinations(list);
        }
        _ => {}
    }
    for path in &wish.write {
        sandbox = sandbox.write(resolve_path(&expand_home(path, directory)));
    }
    for path in &wish.read {
        sandbox = sandbox.read(resolve_path(&expand_home(path, directory)));
    }
    for path in &wish.hide {
        sandbox = sandbox.hide(expand_home(path, directory));
    }
    sandbox
}

/// Resolves a path written by a script: `~/` is the home directory of the user that runs mcpd.
fn expand_home(path: &str, directory: &Path) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => directory.join(path),
    }
}
