//! Small logs for the tests of this crate.

use std::path::Path;

use tempfile::TempDir;

use crate::files::LogFiles;

/// Creates a log of five records.
pub(crate) fn log() -> (TempDir, LogFiles) {
    let directory = tempfile::tempdir().unwrap();
    let files = log_in(directory.path());
    append(&files, "abcde");
    (directory, files)
}

pub(crate) fn log_in(directory: &Path) -> LogFiles {
    LogFiles {
        path: directory.join("audit.jsonl"),
        max_size: u64::MAX,
        keep: 3.try_into().unwrap(),
        durable: false,
    }
}

pub(crate) fn append(files: &LogFiles, names: &str) {
    let records: Vec<_> = names
        .chars()
        .map(|name| format!(r#"{{"timestamp":"","method":"{name}"}}"#))
        .collect();
    files.append(&records, None).unwrap();
}
