//! Files of scripts, followed so that a saved one is noticed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::SystemTime;

use mcpd_server::Catalog;

/// Files of all scripts, as they were when they were last looked at. All are known before a call,
/// so that one saved right after it is noticed.
#[derive(Debug, Default)]
pub(super) struct SavedFiles(BTreeMap<PathBuf, FileVersion>);

/// Size and time of the last change of a file.
type FileVersion = (u64, Option<SystemTime>);

impl SavedFiles {
    /// Looks at all files, and returns the paths of the tools whose files have changed. A file
    /// that is absent is just being replaced, and counts as it was.
    pub(super) fn find_changed(&mut self, catalog: &Catalog) -> BTreeSet<String> {
        let mut changed = BTreeSet::new();
        for script in &catalog.scan().scripts {
            for file in BTreeSet::from([&script.file, &script.described_in]) {
                let Ok(now) = file.metadata() else {
                    continue;
                };
                let now = (now.len(), now.modified().ok());
                let before = self.0.insert(file.clone(), now);
                if before.is_some_and(|before| before != now) {
                    changed.insert(script.path.to_string());
                }
            }
        }
        changed
    }
}
