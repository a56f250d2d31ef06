//! Files of which nothing is served, each with the reason: unusable, overlooked or passed over.

use std::path::PathBuf;

use super::super::walk::{self, Reason, Rejected};
use super::reading;

/// A file that can't even be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnusableFile {
    /// Where it is.
    pub file: PathBuf,
    /// Why, as a sentence fragment.
    pub reason: String,
}

/// A file or directory of which nothing is served, and nothing should be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassedOver {
    /// Where it is.
    pub file: PathBuf,
    /// Kind of the reason.
    pub because: Because,
    /// The reason, as a sentence fragment.
    pub reason: String,
}

/// Kinds of reasons to pass over a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Because {
    /// The operator says so, or its name does: hidden files, and what editors leave behind.
    Ignored,
    /// It may not be executed, and describes nothing.
    Unmarked,
    /// It is a script of a Script Kit, may not be executed, and has no schema.
    Schemaless,
    /// It may be executed and is plainly no script; or it is a directory of what others have installed or built.
    NoScript,
    /// Only asking it could tell, and nothing was to be run.
    Unasked,
    /// Only asking it can tell, and it is still being written.
    Unfinished,
    /// It was asked, and what it answered is no description.
    NoTool,
}

impl PassedOver {
    pub(crate) fn new(file: PathBuf, because: Because, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            file,
            because,
            reason,
        }
    }

    /// Returns whether an operator may wonder why it isn't served.
    #[must_use]
    pub fn is_remarkable(&self) -> bool {
        matches!(
            self.because,
            Because::NoScript | Because::Unfinished | Because::NoTool
        )
    }

    /// Returns whether every scan tells of it, and not only a thorough one.
    pub(super) fn is_kept(&self) -> bool {
        self.is_remarkable() || self.because == Because::Schemaless
    }
}

/// Says why `file`, which may not be executed, looks like a script all the same.
pub(super) fn overlooked(file: PathBuf) -> Option<UnusableFile> {
    let reason = match file.read_link() {
        Ok(target) if !file.exists() => {
            format!(
                "it is a link to `{}`, and nothing is there",
                target.display()
            )
        }
        _ if reading::has_shebang(&file) => {
            "it begins with `#!` and is not executable; make it so with `chmod +x`".to_owned()
        }
        _ => return None,
    };
    Some(UnusableFile { file, reason })
}

impl UnusableFile {
    /// A file, and why it can't be asked, as a sentence fragment.
    pub fn new(file: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            reason: reason.into(),
        }
    }
}

impl From<Rejected> for UnusableFile {
    fn from(rejected: Rejected) -> Self {
        let reason = match rejected.reason {
            Reason::LeavesRoot => "it is a link to a place outside of the root".to_owned(),
            Reason::Unnameable(why) => format!("nothing can have its name: {why}"),
            Reason::NotExecutable => "it is not executable; make it so with `chmod +x`".to_owned(),
            Reason::TooDeep => format!(
                "it is a directory {} levels below the root, and nothing in it is looked at",
                walk::MAX_DEPTH
            ),
            Reason::TooManyLinks => format!(
                "it is a directory behind more than {} links, and nothing in it is looked at",
                walk::MAX_LINKS
            ),
            Reason::Orphan(None) => "there is no file that it describes".to_owned(),
            Reason::Orphan(Some(meant)) => {
                format!("there is no file that it describes; should it be called `{meant}`?")
            }
            Reason::SecondSidecar => "another sidecar describes the same file".to_owned(),
            Reason::NoFile => "it should describe a file, and is none itself".to_owned(),
            Reason::Unreadable(why) => why,
        };
        Self {
            file: rejected.file,
            reason,
        }
    }
}
