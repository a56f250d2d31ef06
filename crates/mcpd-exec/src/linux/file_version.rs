//! File version: device, inode and change time, to tell whether a path still leads to the same,
//! unchanged file.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// Identity of a file or directory, and the time of its last change, which no process can forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileVersion {
    device: u64,
    inode: u64,
    changed: Duration,
}

impl FileVersion {
    pub(crate) fn is_same_file(self, other: Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Returns whether it changed long enough before `now` that any later change shows in the
    /// time: kernels and file systems keep time in ticks.
    pub(crate) fn is_settled(self, now: SystemTime) -> bool {
        const CLOCK_TICK: Duration = Duration::from_millis(20);
        /// Longest tick: that of file systems without fractions of a second.
        const WHOLE_SECOND_TICK: Duration = Duration::from_secs(2);
        let tick = match self.changed.subsec_nanos() {
            0 => WHOLE_SECOND_TICK,
            _ => CLOCK_TICK,
        };
        let now = now.duration_since(UNIX_EPOCH);
        now.is_ok_and(|now| now > self.changed + tick)
    }
}

impl From<Stat> for FileVersion {
    fn from(stat: Stat) -> Self {
        let nanoseconds = stat.st_ctime_nsec as u32;
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            changed: Duration::new(stat.st_ctime.unsigned_abs(), nanoseconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_settled_after_a_clock_tick() {
        let is_settled = |changed: Duration, after: Duration| {
            let (device, inode) = (1, 2);
            let version = FileVersion {
                device,
                inode,
                changed,
            };
            version.is_settled(UNIX_EPOCH + changed + after)
        };
        let (exact, whole) = (Duration::from_millis(1_500), Duration::from_secs(1));
        let millis = Duration::from_millis;
        assert!(!is_settled(exact, millis(10)) && is_settled(exact, millis(30)));
        assert!(!is_settled(whole, millis(1_900)) && is_settled(whole, millis(2_100)));
    }
}
