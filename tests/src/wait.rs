//! Waiting for an event, with a deadline; never for time to pass.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process_group};

/// Time limit that suffices on a busy machine.
pub(crate) const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until `attempt` returns a value.
///
/// # Panics
///
/// Panics if there is none within a minute.
#[track_caller]
pub fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + EVENT_TIMEOUT;
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        assert!(Instant::now() < deadline, "still waiting: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until no process is left of the process group whose id is in `file`, as a script writes
/// it with `echo $$`: each script leads a group of its own.
///
/// # Panics
///
/// Panics if there is no id in the file, or a process is left after a minute.
#[track_caller]
pub fn assert_group_ends(file: &Path) {
    let text = fs::read_to_string(file).expect("the script has written its number");
    let group = text
        .trim()
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .expect("a number");
    // A killed process stays until its parent, or the system in its place, has reaped it.
    eventually("the end of the script", || {
        test_kill_process_group(group).err()
    });
}
