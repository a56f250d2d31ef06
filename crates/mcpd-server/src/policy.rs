//! Policy: confinement, limits and environment of scripts, as set by the operator. The effective
//! policy of a script is computed when the script is found, never during a call. Knows specs
//! of scripts and callers as principals; no request.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcpd_exec::{Limits, Sandbox};
use mcpd_scriptspec::{ScriptPath, ScriptSpec};

use crate::DEFAULT_KEEP;
use crate::policy::caller_variables::CallerVariables;
use crate::support::own_files::OwnFiles;

pub(crate) mod access;
pub(crate) mod approval;
mod caller_variables;
mod client_directories;
pub(crate) mod concurrency;
mod effective;
pub(crate) mod environment;
pub(crate) mod pattern;
pub(crate) mod principal;
mod probe_settings;
pub(crate) mod quota;
mod redactor;
mod request_secrets;
mod root;
pub(crate) mod secret_arguments;
pub(crate) mod selection;
mod tool_policy;

pub use access::{Access, CallPattern};
pub use approval::{Approval, AskFor, Remember, WithoutPerson};
pub(crate) use client_directories::ClientDirectories;
use effective::Confinements;
pub use effective::EffectivePolicy;
pub(crate) use effective::ProbePolicy;
pub use environment::Environment;
pub use pattern::PatternError;
pub use probe_settings::Probing;
pub use quota::{Quota, RateLimit};
pub(crate) use redactor::Redactor;
pub use request_secrets::CredentialSource;
use request_secrets::RequestSecret;
pub(crate) use request_secrets::SecretHeaders;
pub use root::Root;
pub use selection::Selection;
pub use tool_policy::ToolPolicy;
use tool_policy::{Secret, Start, ToolSettings};

/// Confinement of scripts: a sandbox and its limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxProfile {
    /// Sandbox.
    pub sandbox: Sandbox,
    /// Optional limits only; the others are set elsewhere.
    pub limits: Limits,
    /// Scripts that run in the directory of the client may write there.
    pub writes_client_directory: bool,
}

impl SandboxProfile {
    /// Creates a profile without limits of its own.
    #[must_use]
    pub fn new(sandbox: Sandbox) -> Self {
        Self {
            sandbox,
            limits: Limits::default(),
            writes_client_directory: false,
        }
    }

    /// Returns the stricter of the two in every respect, with this one as the floor. The floor
    /// sets the user that scripts run as, if it names one. Paths that either allows to write or
    /// read stay allowed, because the operator wrote both, unless the other hides them. The floor
    /// may open paths that both hide, such as the secrets known to mcpd.
    fn combined_with(&self, other: &Self) -> Self {
        let mut combined = self.clone();
        let mut other = other.clone();
        let (floor, theirs) = (&self.sandbox, &mut other.sandbox);
        // Paths that only the other hides are closed even where the floor opens them.
        let known: BTreeSet<&PathBuf> = floor.hidden.iter().collect();
        let is_news = |path: &&PathBuf| !known.contains(path);
        let only_theirs: Vec<_> = theirs.hidden.iter().filter(is_news).collect();
        for paths in [&mut combined.sandbox.write, &mut combined.sandbox.read] {
            paths.retain(|path| !is_below(path, &only_theirs));
        }
        let of_floor: Vec<_> = floor.hidden.iter().collect();
        theirs.write.retain(|path| !is_below(path, &of_floor));
        // The other may open paths that every sandbox hides, but no path that the floor hides
        // explicitly.
        let usual = Sandbox::at(floor.level).hidden;
        let usual: BTreeSet<&PathBuf> = usual.iter().collect();
        let is_named = |path: &&PathBuf| !usual.contains(path);
        let of_floor: Vec<_> = floor.hidden.iter().filter(is_named).collect();
        theirs.read.retain(|path| !is_below(path, &of_floor));
        let (ours, theirs) = (&mut combined.sandbox, &other.sandbox);
        // Levels are ordered by strictness, so the maximum is the stricter one.
        ours.level = ours.level.max(theirs.level);
        ours.tighten_network(theirs);
        ours.missing = ours.missing.max(theirs.missing);
        ours.run_as = ours.run_as.or(theirs.run_as);
        ours.backend = ours.backend.or(theirs.backend);
        for (ours, theirs) in [
            (&mut ours.write, &theirs.write),
            (&mut ours.read, &theirs.read),
            (&mut ours.homes, &theirs.homes),
            (&mut ours.hidden, &theirs.hidden),
        ] {
            ours.extend(theirs.iter().cloned());
            ours.sort();
            ours.dedup();
        }
        tighten(&mut combined.limits, &other.limits);
        combined.writes_client_directory |= other.writes_client_directory;
        combined
    }
}

/// Returns whether `path` is one of these or below one, after resolving links.
fn is_below(path: &Path, directories: &[&PathBuf]) -> bool {
    let path = effective::resolve_path(path);
    let mut directories = directories.iter();
    directories.any(|directory| path.starts_with(effective::resolve_path(directory)))
}

