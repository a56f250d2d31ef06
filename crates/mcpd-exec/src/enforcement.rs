//! Record of the confinement that was applied, as opposed to what was asked for.

use std::borrow::Cow;
use std::fmt;

use crate::backend::Backend;
use crate::sandbox::Level;

/// Confinement that was in force during a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Enforcement {
    /// The level that was asked for.
    pub level: Level,
    /// Program that made the namespaces in place of this one.
    pub backend: Option<Backend>,
    /// The version of the Landlock ABI in use. It denied reading and writing elsewhere, and from
    /// 6 on signals to other processes.
    pub landlock: Option<u32>,
    /// A deny-list of system calls was in force.
    pub seccomp: bool,
    /// The process had its own namespaces.
    pub namespaces: bool,
    /// The whole run was in its own control group.
    pub cgroup: bool,
    /// Seatbelt denied reading and writing elsewhere, and signals to other processes (macOS).
    pub seatbelt: bool,
    /// The whole run was in its own job object (Windows).
    pub job_object: bool,
    /// Certainty that nothing of the run is left.
    pub containment: Containment,
    /// The mechanisms that were asked for and that the system lacks.
    pub missing: Vec<MissingMechanism>,
}

/// Certainty that no descendant of a process outlives its run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Containment {
    /// The process group is killed when the run is cut short. A process that leaves the group is
    /// out of reach.
    #[default]
    Group,
    /// The descendants are searched for and killed. One that keeps forking may slip through.
    Search,
    /// Proven: no process of the run is alive when it is over.
    Proven,
}

/// Mechanism that was asked for and was not available.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MissingMechanism {
    /// Name of the mechanism.
    pub mechanism: Cow<'static, str>,
    /// The cause, and what follows from it.
    pub reason: String,
}

impl MissingMechanism {
    pub(crate) fn new(mechanism: &'static str, reason: impl Into<String>) -> Self {
        Self {
            mechanism: Cow::Borrowed(mechanism),
            reason: reason.into(),
        }
    }
}

impl fmt::Display for MissingMechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.mechanism, self.reason)
    }
}
