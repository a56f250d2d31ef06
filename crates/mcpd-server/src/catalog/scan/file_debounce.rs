//! Debounce of each file: nothing is read or probed while it is being written. A file is examined
//! once it has been unchanged for a while and no process has it open for writing; its sidecar
//! counts as a part of it.
//!
//! ```text
//! new or changed ──► changed lately, or open for writing? ──no──► examined
//!                       ▲             │ yes
//!                       └───pause─────┤
//!                                     └──limit──► still written: examined later, not run yet
//! ```

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};

use crate::catalog::walk::Candidate;

/// Pause before a file that is open for writing, or briefly absent, is checked again.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Times of the debounce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Debounce {
    /// Time for which a file must be unchanged.
    pub(super) quiet_time: Duration,
    /// Upper bound of the wait for that, and for the end of writing.
    pub(super) limit: Duration,
}

impl Debounce {
    /// Times of a first scan, for which commands and clients wait.
    pub(super) const FIRST_SCAN: Self = Self {
        quiet_time: Duration::from_millis(200),
        limit: Duration::from_secs(2),
    };
    /// Times of later scans. A file that changes between scans is being edited, and often saved
    /// again soon: five saves in two seconds cause one probe.
    pub(super) const EDITS: Self = Self {
        quiet_time: Duration::from_millis(600),
        limit: Duration::from_secs(10),
    };
}

/// Reason to wait before a file is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileActivity {
    /// It has changed lately; holds the rest of the quiet time.
    Changed(Duration),
    /// A process has it open for writing.
    Open,
}

impl FileActivity {
    /// Returns the reason to wait before `candidate` is examined, if there is one. Blocks.
    pub(super) fn of(candidate: &Candidate, quiet_time: Duration) -> Option<Self> {
        let sidecar = candidate.sidecar.as_ref().map(|sidecar| &sidecar.file);
        let mut files = std::iter::once(&candidate.file).chain(sidecar);
        files.find_map(|file| Self::of_file(file, quiet_time))
    }

    fn of_file(file: &Path, quiet_time: Duration) -> Option<Self> {
        let now = SystemTime::now();
        let Ok(changed) = file.metadata().and_then(|metadata| last_change(&metadata)) else {
            // Editors replace the file. If it stays away, another scan notices that.
            return Some(Self::Changed(POLL_INTERVAL));
        };
        // A time in the future comes from the clock of another machine.
        let distance = now.duration_since(changed);
        let distance = distance.unwrap_or_else(|ahead| ahead.duration());
        if distance < quiet_time {
            return Some(Self::Changed(quiet_time.saturating_sub(distance)));
        }
        mcpd_exec::is_open_for_writing(file).then_some(Self::Open)
    }

    /// Returns why a file is not probed, as a sentence fragment.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Changed(_) => "the file keeps changing; `--help` runs when it is stable",
            Self::Open => {
                "a process has the file open for writing; `--help` runs when it is closed"
            }
        }
    }

    fn pause(self) -> Duration {
        match self {
            Self::Changed(rest) => rest,
            Self::Open => POLL_INTERVAL,
        }
    }
}

/// Waits until `candidate` can be examined.
///
/// # Errors
///
/// Returns the activity if it has lasted for the limit since `started_at`.
pub(super) async fn wait_for_quiet(
    candidate: &Candidate,
    debounce: Debounce,
    started_at: Instant,
) -> Result<(), FileActivity> {
    loop {
        let file = candidate.clone();
        let check = move || FileActivity::of(&file, debounce.quiet_time);
        // A cancelled task means that the runtime is about to end.
        let activity = tokio::task::spawn_blocking(check).await.ok().flatten();
        match activity {
            None => return Ok(()),
            Some(activity) if started_at.elapsed() >= debounce.limit => return Err(activity),
            Some(activity) => sleep(activity.pause()).await,
        }
    }
}

/// Returns when a file was last written, renamed or given another mode. Unlike the modification
/// time, no tool can set this time.
#[cfg(unix)]
fn last_change(metadata: &Metadata) -> io::Result<SystemTime> {
    use std::os::unix::fs::MetadataExt as _;
    let seconds = u64::try_from(metadata.ctime()).unwrap_or_default();
    let nanoseconds = u32::try_from(metadata.ctime_nsec()).unwrap_or_default();
    Ok(SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds))
}

#[cfg(not(unix))]
fn last_change(metadata: &Metadata) -> io::Result<SystemTime> {
    metadata.modified()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::catalog::walk::walk;

    fn candidate(root: &Path) -> Candidate {
        let file = root.join("script");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let mut scripts = walk(root, None).scripts;
        scripts.pop_first().unwrap().1
    }

    #[test]
    fn file_and_sidecar_must_be_quiet() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("script.mcpd.toml"), "").unwrap();
        let candidate = candidate(root.path());
        assert_eq!(FileActivity::of(&candidate, Duration::ZERO), None);
        let hour = Duration::from_secs(3600);
        let Some(FileActivity::Changed(rest)) = FileActivity::of(&candidate, hour) else {
            panic!("it has just been written");
        };
        assert!(rest > hour / 2 && rest <= hour);
        fs::remove_file(root.path().join("script.mcpd.toml")).unwrap();
        let gone = FileActivity::of(&candidate, Duration::ZERO);
        assert_eq!(gone, Some(FileActivity::Changed(POLL_INTERVAL)));
    }

    #[cfg(all(target_os = "linux", not(mcpd_portable)))]
    #[tokio::test]
    async fn open_writer_delays_the_scan_until_the_limit() {
        let root = tempfile::tempdir().unwrap();
        let candidate = candidate(root.path());
        let writer = File::options().append(true).open(&candidate.file).unwrap();
        let debounce = Debounce {
            quiet_time: Duration::ZERO,
            limit: Duration::from_millis(100),
        };
        let started_at = Instant::now();
        let waited = wait_for_quiet(&candidate, debounce, started_at).await;
        assert_eq!(waited, Err(FileActivity::Open));
        assert!(started_at.elapsed() >= debounce.limit);
        drop(writer);
        let waited = wait_for_quiet(&candidate, debounce, Instant::now()).await;
        assert_eq!(waited, Ok(()));
    }
}
