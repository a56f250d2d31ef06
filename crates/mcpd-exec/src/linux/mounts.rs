//! Detection of mount changes. A mount may put another directory behind a path without a change
//! to any directory.

use std::fs::File;
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Returns the number of mount changes that this process has noticed. It is constant without
/// `/proc`.
pub(crate) fn changes() -> u64 {
    static TABLE: Table = Table::new("/proc/self/mountinfo");
    TABLE.changes()
}

/// Mount table of a process.
#[derive(Debug)]
struct Table {
    path: &'static str,
    state: Mutex<TableState>,
}

#[derive(Debug)]
struct TableState {
    /// Opened with the first look.
    file: Option<File>,
    changes: u64,
}

impl Table {
    const fn new(path: &'static str) -> Self {
        let (file, changes) = (None, 0);
        Self {
            path,
            state: Mutex::new(TableState { file, changes }),
        }
    }

    fn changes(&self) -> u64 {
        // The kernel reports each change once.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.file {
            Some(file) => {
                let mut polled = [PollFd::new(file, PollFlags::PRI)];
                if poll(&mut polled, Some(&Timespec::default())).is_ok_and(|found| found > 0) {
                    state.changes += 1;
                }
            }
            // Earlier changes are not reported.
            None => {
                state.file = File::open(self.path).ok();
                state.changes += u64::from(state.file.is_some());
            }
        }
        state.changes
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};

    use super::*;
    use crate::linux::skip::skip;

    /// Mounts a file system in a mount namespace of this thread alone.
    fn changes_around_a_mount() -> nix::Result<[u64; 4]> {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let nothing = None::<&str>;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(nothing, "/", nothing, private, nothing)?;
        let table = Table::new("/proc/thread-self/mountinfo");
        let before = [table.changes(), table.changes()];
        mount(nothing, "/tmp", Some("tmpfs"), MsFlags::empty(), nothing)?;
        Ok([before[0], before[1], table.changes(), table.changes()])
    }

    #[test]
    fn mount_is_a_change() {
        let alone = || changes_around_a_mount();
        match thread::scope(|scope| scope.spawn(alone).join().unwrap()) {
            Ok(changes) => assert_eq!(changes, [1, 1, 2, 2]),
            Err(error) => skip(&format!("nothing can be mounted here: {error}")),
        }
    }
}
