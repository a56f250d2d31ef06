//! The first milliseconds of a process, in which most end.
//!
//! The thread that started it waits for its end and for nothing else: what it writes fits into its pipes, and is read in
//! one go afterwards. An async worker would be woken for each stream and for the end, and would have to have the kernel
//! watch each of them before.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Child;
use crate::os::Output;

/// How long the end is waited for before one looks at the pipes, and then again.
const LOOKS: [Duration; 3] = [
    Duration::from_millis(1),
    Duration::from_millis(3),
    Duration::from_millis(6),
];

/// Most processes write less.
const READ: usize = 4 * 1024;

/// More than a process can have left behind in a pipe, which it has not widened.
const MOST: usize = 64 * 1024;

/// As much in a pipe, and its writer will soon have to wait: half of what pipes hold.
const MUCH: u64 = 32 * 1024;

impl Child {
    /// Waits for the end of the process while it is fresh, for so long at most, and reads its output if it comes.
    pub(crate) fn attend(
        &self,
        mut outputs: [&mut Output; 2],
        most: Duration,
        is_wanted: impl Fn() -> bool,
    ) {
        let mut left = most;
        for pause in LOOKS {
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
    matches!(waiting, Some(Ok(MUCH..)))
}

/// Reads what is there, and closes the pipe if nobody can write any more. Of those who go on writing, it is somebody else's
/// matter how much they may.
fn read_all(output: &mut Output) {
    let Some(pipe) = &output.pipe else { return };
    if rustix::io::ioctl_fionbio(pipe, true).is_err() {
        return;
    }
    loop {
        if output.read.len() > MOST {
            return;
        }
        output.read.reserve(READ);
        match rustix::io::read(pipe, rustix::buffer::spare_capacity(&mut output.read)) {
            Ok(1..) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return,
            Ok(0) | Err(_) => break,
        }
    }
    output.pipe = None;
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_flood_of_those_left_behind_is_left_to_others() {
        let mut output = Output::new(File::open("/dev/zero").unwrap().into());
        read_all(&mut output);
        assert!(output.pipe.is_some());
        assert!((MOST..3 * MOST).contains(&output.read.len()));
    }
}
