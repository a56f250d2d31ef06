//! Files that are not served, each with the reason: unusable, overlooked or passed over.

use std::path::PathBuf;

use super::super::walk::{self, Reason, Rejected};
use super::{join_blocking, reading};

/// Suffix of a file with test cases, after the name of the tested file.
pub const TEST_CASES: &str = ".test.toml";

/// File that should be served and cannot even be probed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnusableFile {
    /// Location in the file system.
    pub file: PathBuf,
    /// Reason, as a sentence fragment.
    pub reason: String,
    /// It only lacks the permission to execute it.
    pub lacks_permission: bool,
}

/// File or directory that is not served, and should not be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassedOver {
    /// Location in the file system.
    pub file: PathBuf,
    /// Kind of the reason.
    pub kind: PassOverKind,
    /// Reason, as a sentence fragment.
    pub reason: String,
}

/// Kinds of reasons to pass over a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PassOverKind {
    /// Excluded by the operator or by its name: hidden files, and backups of editors.
    Ignored,
    /// Test cases of the file beside it.
    TestCases,
    /// Neither executable nor described.
    Unmarked,
    /// A script of a Script Kit that is not executable and has no schema.
    Schemaless,
    /// Executable but evidently no script; or a directory that a program has installed or built.
    NotAScript,
    /// Needs a probe, and the scan runs nothing.
    NotProbed,
    /// Needs a probe, and is still being written.
    StillWritten,
    /// Was probed, and its output is no description.
    NotATool,
}

impl PassedOver {
    pub(crate) fn new(file: PathBuf, kind: PassOverKind, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { file, kind, reason }
    }

    /// Returns whether an operator may wonder why it is not served.
    #[must_use]
    pub fn is_remarkable(&self) -> bool {
        matches!(
            self.kind,
            PassOverKind::NotAScript | PassOverKind::StillWritten | PassOverKind::NotATool
        )
    }

    /// Returns whether every scan reports it, and not only a thorough one.
    pub(super) fn is_always_reported(&self) -> bool {
        let is_for_programs = matches!(
            self.kind,
            PassOverKind::Schemaless | PassOverKind::TestCases
        );
        self.is_remarkable() || is_for_programs
    }
}

/// Returns the entries of `files` that look like scripts, read on the thread pool.
pub(super) async fn overlooked_files(files: Vec<PathBuf>) -> Vec<UnusableFile> {
    let work = move || files.into_iter().filter_map(overlooked_file).collect();
    join_blocking(tokio::task::spawn_blocking(work)).await
}

/// Returns why `file`, which is not executable, looks like a script all the same.
fn overlooked_file(file: PathBuf) -> Option<UnusableFile> {
    let mut lacks_permission = false;
    let reason = match file.read_link() {
        Ok(target) if !file.exists() => {
            format!("broken link to `{}`", target.display())
        }
        _ if reading::has_shebang(&file) => {
            lacks_permission = true;
            "it begins with `#!` but is not executable; run `chmod +x` on it".to_owned()
        }
        _ => return None,
    };
    Some(UnusableFile {
        file,
        reason,
        lacks_permission,
    })
}

impl UnusableFile {
    /// Creates an entry for a file, with the reason as a sentence fragment.
    pub fn new(file: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            reason: reason.into(),
            lacks_permission: false,
        }
    }
}

impl From<Rejected> for UnusableFile {
    fn from(rejected: Rejected) -> Self {
        let lacks_permission = matches!(rejected.reason, Reason::NotExecutable);
        let reason = match rejected.reason {
            Reason::LeavesRoot => "link to a target outside of the root".to_owned(),
            Reason::Unnameable(why) => format!("the name cannot be served: {why}"),
            Reason::NotExecutable => "not executable; run `chmod +x` on it".to_owned(),
            Reason::TooDeep => format!(
                "directory {} levels below the root; its contents are ignored",
                walk::MAX_DEPTH
            ),
            Reason::TooManyLinks => format!(
                "directory behind more than {} links; its contents are ignored",
                walk::MAX_LINKS
            ),
            Reason::Orphan(None) => "the file that it describes does not exist".to_owned(),
            Reason::Orphan(Some(meant)) => {
                format!(
                    "the file that it describes does not exist; did you mean the name `{meant}`?"
                )
            }
            Reason::SecondSidecar => "another sidecar describes the same file".to_owned(),
            Reason::AppWithoutScript(None) => {
                "the script whose app it is does not exist".to_owned()
            }
            Reason::AppWithoutScript(Some(meant)) => format!(
                "the script whose app it is does not exist; did you mean the name `{meant}`?"
            ),
            Reason::FaultyApp(why) => why,
            Reason::NoFile => "a sidecar must be a regular file".to_owned(),
            Reason::Unreadable(why) => why,
        };
        Self {
            file: rejected.file,
            reason,
            lacks_permission,
        }
    }
}
