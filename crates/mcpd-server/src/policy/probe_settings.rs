//! Settings of probes, as set by the operator: confinement and time limit of the runs of a script
//! for its description, or for its state before its first call. The probe itself is in
//! `catalog::scan::probe`.

use std::time::Duration;

use mcpd_exec::{Level, Missing, Network, Sandbox};

/// Default time limit of a probe.
const DEFAULT_PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Operator's settings of probes. An absent setting is left to a more general one.
///
/// By default a script is probed at [`Level::Guarded`], without a network, in an empty directory
/// that is the only place it may write to. A probe is always confined at least as far as calls
/// are.
///
/// ```
/// use mcpd_exec::Level;
/// use mcpd_server::Policy;
/// use mcpd_server::policy::{Probing, ToolPolicy};
///
/// # fn main() -> Result<(), mcpd_server::policy::PatternError> {
/// let unconfined = Probing::default().level(Level::None);
/// let policy = Policy::default().tool(ToolPolicy::new("reports/**")?.probing(unconfined));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Probing {
    level: Option<Level>,
    network: Option<Network>,
    timeout: Option<Duration>,
    require: Option<bool>,
}

impl Probing {
    /// Sets the level. [`Level::None`] confines probes like calls.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = Some(level);
        self
    }

    /// Sets the access to the network.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = Some(network);
        self
    }

    /// Sets the time limit of a probe.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets whether probes are skipped where the system lacks a part of the confinement.
    #[must_use]
    pub fn require(mut self, require: bool) -> Self {
        self.require = Some(require);
        self
    }

    /// Returns a copy, with the settings of `special` taking precedence.
    pub(crate) fn overridden_by(&self, special: &Self) -> Self {
        Self {
            level: special.level.or(self.level),
            network: special.network.or(self.network),
            timeout: special.timeout.or(self.timeout),
            require: special.require.or(self.require),
        }
    }

    /// Returns the minimum confinement of probes.
    pub(crate) fn sandbox(&self) -> Sandbox {
        let level = self.confinement();
        let mut sandbox = Sandbox::at(level);
        sandbox.network = match (self.network, level) {
            (Some(network), _) => network,
            (None, Level::None) => Network::Host,
            (None, _) => Network::Off,
        };
        if self.require == Some(true) {
            sandbox.missing = Missing::Refuse;
        }
        sandbox
    }

    /// Returns the level.
    pub(crate) fn confinement(&self) -> Level {
        self.level.unwrap_or(Level::Guarded)
    }

    /// Returns the time limit of a probe.
    pub(crate) fn time_limit(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_PROBE_TIMEOUT)
    }

    /// Returns whether a probe may run with the confinement of calls where the system offers no
    /// more.
    ///
    /// The level `strict` means everywhere that nothing runs without it.
    pub(crate) fn may_fall_back(&self) -> bool {
        self.require != Some(true) && self.confinement() == Level::Guarded
    }
}
