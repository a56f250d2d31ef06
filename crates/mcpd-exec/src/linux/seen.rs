//! What was behind a path when it was looked at, to tell whether it has changed since.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Which file or directory it is, and when it or its entries changed last, which nobody can forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    device: u64,
    inode: u64,
    changed: Duration,
}

impl Seen {
    pub(crate) fn is_same_file(self, other: Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// So long ago that another change would show: kernels before 6.13 tell the time in ticks.
    pub(crate) fn is_settled(self) -> bool {
        const TICK: Duration = Duration::from_millis(20);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.is_ok_and(|now| now > self.changed + TICK)
    }
}

impl From<Metadata> for Seen {
    fn from(metadata: Metadata) -> Self {
        let (seconds, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            changed: Duration::new(seconds.unsigned_abs(), nanoseconds as u32),
        }
    }
}
