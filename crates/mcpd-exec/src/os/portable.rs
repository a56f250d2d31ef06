//! Processes as the standard library makes them. They can't be confined here, so whoever wants that is refused.
//!
//! Compiled for other systems with care but not tested there; on Unix systems it is tested on Linux by
//! `--cfg mcpd_portable`.

use std::io;
use std::path::Path;
use std::process::Stdio;

#[cfg(unix)]
#[path = "group.rs"]
mod group;
#[cfg(windows)]
#[path = "job.rs"]
mod group;

use super::{Birth, Remains};
use crate::command::Command;
use crate::enforced::{Enforced, MissingMechanism};
use crate::error::{StartError, diagnosis};
use crate::executor::Config;
use crate::outcome::Usage;
use crate::process::Progress;
use crate::sandbox::{Level, Missing, Network, Sandbox};

pub(crate) use group::ExitWatch;

/// Nothing is shared here.
#[derive(Debug)]
pub(crate) struct System;

impl System {
    pub(crate) fn new(_: &Config) -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn reap_orphans(&self) -> usize {
        0
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "where processes are started on these systems"
    )]
    pub(crate) fn start(
        &self,
        command: &Command,
        program: &Path,
        _: &Entered,
    ) -> Result<Birth, StartError> {
        let enforced = enforced(command, program)?;
        let mut prepared = std::process::Command::new(program);
        let stdin = command
            .stdin
            .as_ref()
            .map_or_else(Stdio::null, |_| Stdio::piped());
        prepared
            .args(&command.args)
            .env_clear()
            .envs(command.environment())
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(directory) = &command.current_dir {
            prepared.current_dir(directory);
        }
        group::configure(&mut prepared);
        let mut child = prepared
            .spawn()
            .map_err(|error| diagnosis::diagnose(error, command, program.to_owned()))?;
        let stdin = child.stdin.take().map(Into::into);
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(StartError::Io {
                program: program.to_owned(),
                source: io::Error::other("no pipes"),
            });
        };
        Ok(Birth {
            child: Child { child, enforced },
            stdin,
            stdout: stdout.into(),
            stderr: stderr.into(),
        })
    }
}

/// What can't be had matters at once if it must be there, or if it keeps something in.
fn enforced(command: &Command, program: &Path) -> Result<Enforced, StartError> {
    let sandbox = &command.sandbox;
    let mut enforced = Enforced {
        level: sandbox.level,
        ..Enforced::default()
    };
    if sandbox.level >= Level::Guarded {
        let reason = "processes can't be confined on this system";
        enforced
            .missing
            .push(MissingMechanism::new("sandbox", reason));
    }
    let is_needed = sandbox.missing == Missing::Refuse
        || sandbox.level == Level::Strict
        || sandbox.network == Network::Off
        || sandbox.run_as.is_some();
    if !enforced.missing.is_empty() && is_needed {
        return Err(StartError::Unenforceable {
            program: program.to_owned(),
            missing: enforced.missing,
        });
    }
    Ok(enforced)
}

/// All threads that start processes are alike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lane;

impl Lane {
    pub(crate) const ALL: [Self; 1] = [Self];

    pub(crate) fn of(_: &Sandbox) -> usize {
        0
    }

    pub(crate) fn enter(self, _: &System) -> Entered {
        Entered
    }
}

#[derive(Debug)]
pub(crate) struct Entered;

/// A process that has not been reaped.
#[derive(Debug)]
pub(crate) struct Child {
    child: std::process::Child,
    enforced: Enforced,
}

impl Child {
    pub(crate) fn terminate(&mut self) {
        group::terminate(&mut self.child);
    }

    pub(crate) fn kill(&mut self) {
        group::kill(&mut self.child);
    }

    pub(crate) fn has_exited(&mut self) -> bool {
        group::has_exited(&mut self.child)
    }

    pub(crate) fn watch(&self) -> io::Result<ExitWatch> {
        ExitWatch::new(&self.child)
    }

    pub(crate) fn is_confined(&self) -> bool {
        self.enforced.level >= Level::Guarded
    }

    pub(crate) fn was_alone(&self) -> Option<bool> {
        None
    }

    pub(crate) fn counts_leftovers(&self) -> bool {
        false
    }

    pub(crate) fn left(&self) -> Option<u32> {
        None
    }

    pub(crate) fn end_round(&mut self) -> Progress {
        if self.is_confined() {
            self.kill();
        }
        Progress::until(self.has_exited())
    }

    pub(crate) fn killed(&self) -> u32 {
        0
    }

    pub(crate) fn reap(&mut self) -> io::Result<Option<Remains>> {
        let status = self.child.try_wait()?;
        Ok(status.map(|status| (status, Usage::default())))
    }

    pub(crate) fn ran_out_of_memory(&self) -> bool {
        false
    }

    pub(crate) fn enforced(&self) -> &Enforced {
        &self.enforced
    }
}

/// There is none.
pub(crate) fn run_watchdog() -> bool {
    false
}

/// There is none.
pub(crate) fn control_group() -> Option<std::path::PathBuf> {
    None
}
