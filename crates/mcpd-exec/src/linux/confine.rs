//! What holds one run in: what is asked for, as far as the system has it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::landlock::Ruleset;
use super::lane::Entered;
use super::temporary::Lease;
use super::tree::Mark;
use super::{System, tree};
use crate::command::Command;
use crate::enforced::{Containment, Enforced, MissingMechanism};
use crate::limits::Limits;
use crate::sandbox::{Level, Sandbox};

/// What holds one run in.
#[derive(Debug, Default)]
pub(crate) struct Confinement {
    pub(crate) mark: Option<Mark>,
    pub(crate) temporary: Option<Lease>,
    pub(crate) ruleset: Option<Arc<Ruleset>>,
    pub(crate) enforced: Enforced,
}

impl Confinement {
    /// Prepares the confinement of `command`, and says what of it is missing.
    ///
    /// # Errors
    ///
    /// A temporary directory can't be had.
    pub(crate) fn prepare(
        command: &Command,
        limits: &Limits,
        system: &System,
        lane: &Entered,
    ) -> io::Result<Self> {
        let sandbox = &command.sandbox;
        let mut confinement = Self {
            mark: system.marks.then(Mark::next),
            ..Self::default()
        };
        confinement.enforced.level = sandbox.level;
        if sandbox.level >= Level::Guarded {
            confinement.contain(system);
            confinement.filter(lane);
            confinement.rule(sandbox, system)?;
            if limits.memory.is_some() {
                let reason = "the memory of a whole run can only be limited in a control group";
                confinement.misses("cgroup", reason);
            }
        }
        Ok(confinement)
    }

    fn misses(&mut self, mechanism: &'static str, reason: impl Into<String>) {
        let missing = MissingMechanism::new(mechanism, reason);
        self.enforced.missing.push(missing);
    }

    fn contain(&mut self, system: &System) {
        self.enforced.containment = match (self.mark, system.orphans) {
            (Some(_), Some(_)) => Containment::Proven,
            (Some(_), None) => {
                let reason = "a descendant that keeps forking may slip through";
                self.misses("reaper", reason);
                Containment::Search
            }
            (None, _) => {
                let reason =
                    "this process is confined itself, so that only process groups can be killed";
                self.misses("mark", reason);
                Containment::Group
            }
        };
        if system.watchdog.is_none() {
            self.misses(
                "watchdog",
                "nobody ends what is left if the host itself is killed",
            );
        }
    }

    fn filter(&mut self, lane: &Entered) {
        self.enforced.seccomp = lane.fault.is_none();
        if let Some(reason) = &lane.fault {
            self.misses("seccomp", reason);
        }
    }

    fn rule(&mut self, sandbox: &Sandbox, system: &System) -> io::Result<()> {
        let mut temporary = system.directories.lease(sandbox.run_as)?;
        let make = |directory: &Path| {
            let mut write = sandbox.write.clone();
            write.push(directory.to_owned());
            Ruleset::new(&write, &sandbox.hidden, sandbox.network)
        };
        match temporary.ruleset(sandbox, make) {
            Ok(ruleset) => {
                self.enforced.landlock = ruleset.as_ref().map(|ruleset| ruleset.abi());
                self.ruleset = ruleset;
            }
            Err(missing) => self.enforced.missing.push(missing),
        }
        self.temporary = Some(temporary);
        Ok(())
    }

    /// For a run of which nothing may be left.
    pub(crate) fn ending(&self) -> Option<tree::Ending> {
        let is_confined = self.enforced.level >= Level::Guarded;
        self.mark.filter(|_| is_confined).map(tree::Ending::new)
    }
}
