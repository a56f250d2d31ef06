//! Whether anything has been mounted or unmounted. That may put another directory behind a path without a change to any
//! directory.

use std::fs::File;
use std::sync::{LazyLock, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How often this process has found what is mounted changed. Always the same where there is no `/proc`.
pub(crate) fn changes() -> u64 {
    static TABLE: LazyLock<Table> = LazyLock::new(|| Table::open("/proc/self/mountinfo"));
    TABLE.changes()
}

/// What is mounted, as one process sees it.
#[derive(Debug)]
struct Table {
    file: Option<File>,
    changes: Mutex<u64>,
}

impl Table {
    fn open(path: &str) -> Self {
        Self {
            file: File::open(path).ok(),
            changes: Mutex::default(),
        }
    }

    fn changes(&self) -> u64 {
        // The kernel tells of a change once.
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &self.file {
            let mut polled = [PollFd::new(file, PollFlags::PRI)];
            if poll(&mut polled, Some(&Timespec::default())).is_ok_and(|found| found > 0) {
                *changes += 1;
            }
        }
        *changes
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};

    use super::*;
    use crate::linux::skip::skip;

    /// Mounts something in a namespace that this thread is alone in.
    fn changes_around_a_mount() -> nix::Result<[u64; 4]> {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let nothing = None::<&str>;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(nothing, "/", nothing, private, nothing)?;
        let table = Table::open("/proc/thread-self/mountinfo");
        let before = [table.changes(), table.changes()];
        mount(nothing, "/tmp", Some("tmpfs"), MsFlags::empty(), nothing)?;
        Ok([before[0], before[1], table.changes(), table.changes()])
    }

    #[test]
    fn a_mount_is_a_change() {
        let alone = || changes_around_a_mount();
        match thread::scope(|scope| scope.spawn(alone).join().unwrap()) {
            Ok(changes) => assert_eq!(changes, [0, 0, 1, 1]),
            Err(error) => skip(&format!("nothing can be mounted here: {error}")),
        }
    }
}
