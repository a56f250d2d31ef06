//! Windows, compiled with care but not tested: job objects, which whatever a process starts is in too.
//!
//! There is no TERM: whoever is asked to end is killed.

use std::io;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, CreationFlags, JobObject, KillOnDrop};
use windows::Win32::System::Threading::{CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW};

use super::Started;
use crate::enforced::Containment;
use crate::sandbox::Level;

/// All of a job are killed at once; when the last of them is gone is not waited for.
pub(super) const CONTAINMENT: Containment = Containment::Search;

pub(super) const IS_JOB: bool = true;

/// What level `guarded` lacks besides: nothing, as a job ends with whoever holds it.
pub(super) const GAPS: &[(&str, &str)] = &[];

/// The first process of a job.
#[derive(Debug)]
pub(super) struct Leader(Box<dyn ChildWrapper>);

impl Leader {
    /// The process does not run before it is in its job.
    pub(super) fn start(command: Command, level: Level) -> io::Result<Started> {
        let mut wrapped = CommandWrap::from(tokio::process::Command::from(command));
        wrapped
            .wrap(CreationFlags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW))
            .wrap(JobObject);
        if level >= Level::Guarded {
            // The job is killed when its last handle is closed, also because we were killed.
            wrapped.wrap(KillOnDrop);
        }
        let mut child = wrapped.spawn()?;
        let stdin = child.stdin().take();
        let (Some(stdout), Some(stderr)) = (child.stdout().take(), child.stderr().take()) else {
            return Err(io::Error::other("no pipes"));
        };
        Ok(Started {
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

/// Becomes ready from time to time, for somebody to look.
#[derive(Debug)]
pub(crate) struct ExitWatch;

impl ExitWatch {
    /// Resolves when the process may have ended. Cancel safe.
    pub(crate) async fn exited(&mut self) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
