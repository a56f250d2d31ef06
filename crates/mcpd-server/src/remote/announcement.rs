//! Announcement of a script by a worker: what it said of itself, and the version that said it.

use std::sync::Arc;

use bytes::Bytes;
use mcpd_exec::Level;
use serde::{Deserialize, Serialize};

use super::Traits;

/// Script that a worker has. Its description is not serialized, because it is bytes: a transport
/// sends [`Description::parts`] beside the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Announcement {
    /// Path of the script.
    pub path: String,
    /// SHA-256 of its file and its sidecar, after `sha256:`.
    pub digest: Arc<str>,
    /// Role of the script.
    pub role: Role,
    /// Level that its runs are confined at.
    pub level: Level,
    /// What it says of its runs.
    #[serde(default)]
    pub traits: Traits,
    /// What it said of itself.
    pub description: Description,
}

impl Announcement {
    pub(crate) fn new(
        path: String,
        digest: Arc<str>,
        role: Role,
        level: Level,
        traits: Traits,
        description: Description,
    ) -> Self {
        Self {
            path,
            digest,
            role,
            level,
            traits,
            description,
        }
    }
}

/// Role of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Role {
    /// Tool.
    Tool,
    /// Prompt.
    Prompt,
    /// Resource.
    Resource,
    /// Resources with URIs of one form.
    Template,
}

/// What a script said of itself: the output of `--help`, or the file that describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Description {
    /// Name of the dialect of that file, and its path below the root; `None` for `--help`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<(String, String)>,
    /// Standard output of `--help`.
    #[serde(skip)]
    pub stdout: Bytes,
    /// Standard error of `--help`.
    #[serde(skip)]
    pub stderr: Bytes,
    /// Text of the file.
    #[serde(skip)]
    pub source: Bytes,
}

impl Description {
    pub(crate) fn of_help(stdout: Bytes, stderr: Bytes) -> Self {
        Self {
            stdout,
            stderr,
            ..Self::default()
        }
    }

    pub(crate) fn of_file(dialect: String, path: String, source: Bytes) -> Self {
        Self {
            file: Some((dialect, path)),
            source,
            ..Self::default()
        }
    }

    /// Returns its bytes, in the order in which [`set_parts`](Self::set_parts) takes them.
    #[must_use]
    pub fn parts(&self) -> [&Bytes; 3] {
        [&self.stdout, &self.stderr, &self.source]
    }

    /// Sets its bytes.
    pub fn set_parts(&mut self, [stdout, stderr, source]: [Bytes; 3]) {
        (self.stdout, self.stderr, self.source) = (stdout, stderr, source);
    }
}
