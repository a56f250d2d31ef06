//! Isolation of a run at level `strict`: its own namespaces, and a first process in them that
//! reports how the program ended.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;

use super::mount_plan_cache::{CachedPlan, MountPlanCache};
use super::namespaces;
use super::raw::Namespaces;
use super::raw::init::{self, StatusPipe};
use super::view::Proc;
use crate::command::Command;
use crate::outcome::Usage;

/// Isolation of one run: plans for its start, and the report of its end.
#[derive(Debug)]
pub(crate) struct Isolation {
    flags: i32,
    /// Starting directory of the program. An inherited one would lie below the new mounts.
    directory: PathBuf,
    plan: Arc<CachedPlan>,
    status: StatusPipe,
    /// Other end of the report, until the program has started.
    theirs: Option<OwnedFd>,
}

impl Isolation {
    /// Plans the isolation of `command`, whose program is at `program`.
    ///
    /// # Errors
    ///
    /// No descriptor can be had, or its view of the file system can't be arranged.
    pub(crate) fn plan(
        command: &Command,
        program: &Path,
        plans: &MountPlanCache,
        proc: Proc,
    ) -> io::Result<Self> {
        let directory = match &command.parts.current_dir {
            Some(directory) => std::path::absolute(directory)?,
            None => std::env::current_dir()?,
        };
        let needed = command.needed_paths(program)?;
        let visible: Vec<&Path> = needed.iter().map(PathBuf::as_path).collect();
        let plan = plans.get(&command.parts.sandbox, &visible, proc)?;
        let (status, theirs) = StatusPipe::new()?;
        Ok(Self {
            flags: namespaces::flags(command.parts.sandbox.run_as),
            plan,
            directory,
            status,
            theirs: Some(theirs),
        })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Paths that were to be writable and are not, each as a sentence.
    pub(crate) fn skipped_paths(&self) -> &[String] {
        self.plan.skipped_paths()
    }

    /// Returns the namespaces to create. `None` once the program has started.
    ///
    /// # Errors
    ///
    /// The first process can't be created on this system.
    pub(crate) fn namespaces(&self) -> io::Result<Option<Namespaces<'_>>> {
        if self.theirs.is_none() {
            return Ok(None);
        }
        Ok(Some(Namespaces {
            flags: self.flags,
            steps: self.plan.steps(),
            init: init::image()?,
        }))
    }

    /// Pipe to which the first process reports, until the program has started.
    pub(crate) fn status_end(&self) -> Option<BorrowedFd<'_>> {
        self.theirs.as_ref().map(OwnedFd::as_fd)
    }

    /// Waits until the program has started.
    ///
    /// # Errors
    ///
    /// The program can't be executed.
    pub(crate) fn wait_for_start(&mut self) -> io::Result<()> {
        match self.theirs.take() {
            Some(theirs) => self.status.wait_for_start(theirs),
            None => Ok(()),
        }
    }

    /// Returns how the program ended. `None` if the first process was killed before.
    pub(crate) fn read_ending(self) -> Option<(ExitStatus, Usage)> {
        self.status.read_ending()
    }
}
