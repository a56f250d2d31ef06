//! Windows, compiled with care but not tested.
//!
//! There is no job object yet: only the process itself is killed, and at once, since there is no TERM. What it started
//! lives on.

use std::io;
use std::os::windows::process::CommandExt as _;
use std::process::{Child, Command};
use std::time::Duration;

pub(crate) fn configure(command: &mut Command) {
    const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
    const CREATE_NO_WINDOW: u32 = 0x0800_0000;
    command.creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW);
}

pub(crate) fn terminate(leader: &mut Child) {
    kill(leader);
}

pub(crate) fn kill(leader: &mut Child) {
    // Fails if it has ended already.
    leader.kill().ok();
}

pub(crate) fn has_exited(leader: &mut Child) -> bool {
    !matches!(leader.try_wait(), Ok(None))
}

/// Becomes ready from time to time, for somebody to look.
#[derive(Debug)]
pub(crate) struct ExitWatch;

impl ExitWatch {
    pub(crate) fn new(_child: &Child) -> io::Result<Self> {
        Ok(Self)
    }

    /// Resolves when the process may have ended. Cancel safe.
    pub(crate) async fn exited(&mut self) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
