//! Portable implementation: the standard library creates processes, confined by Seatbelt on
//! macOS, and contained by a job object on Windows. What the system lacks is reported, or
//! refused.
//!
//! It is compiled for other systems with care but not tested there. Its Unix part is tested on
//! Linux with `--cfg mcpd_portable`, without any confinement.

mod confinement;
#[cfg_attr(windows, path = "portable/job.rs")]
mod group;
#[cfg(not(target_os = "macos"))]
mod unconfined;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use self::confinement::Confinement;
use self::group::Leader;
#[cfg(not(target_os = "macos"))]
use self::unconfined as seatbelt;
#[cfg(target_os = "macos")]
use super::seatbelt;
use super::{ExitReport, Output, Pipe, SpawnedChild};
use crate::command::Command;
use crate::enforcement::Enforcement;
use crate::error::{StartError, diagnosis};
use crate::executor::Config;
use crate::process::Progress;
use crate::sandbox::{Level, Sandbox};
use crate::warm::Warmth;

pub(crate) use self::group::ExitWatch;

/// State shared by all processes of one executor.
#[derive(Debug)]
pub(crate) struct System {
    /// Directory for the temporary directories of runs.
    temporary: PathBuf,
}

impl System {
    pub(crate) fn new(config: &Config) -> io::Result<Self> {
        Ok(Self {
            temporary: config.temporary(),
        })
    }

    /// Does nothing: no start is warm here.
    #[expect(clippy::unused_self, reason = "it has a part on Linux")]
    pub(crate) fn prepare_warm_starts(&self) {}

    pub(crate) fn reap_orphans(&self) -> usize {
        0
    }

    pub(crate) fn reap_interval(&self) -> Option<Duration> {
        None
    }

    /// Starts `command`, whose program is at `program`.
    ///
    /// # Errors
    ///
    /// Nothing was started.
    pub(crate) fn start(
        &self,
        command: &Command,
        program: &Path,
        _: &InstalledClass,
    ) -> Result<SpawnedChild, StartError> {
        let confinement = Confinement::prepare(command, program, &self.temporary)?;
        let mut starter = confinement.starter(command, program)?;
        let stdin = command
            .parts
            .stdin
            .as_ref()
            .map_or_else(Stdio::null, |_| Stdio::piped());
        starter
            .args(&command.parts.args)
            .env_clear()
            .envs(command.base_variables().iter());
        for (name, change) in &command.parts.changes {
            match change {
                Some(value) => starter.env(name, value),
                None => starter.env_remove(name),
            };
        }
        starter
            .envs(confinement.environment(command))
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(directory) = confinement.directory(command) {
            starter.current_dir(directory);
        }
        let started = Leader::start(starter, command.parts.sandbox.level)
            .map_err(|error| diagnosis::diagnose(error, command, program.to_owned()))?;
        Ok(SpawnedChild {
            child: Child {
                leader: started.leader,
                confinement,
            },
            proxy: None,
            warmth: (command.parts.warm.as_ref())
                .map(|_| Warmth::Cold("this system has no warm starts".to_owned())),
            stdin: started.stdin,
            stdout: started.stdout,
            stderr: started.stderr,
        })
    }
}

/// New process, with our ends of its pipes.
struct StartedLeader {
    leader: Leader,
    stdin: Option<Pipe>,
    stdout: Pipe,
    stderr: Pipe,
}

/// Class of a spawner thread. All are alike here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpawnerClass;

impl SpawnerClass {
    pub(crate) const ALL: [Self; 1] = [Self];

    pub(crate) fn index_for(_: &Sandbox) -> usize {
        0
    }

    pub(crate) fn install(self, _: &System) -> InstalledClass {
        InstalledClass
    }
}

#[derive(Debug)]
pub(crate) struct InstalledClass;

/// Process that has not been reaped.
#[derive(Debug)]
pub(crate) struct Child {
    leader: Leader,
    /// Owner of its temporary directory, which is removed after it.
    confinement: Confinement,
}

impl Child {
    pub(crate) fn terminate(&mut self) {
        self.leader.terminate();
    }

    pub(crate) fn kill(&mut self) {
        self.leader.kill();
    }

    pub(crate) fn has_exited(&mut self) -> bool {
        self.leader.has_exited()
    }

    /// Returns `None`: the status is known only after reaping.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        None
    }

    /// Does not wait: the async workers do.
    pub(crate) fn wait_first(&self, _: [&mut Output; 2], _: Duration, _: impl Fn() -> bool) {}

    pub(crate) fn watch(&self) -> io::Result<ExitWatch> {
        self.leader.watch()
    }

    pub(crate) fn is_confined(&self) -> bool {
        self.enforcement().level >= Level::Guarded
    }

    pub(crate) fn is_alone(&self) -> Option<bool> {
        None
    }

    pub(crate) fn counts_leftovers(&self) -> bool {
        false
    }

    pub(crate) fn leftover_count(&self) -> Option<u32> {
        None
    }

    pub(crate) fn end_round(&mut self) -> Progress {
        if self.is_confined() {
            self.kill();
        }
        Progress::until(self.has_exited())
    }

    pub(crate) fn killed_count(&self) -> u32 {
        0
    }

    pub(crate) fn reap(&mut self) -> io::Result<Option<ExitReport>> {
        let status = self.leader.reap()?;
        Ok(status.map(|status| (status, Default::default())))
    }

    pub(crate) fn ran_out_of_memory(&self) -> bool {
        false
    }

    pub(crate) fn enforcement(&self) -> &Enforcement {
        self.confinement.enforcement()
    }
}

/// Returns false: there is no watchdog.
pub(crate) fn run_watchdog() -> bool {
    false
}

/// Allocator of the system.
pub use std::alloc::System as Allocator;

/// Does nothing: no allocator here needs it.
pub(crate) fn prepare_memory() {}

/// Does nothing, likewise.
pub(crate) fn release_memory() {}

/// Does nothing: it would take unsafe code.
pub(crate) fn prepare_signals() {}

/// Returns false: without leases it can't be known.
pub(crate) fn is_open_for_writing(_: &Path) -> bool {
    false
}

/// Returns `None`: there are no control groups.
pub(crate) fn control_group() -> Option<PathBuf> {
    None
}
