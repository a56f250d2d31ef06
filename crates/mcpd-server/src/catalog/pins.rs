//! Pins: what the operator has approved of each tool, prompt and resource, as the lock file notes
//! it, and the differences of the current entries from it. Knows neither the lock file's place nor
//! how an operator approves.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

mod companions;
mod difference;
pub(in crate::catalog) mod digests;
mod held_back;
mod observe;
mod offers;
mod verify;

pub use difference::{Difference, PinChange};
pub use held_back::HeldBack;
pub(crate) use observe::Observer;
pub(crate) use offers::ApprovedOffers;
pub(crate) use verify::LockCheck;

/// All that an operator has approved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Pins {
    /// Patterns of files that may change, in the syntax of `.gitignore`: data that tools write.
    #[serde(default, skip_serializing_if = "Unlocked::is_empty")]
    pub unlocked: Unlocked,
    /// Tools, prompts and resources, in the order of their roots, paths and kinds.
    #[serde(default, rename = "tool", skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<PinnedEntry>,
    /// Other files below the roots, which scripts may read, in the order of their paths.
    #[serde(default, rename = "file", skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PinnedFile>,
}

/// Files that may change without an approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Unlocked {
    /// Patterns, relative to each root.
    pub files: Vec<String>,
}

impl Unlocked {
    fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// Approved tool, prompt or resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PinnedEntry {
    /// Root, as [`Roots::label`] names it, or the source.
    pub root: String,
    /// Path below the root, which is the name.
    pub path: String,
    /// Kind of the entry.
    pub kind: PinKind,
    /// File of the script, unless it comes from a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PinnedScript>,
    /// Members that clients see. A text is as it is, other values are JSON.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub definition: BTreeMap<String, String>,
}

/// Kind of an approved entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PinKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource of a script, or a static one.
    Resource,
    /// A resource template.
    Template,
    /// The instructions of a root.
    Instructions,
}

impl PinKind {
    /// The word for it, such as `tool`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
            Self::Instructions => "instructions",
        }
    }
}

/// Approved file of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PinnedScript {
    /// Path below the root.
    pub path: String,
    /// SHA-256 of the content, in hexadecimal digits.
    pub sha256: String,
    /// Permissions that count: 644 or 755, with 2 more if all users may write it, and the bits
    /// that change its user or group.
    pub mode: String,
    /// Location of the interpreter, with all links resolved; absent for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// Location of the file, if its path leads through a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// SHA-256 of the sidecar, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<String>,
}

/// Approved file that is no tool, such as a library of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PinnedFile {
    /// Root, as [`Roots::label`] names it.
    pub root: String,
    /// Path below the root.
    pub path: String,
    /// SHA-256 of the content, or the target of a link to a directory.
    pub content: String,
}

/// Names of roots in the lock file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roots {
    /// Directory of the lock file, canonical.
    base: PathBuf,
    /// Roots that were reviewed as a whole, canonical.
    reviewed: BTreeSet<PathBuf>,
}

impl Roots {
    /// Creates names for a lock file in the directory `base`. Scripts below the `reviewed` roots
    /// need no approval of their own. Blocks.
    pub fn new(base: &Path, reviewed: impl IntoIterator<Item = PathBuf>) -> Self {
        let canonical = |path: PathBuf| path.canonicalize().unwrap_or(path);
        Self {
            base: canonical(base.to_owned()),
            reviewed: reviewed.into_iter().map(canonical).collect(),
        }
    }

    /// Returns the name of the root at `root`, canonical: its path from the directory of the lock
    /// file on if it is below that, and its whole path otherwise.
    #[must_use]
    pub fn label(&self, root: &Path) -> String {
        match root.strip_prefix(&self.base) {
            Ok(path) if path.as_os_str().is_empty() => ".".to_owned(),
            Ok(path) => slashed(path),
            Err(_) => slashed(root),
        }
    }

    /// Returns the directory of a name.
    #[must_use]
    pub fn directory(&self, label: &str) -> PathBuf {
        self.base.join(label)
    }

    pub(crate) fn is_reviewed(&self, root: &Path) -> bool {
        self.reviewed.contains(root)
    }
}

/// Returns a path with slashes on every system.
pub(super) fn slashed(path: &Path) -> String {
    let text = path.to_string_lossy();
    match cfg!(windows) {
        true => text.replace('\\', "/"),
        false => text.into_owned(),
    }
}

/// Approved entries and the names of roots in the lock file, for a server of nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Locked {
    /// Approved entries.
    pub pins: Pins,
    /// Names of the roots.
    pub roots: Roots,
}

impl Locked {
    /// Creates the rule to serve only what `pins` has.
    #[must_use]
    pub fn new(pins: Pins, roots: Roots) -> Self {
        Self { pins, roots }
    }
}

/// Identity of an entry.
type Key<'a> = (&'a str, &'a str, PinKind);

impl PinnedEntry {
    fn key(&self) -> Key<'_> {
        (&self.root, &self.path, self.kind)
    }
}

impl Pins {
    /// Returns whether nothing is approved.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.files.is_empty()
    }

    /// Puts everything in its order.
    pub(crate) fn sort(&mut self) {
        self.entries.sort_by(|a, b| a.key().cmp(&b.key()));
        self.files
            .sort_by(|a, b| (&a.root, &a.path).cmp(&(&b.root, &b.path)));
    }
}