/// Lowers every optional limit to that of `other`, if that has one.
fn tighten(limits: &mut Limits, other: &Limits) {
    fn lower<T: Ord + Copy>(limit: &mut Option<T>, other: Option<T>) {
        *limit = limit.map_or(other, |limit| {
            Some(other.map_or(limit, |other| limit.min(other)))
        });
    }
    lower(&mut limits.cpu, other.cpu);
    lower(&mut limits.address_space, other.address_space);
    lower(&mut limits.file_size, other.file_size);
    lower(&mut limits.open_files, other.open_files);
    lower(&mut limits.processes, other.processes);
    lower(&mut limits.memory, other.memory);
}

/// Returns the stricter of two limits each.
pub(crate) fn stricter(own: &Limits, other: &Limits) -> Limits {
    let mut limits = own.clone();
    tighten(&mut limits, other);
    limits.wall = limits.wall.min(other.wall);
    limits.grace = limits.grace.min(other.grace);
    limits.drain = limits.drain.min(other.drain);
    limits.capture_head = limits.capture_head.min(other.capture_head);
    limits.capture_tail = limits.capture_tail.min(other.capture_tail);
    limits.keep = limits.keep.min(other.keep);
    limits.output_hard = limits.output_hard.min(other.output_hard);
    limits.line = limits.line.min(other.line);
    limits
}

/// Settings for all scripts, and for those of some tools.
///
/// ```
/// use mcpd_exec::Sandbox;
/// use mcpd_server::{Policy, SandboxProfile};
/// use mcpd_server::policy::ToolPolicy;
///
/// # fn main() -> Result<(), mcpd_server::policy::PatternError> {
/// let reports = ToolPolicy::new("reports/**")?
///     .sandbox(SandboxProfile::new(Sandbox::guarded().write("/srv/reports")))
///     .variable("API_KEY", "ed9fb1c0");
/// let policy = Policy::default().tool(reports);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    floor: SandboxProfile,
    limits: Limits,
    environment: Environment,
    hidden: Vec<PathBuf>,
    /// Hidden paths to which the server may lose its rights.
    own_files: Arc<OwnFiles>,
    ignored_arguments: Arc<BTreeSet<String>>,
    callers: Arc<CallerVariables>,
    client_directories: ClientDirectories,
    approval: Approval,
    probing: Probing,
    roots: Vec<Root>,
    tools: Vec<ToolPolicy>,
    /// Computed at first use.
    confinements: Confinements,
}

impl Default for Policy {
    /// Confines no call and passes on the environment of this process; probes are confined as
    /// [`Probing`] says. Of long outputs [`DEFAULT_KEEP`] bytes are kept.
    fn default() -> Self {
        let mut limits = Limits::default();
        limits.keep = DEFAULT_KEEP;
        Self {
            floor: SandboxProfile::default(),
            limits,
            environment: Environment::of_this_process(),
            hidden: Vec::new(),
            own_files: Arc::default(),
            ignored_arguments: Arc::default(),
            callers: Arc::default(),
            client_directories: ClientDirectories::default(),
            approval: Approval::default(),
            probing: Probing::default(),
            roots: Vec::new(),
            tools: Vec::new(),
            confinements: Confinements::default(),
        }
    }
}

impl Policy {
    /// Sets the minimum confinement of every script, which no tool loosens.
    #[must_use]
    pub fn floor(mut self, floor: SandboxProfile) -> Self {
        self.floor = floor;
        self.confinements = Confinements::default();
        self
    }

