//! Private files of the server, and its rights to them. A script at `guarded` runs as the same
//! user and may change modes: a right that it takes from the server is detected after the run,
//! restored, and recorded.
//!
//! The contents and locations of the files are safe: the script may not write there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use mcpd_audit::access::{Regained, own_mode, regain};

use crate::support::sync::lock;

/// Mode bits of the owner.
const OWNER: u32 = 0o700;

/// Files and the directories above them, each with the rights that the server had when it was
/// added.
#[derive(Debug, Default)]
pub(crate) struct OwnFiles {
    /// By path, so that a directory comes before its contents.
    rights: Mutex<BTreeMap<PathBuf, u32>>,
    is_checking: AtomicBool,
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

    /// Restores lost rights. Blocks; does nothing if another thread is doing so.
    pub(crate) fn regain(&self) -> Vec<Regained> {
        if self.is_checking.swap(true, Ordering::Acquire) {
            return Vec::new();
        }
        let rights = lock(&self.rights).clone();
        let regained = rights
            .iter()
            .filter_map(|(path, rights)| regain(path, *rights));
        let regained = regained.collect();
        self.is_checking.store(false, Ordering::Release);
        regained
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
