//! What was done to confine a process, as opposed to what was asked for.

use std::fmt;

use crate::sandbox::Level;

/// What held a process in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enforced {
    /// The level that was asked for.
    pub level: Level,
    /// The version of Landlock's interface in use: it kept the process from writing and reading elsewhere, and
    /// from 6 on from signalling other processes.
    pub landlock: Option<u32>,
    /// A deny-list of system calls was in force.
    pub seccomp: bool,
    /// The process had namespaces of its own.
    pub namespaces: bool,
    /// The whole run was in a control group of its own.
    pub cgroup: bool,
    /// Seatbelt kept the process from writing and reading elsewhere, and from signalling other processes (macOS).
    pub seatbelt: bool,
    /// The whole run was in a job object of its own (Windows).
    pub job_object: bool,
    /// How sure it is that nothing of the run is left.
    pub containment: Containment,
    /// What was asked for and the system could not do.
    pub missing: Vec<MissingMechanism>,
}

/// How sure it is that no descendant of a process outlives its run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Containment {
    /// Its process group is killed when the run is cut short. What leaves the group is beyond reach.
    #[default]
    Group,
    /// Its descendants are looked for and killed. One that keeps forking may slip through.
    Search,
    /// Proven: nothing of it is alive when the run is over.
    Proven,
}

/// A mechanism that was asked for and could not be had.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingMechanism {
    /// What it is called.
    pub mechanism: &'static str,
    /// Why it could not be had, and what that means.
    pub reason: String,
}

impl MissingMechanism {
    pub(crate) fn new(mechanism: &'static str, reason: impl Into<String>) -> Self {
        Self {
            mechanism,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for MissingMechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.mechanism, self.reason)
    }
}
