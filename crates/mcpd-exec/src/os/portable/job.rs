//! Windows, compiled with care but not tested: job objects, which also contain everything that a
//! process starts.
//!
//! There is no TERM: a process that is asked to end is killed.

use std::io;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, CreationFlags, JobObject, KillOnDrop};
use windows::Win32::System::Threading::{CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW};

use super::StartedLeader;
use crate::enforcement::Containment;
use crate::sandbox::Level;

/// The whole job is killed at once, but the end of its last process is not awaited.
pub(super) const CONTAINMENT: Containment = Containment::Search;

pub(super) const IS_JOB: bool = true;

/// Mechanisms that level `guarded` lacks: none, as a job ends with the owner of its handle.
pub(super) const GAPS: &[(&str, &str)] = &[];

/// First process of a job.
#[derive(Debug)]
pub(super) struct Leader(Box<dyn ChildWrapper>);

impl Leader {
    /// Starts a process. It does not run before it is in its job.
    pub(super) fn start(command: Command, level: Level) -> io::Result<StartedLeader> {
        let mut wrapped = CommandWrap::from(tokio::process::Command::from(command));
        wrapped
            .wrap(CreationFlags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW))
            .wrap(JobObject);
        if level >= Level::Guarded {
            // Closing the last handle kills the job, also if this process is killed.
            wrapped.wrap(KillOnDrop);
        }
        let mut child = wrapped.spawn()?;
        let stdin = child.stdin().take();
        let (Some(stdout), Some(stderr)) = (child.stdout().take(), child.stderr().take()) else {
            return Err(io::Error::other("no pipes"));
        };
        Ok(StartedLeader {
            stdin: stdin.map(|stdin| stdin.into_owned_handle()).transpose()?,
            stdout: stdout.into_owned_handle()?,
            stderr: stderr.into_owned_handle()?,
            leader: Self(child),
        })
    }

    pub(super) fn terminate(&mut self) {
        self.kill();
    }

    /// Kills the whole job.
    pub(super) fn kill(&mut self) {
        // Fails if all of it has ended already.
        self.0.start_kill().ok();
    }

    pub(super) fn has_exited(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    pub(super) fn watch(&self) -> io::Result<ExitWatch> {
        Ok(ExitWatch)
    }

    /// Takes its status. `None` if it has not ended.
    pub(super) fn reap(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }
}

/// Timer for polling the end of a process.
#[derive(Debug)]
pub(crate) struct ExitWatch;

impl ExitWatch {
    /// Resolves when the process may have ended. Cancel safe.
    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
