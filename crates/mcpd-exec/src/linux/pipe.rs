//! Pipes of a process.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{Gid, Uid, fchown};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::pipe::{PipeFlags, pipe_with};

use super::raw::SpawnPlan;
use crate::command::Command;
use crate::sandbox::RunAs;

/// Both ends of its three pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    stdin: Option<PipeEnds>,
    stdout: PipeEnds,
    stderr: PipeEnds,
}

#[derive(Debug)]
struct PipeEnds {
    ours: OwnedFd,
    theirs: OwnedFd,
}

impl Pipes {
    /// Makes the pipes of `command`. They belong to its user, who may open them by name in
    /// `/dev`.
    ///
    /// # Errors
    ///
    /// No descriptor can be had.
    pub(crate) fn new(command: &Command) -> io::Result<Self> {
        let pipe = || {
            let (read, write) = pipe()?;
            if let Some(RunAs { user, group }) = command.parts.sandbox.run_as {
                let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
                // Root without CAP_CHOWN can't change the owner; go on without.
                fchown(&read, Some(user), Some(group)).ok();
            }
            io::Result::Ok((read, write))
        };
        let to_process = |(theirs, ours)| PipeEnds { ours, theirs };
        let from_process = |(ours, theirs)| PipeEnds { ours, theirs };
        Ok(Self {
            stdin: (command.parts.stdin.is_some().then(pipe).transpose()?).map(to_process),
            stdout: from_process(pipe()?),
            stderr: from_process(pipe()?),
        })
    }

    /// The descriptors 0, 1 and 2 of the process. `null` replaces a missing input.
    pub(crate) fn ends<'a>(&'a self, null: BorrowedFd<'a>) -> [BorrowedFd<'a>; 3] {
        let stdin = self.stdin.as_ref().map_or(null, |pipe| pipe.theirs.as_fd());
        [
            stdin,
            self.stdout.theirs.as_fd(),
            self.stderr.theirs.as_fd(),
        ]
    }

    /// Returns our ends in the same order, and closes the others.
    pub(crate) fn ours(self) -> (Option<OwnedFd>, OwnedFd, OwnedFd) {
        let stdin = self.stdin.map(|pipe| pipe.ours);
        (stdin, self.stdout.ours, self.stderr.ours)
    }
}

/// Makes a pipe: the reading end and the writing end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((above_reserved(read)?, above_reserved(write)?))
}

/// Moves a descriptor to a number that the child does not use. Only a host without standard
/// streams has such low ones.
pub(crate) fn above_reserved(file: OwnedFd) -> io::Result<OwnedFd> {
    if file.as_raw_fd() > SpawnPlan::LAST_RESERVED_FD {
        return Ok(file);
    }
    Ok(fcntl_dupfd_cloexec(&file, SpawnPlan::LAST_RESERVED_FD + 1)?)
}
