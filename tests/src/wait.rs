//! Waiting for something to happen, with a deadline; never for time to pass.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process_group};

/// Long enough for a machine that is busy with everything else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `attempt` gives something.
///
/// # Panics
///
/// When it has not after a minute.
#[track_caller]
pub fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(result) = attempt() {
            return result;
        }
        assert!(Instant::now() < deadline, "still waiting: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until nothing is left of the process group whose number is in `file`, as a script writes it with
/// `echo $$`: each script leads a group of its own.
///
/// # Panics
///
/// When there is no number in the file, or still something left after a minute.
#[track_caller]
pub fn assert_group_ends(file: &Path) {
    let text = fs::read_to_string(file).expect("the script has written its number");
    let group = text
        .trim()
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .expect("a number");
    // A process that is killed stays until its parent, or the system in its place, has noticed.
    eventually("the end of the script", || {
        test_kill_process_group(group).err()
    });
}