    /// Sets the limits of every script, unless those of the tool or the script are others.
    ///
    /// With [`Limits::keep`], an output that a result shows only in part can be read as a
    /// resource.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self.confinements = Confinements::default();
        self
    }

    /// Sets the environment from which every script starts.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self.confinements = Confinements::default();
        self
    }

    /// Hides a file or directory, with everything below, from every confined script, unless the
    /// script may write there. The path counts as the server's own: if a script takes the present
    /// rights of the owner from this process, they are restored. Blocks.
    #[must_use]
    pub fn hide(mut self, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        self.own_files.add(&path);
        self.hidden.push(path);
        self.confinements = Confinements::default();
        self
    }

    /// Drops an argument from the calls of scripts that declare no option of this name. Some
    /// clients add arguments of their own to every call, and a script must not receive unknown
    /// ones.
    #[must_use]
    pub fn ignore_argument(mut self, name: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.ignored_arguments).insert(name.into());
        self
    }

    /// Sets a variable for the runs of scripts that the principal called `caller` causes, and for
    /// no others. Its value is a secret, and overrides that of the tool.
    #[must_use]
    pub fn caller_variable(
        mut self,
        caller: impl Into<String>,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        let callers = Arc::make_mut(&mut self.callers);
        callers.set(caller.into(), name.into(), Secret(value.into()));
        self
    }

    /// Restricts the directories that [clients](ToolPolicy::run_in_client_directory) may work in to
    /// these and those below. By default the program that started a server over stdio may work
    /// in any, and other clients in none.
    #[must_use]
    pub fn client_directories(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.client_directories = ClientDirectories::only(directories.into_iter().collect());
        self
    }

    /// Sets the confinement of probes, unless a root or a tool sets another.
    #[must_use]
    pub fn probing(mut self, probing: Probing) -> Self {
        self.probing = probing;
        self
    }

    /// Adds the settings of a root and of all directories below. The nearest root of a directory
    /// applies.
    #[must_use]
    pub fn root(mut self, root: Root) -> Self {
        self.roots.push(root);
        self
    }

    /// Returns the settings of the root at `path`, a real path, or of the nearest root above it.
    pub(crate) fn root_of(&self, path: &Path) -> Option<&Root> {
        let above = self
            .roots
            .iter()
            .filter(|root| path.starts_with(root.path()));
        above.max_by_key(|root| root.path().as_os_str().len())
    }

    /// Returns the settings of probes of the script at `path`, whose file is in `directory`.
    pub(crate) fn probing_of(&self, path: &ScriptPath, directory: &Path) -> Probing {
        let root = self.root_of(directory).map(Root::probing_settings);
        let mut probing = self
            .probing
            .overridden_by(root.unwrap_or(&Probing::default()));
        for tool in self.tools.iter().filter(|tool| tool.covers(path)) {
            probing = probing.overridden_by(&tool.settings.probing);
        }
        probing
    }

    /// Adds the settings of tools. For one script, later ones override earlier ones, and their
    /// variables add up.
    #[must_use]
    pub fn tool(mut self, tool: ToolPolicy) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds settings that everything else overrides.
    pub(crate) fn default_tool(mut self, tool: ToolPolicy) -> Self {
        self.tools.insert(0, tool);
        self
    }

    /// Returns the effective policy of the script at `path`, whose file is in `directory`.
    /// Without a `spec` the script has not been described yet, and receives no secrets.
    pub(crate) fn effective_policy(
        &self,
        path: &ScriptPath,
        directory: &Path,
        spec: Option<&ScriptSpec>,
    ) -> EffectivePolicy {
        EffectivePolicy::new(self, self.merged_settings(path), directory, spec)
    }

    /// Returns the effective policy of a probe of the script at `path`, whose file is in
    /// `directory`.
    pub(crate) fn probe_policy(&self, path: &ScriptPath, directory: &Path) -> ProbePolicy {
        let probing = self.probing_of(path, directory);
        ProbePolicy::new(self, self.merged_settings(path), directory, probing)
    }

    /// Returns a text of all other settings that affect probes, without secrets.
    pub(crate) fn probe_settings_text(&self) -> String {
        let SandboxProfile { sandbox, .. } = &self.floor;
        format!("{sandbox:?} {}", self.environment.rules_text())
    }

    /// Returns the merged settings of the script at `path`.
    fn merged_settings(&self, path: &ScriptPath) -> ToolSettings {
        let mut settings = ToolSettings::default();
        for tool in self.tools.iter().filter(|tool| tool.covers(path)) {
            settings.add(&tool.settings);
        }
        settings
    }

    /// Returns the effective policy of a built-in tool that works in `directory`: confined at
    /// least as `profile` says, which no tool loosens.
    pub(crate) fn effective_policy_at_least(
        &self,
        profile: &SandboxProfile,
        timeout: Option<Duration>,
        path: &ScriptPath,
        directory: &Path,
        spec: &ScriptSpec,
    ) -> EffectivePolicy {
        let mut settings = ToolSettings {
            timeout,
            ..ToolSettings::default()
        };
        for tool in self.tools.iter().filter(|tool| tool.covers(path)) {
            settings.add(&tool.settings);
        }
        settings.profile = Some(match &settings.profile {
            Some(wanted) => profile.combined_with(wanted),
            None => profile.clone(),
        });
        EffectivePolicy::new(self, settings, directory, Some(spec))
    }

    /// Returns the names of the headers that some script gets, in lower case.
    pub(crate) fn secret_headers(&self) -> Vec<String> {
        let variables = self
            .tools
            .iter()
            .flat_map(|tool| &tool.settings.request_variables);
        let headers = variables.filter_map(|(_, source)| match source {
            RequestSecret::Header(name) => Some(name.clone()),
            RequestSecret::Credential(_) => None,
        });
        let headers: BTreeSet<_> = headers.collect();
        headers.into_iter().collect()
    }

    /// Returns a redactor of all secrets that scripts receive.
    pub(crate) fn secrets(&self) -> Option<Redactor> {
        let variables = self.tools.iter().flat_map(|tool| &tool.settings.variables);
        let variables = variables.chain(self.callers.all().map(|(_, variable)| variable));
        Redactor::new(variables.map(|(name, secret)| (name.as_str(), secret.0.as_str())))
    }

    /// Warns of secrets that are too short to be told from other text.
    pub(crate) fn warn_of_short_secrets(&self) {
        for tool in &self.tools {
            tool.warn_of_short_secrets();
        }
        for (caller, (name, secret)) in self.callers.all() {
            if secret.is_short() {
                tracing::warn!(
                    caller,
                    "secret `{name}` is too short to be redacted; a script that prints it discloses it"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
