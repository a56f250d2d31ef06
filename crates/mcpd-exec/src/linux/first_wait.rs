//! First wait: the spawner thread waits a few milliseconds for the child, because most scripts end
//! within that time.
//!
//! It waits for the end only. The output fits into the pipes and is read in one go afterwards. An
//! async worker would be woken for each stream and for the end, and would have to register each
//! of them with the kernel first.

use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Child;
use crate::os::Output;

/// Waits between looks at the pipes.
const WAITS: [Duration; 3] = [
    Duration::from_millis(1),
    Duration::from_millis(3),
    Duration::from_millis(6),
];

/// Size of one read. Most processes write less.
const READ_SIZE: usize = 16 * 1024;

/// Upper bound of what a process can have left in a pipe that it has not widened.
const MAX_READ: usize = 64 * 1024;

/// Fill level at which the writer will soon block: half of what a pipe holds.
const FILLING_LEVEL: u64 = 32 * 1024;

impl Child {
    /// Waits for the end of the process for at most `limit`, while it is young, and reads its
    /// output if it ends.
    pub(crate) fn wait_first(
        &self,
        mut outputs: [&mut Output; 2],
        limit: Duration,
        is_wanted: impl Fn() -> bool,
    ) {
        let mut left = limit;
        for pause in WAITS {
            let pause = pause.min(left);
            left -= pause;
            if self.ends_within(pause) {
                for output in &mut outputs {
                    read_all(output);
                }
                return;
            }
            if left.is_zero() || !is_wanted() || outputs.iter().any(|output| is_filling(output)) {
                return;
            }
        }
    }

    fn ends_within(&self, time: Duration) -> bool {
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: time.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&time)), Ok(1..))
    }
}

fn is_filling(output: &Output) -> bool {
    let waiting = output.pipe.as_ref().map(rustix::io::ioctl_fionread);
    matches!(waiting, Some(Ok(FILLING_LEVEL..)))
}

/// Reads what is there, and closes the pipe if every writer has closed it. If leftover processes
/// go on writing, it stops at the bound and leaves the rest to the run.
fn read_all(output: &mut Output) {
    let Some(pipe) = &output.pipe else { return };
    if rustix::io::ioctl_fionbio(pipe, true).is_err() {
        return;
    }
    // On the stack: a buffer on the heap would be larger than most outputs, and often one of the
    // two is empty.
    let mut buffer = [MaybeUninit::uninit(); READ_SIZE];
    loop {
        if output.read.len() > MAX_READ {
            return;
        }
        match rustix::io::read(pipe, &mut buffer) {
            Ok(([], _)) => break,
            Ok((read, _)) => output.read.extend_from_slice(read),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return,
            Err(_) => break,
        }
    }
    output.pipe = None;
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn flood_of_leftover_processes_is_left_to_the_run() {
        let mut output = Output::new(File::open("/dev/zero").unwrap().into());
        read_all(&mut output);
        assert!(output.pipe.is_some());
        assert!((MAX_READ..3 * MAX_READ).contains(&output.read.len()));
    }
}
