//! The pipes of a process.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{Gid, Uid, fchown};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::pipe::{PipeFlags, pipe_with};

use super::raw::Plan;
use crate::command::Command;
use crate::sandbox::RunAs;

/// Both ends of the three of them.
#[derive(Debug)]
pub(crate) struct Pipes {
    stdin: Option<Pipe>,
    stdout: Pipe,
    stderr: Pipe,
}

#[derive(Debug)]
struct Pipe {
    ours: OwnedFd,
    theirs: OwnedFd,
}

impl Pipes {
    /// Those of `command`. They are its user's, who may open them by their names in `/dev`.
    ///
    /// # Errors
    ///
    /// No descriptor is to be had.
    pub(crate) fn new(command: &Command) -> io::Result<Self> {
        let pipe = || {
            let (read, write) = pipe()?;
            if let Some(RunAs { user, group }) = command.sandbox.run_as {
                let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
                // Root without that right gives what it can.
                fchown(&read, Some(user), Some(group)).ok();
            }
            io::Result::Ok((read, write))
        };
        let to_process = |(theirs, ours)| Pipe { ours, theirs };
        let from_process = |(ours, theirs)| Pipe { ours, theirs };
        Ok(Self {
            stdin: (command.stdin.is_some().then(pipe).transpose()?).map(to_process),
            stdout: from_process(pipe()?),
            stderr: from_process(pipe()?),
        })
    }

    /// What the process gets as its descriptors 0, 1 and 2; `null` if it has no input.
    pub(crate) fn ends<'a>(&'a self, null: BorrowedFd<'a>) -> [BorrowedFd<'a>; 3] {
        let stdin = self.stdin.as_ref().map_or(null, |pipe| pipe.theirs.as_fd());
        [
            stdin,
            self.stdout.theirs.as_fd(),
            self.stderr.theirs.as_fd(),
        ]
    }

    /// Our ends, in the same order. The other ends are closed.
    pub(crate) fn ours(self) -> (Option<OwnedFd>, OwnedFd, OwnedFd) {
        let stdin = self.stdin.map(|pipe| pipe.ours);
        (stdin, self.stdout.ours, self.stderr.ours)
    }
}

/// Both ends of a pipe: to read, and to write.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((above_reserved(read)?, above_reserved(write)?))
}

/// The same file under a number the child has no other use for. Only a host without standard streams gives others.
pub(crate) fn above_reserved(file: OwnedFd) -> io::Result<OwnedFd> {
    if file.as_raw_fd() > Plan::RESERVED {
        return Ok(file);
    }
    Ok(fcntl_dupfd_cloexec(&file, Plan::RESERVED + 1)?)
}
