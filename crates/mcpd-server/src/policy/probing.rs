//! Confinement of probes: a script that is asked for its description, or for its state before it was ever called.

use std::time::Duration;

use mcpd_exec::{Level, Missing, Network, Sandbox};

/// How long a script may take to describe itself, unless the operator says otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Operator's settings of probes. Each setting that is absent is left to a more general rule.
///
/// By default a script is asked at [`Level::Guarded`], without a network, in an empty directory of its own, and may write
/// nothing else. It is always confined at least as far as its calls are.
///
/// ```
/// use mcpd_exec::Level;
/// use mcpd_server::{Policy, Probing, Rule};
///
/// # fn main() -> Result<(), mcpd_server::PatternError> {
/// let unconfined = Probing::default().level(Level::None);
/// let policy = Policy::default().rule(Rule::new("reports/**")?.probing(unconfined));
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
    /// Sets how far scripts are confined. [`Level::None`] asks them as they are called.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = Some(level);
        self
    }

    /// Sets whether scripts may use the network.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = Some(network);
        self
    }

    /// Sets how long a script may take to describe itself.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets whether scripts are not asked at all where the system lacks a part of the confinement.
    #[must_use]
    pub fn require(mut self, require: bool) -> Self {
        self.require = Some(require);
        self
    }

    /// Returns this, with the settings of `special` in place of those it has as well.
    pub(crate) fn overridden(&self, special: &Self) -> Self {
        Self {
            level: special.level.or(self.level),
            network: special.network.or(self.network),
            timeout: special.timeout.or(self.timeout),
            require: special.require.or(self.require),
        }
    }

    /// Returns how far probes are confined at least.
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

    /// Returns how long a script may take to describe itself.
    pub(crate) fn time_limit(&self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT)
    }

    /// Returns whether a script may be asked as it is called where the system can confine it no further.
    ///
    /// `strict` means everywhere that nothing runs without it.
    pub(crate) fn may_fall_back(&self) -> bool {
        self.require != Some(true) && self.confinement() == Level::Guarded
    }
}
