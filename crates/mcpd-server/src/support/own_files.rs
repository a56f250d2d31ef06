//! Private files of the server, and its rights to them. A script at `guarded` runs as the same
//! user and may change modes: a right that it takes from the server is detected after the run,
//! restored, and recorded. Checks are coalesced: one serves all runs that have ended since the last
//! one began.
//!
//! The contents and locations of the files are safe: the script may not write there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use mcpd_audit::access::{Regained, own_mode, regain};

use crate::support::sync::lock;

/// Mode bits of the owner.
const OWNER: u32 = 0o700;

/// Minimum time between the beginnings of two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Files and the directories above them, each with the rights that the server had when it was
/// added.
#[derive(Debug, Default)]
pub(crate) struct OwnFiles {
    /// By path, so that a directory comes before its contents.
    rights: Mutex<BTreeMap<PathBuf, u32>>,
    checks: Mutex<Checks>,
}

#[derive(Debug, Default)]
struct Checks {
    /// Beginning of the last one.
    last: Option<Instant>,
    /// One more is to come.
    is_due: bool,
}

impl OwnFiles {
    /// Adds the file or directory at `path`, with the directories above it. Blocks.
    pub(crate) fn add(&self, path: &Path) {
        let mut rights = lock(&self.rights);
        for path in path.ancestors() {
            if let Some(mode) = own_mode(path) {
                rights.entry(path.to_owned()).or_insert(mode & OWNER);
            }
        }
    }

    /// Makes a check due after the end of a run. Returns the time until the caller has to
    /// [`regain`](Self::regain), or `None` if an earlier caller has yet to do so.
    pub(crate) fn request_check(&self) -> Option<Duration> {
        let mut checks = lock(&self.checks);
        if std::mem::replace(&mut checks.is_due, true) {
            return None;
        }
        let elapsed = checks.last.map(|last| last.elapsed());
        Some(elapsed.map_or(Duration::ZERO, |elapsed| {
            CHECK_INTERVAL.saturating_sub(elapsed)
        }))
    }

    /// Restores lost rights. Blocks.
    pub(crate) fn regain(&self) -> Vec<Regained> {
        // A run that ends from here on needs another check.
        *lock(&self.checks) = Checks {
            last: Some(Instant::now()),
            is_due: false,
        };
        let rights = lock(&self.rights);
        let regained = rights
            .iter()
            .filter_map(|(path, rights)| regain(path, *rights));
        regained.collect()
    }
}

/// Always equal: the set of files follows from the rest of the policy.
impl PartialEq for OwnFiles {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
        fs::set_permissions(path, Permissions::from_mode(mode))
    }

    #[test]
    fn lost_rights_are_regained_from_the_outermost_directory_on() {
        let place = tempfile::tempdir().unwrap();
        let state = place.path().join("state");
        let (log, key) = (state.join("log"), state.join("key"));
        fs::create_dir(&state).unwrap();
        for (file, mode) in [(&log, 0o640), (&key, 0o400)] {
            fs::write(file, "").unwrap();
            set_mode(file, mode).unwrap();
        }
        let files = OwnFiles::default();
        files.add(&log);
        files.add(&key);
        assert_eq!(files.regain(), []);

        for path in [&log, &key, &state] {
            set_mode(path, 0).unwrap();
        }
        let regained: Vec<_> = files.regain().into_iter().map(|one| one.path).collect();
        assert_eq!(regained, [state, key.clone(), log.clone()]);
        assert_eq!(
            [&log, &key].map(|file| own_mode(file).unwrap()),
            [0o600, 0o400]
        );
        assert_eq!(files.regain(), []);
    }

    #[test]
    fn checks_are_coalesced_and_one_follows_the_last_request() {
        let files = OwnFiles::default();
        assert_eq!(files.request_check(), Some(Duration::ZERO));
        assert_eq!(files.request_check(), None);
        files.regain();
        let wait = files.request_check().unwrap();
        assert!(wait <= CHECK_INTERVAL, "{wait:?}");
        assert_eq!(files.request_check(), None);
    }

    #[test]
    fn rights_of_other_users_are_unchanged() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("log");
        fs::write(&log, "").unwrap();
        set_mode(&log, 0o600).unwrap();
        let files = OwnFiles::default();
        files.add(&log);
        set_mode(&log, 0o644).unwrap();
        assert_eq!(files.regain(), []);
    }
}
