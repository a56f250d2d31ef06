//! Dated revisions of MCP: the wire of each, and the features it has. Other code never compares
//! revisions; it asks the predicates here.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Revision of the Model Context Protocol, ordered by date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ProtocolVersion {
    /// 2024-11-05, the first.
    #[serde(rename = "2024-11-05")]
    V2024_11_05,
    /// 2025-03-26: batches, audio, tool annotations.
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    /// 2025-06-18: structured content, resource links, titles.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// 2025-11-25: icons. The last with a handshake.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// 2026-07-28: every request stands alone.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

/// The two wires of MCP. The wire is decided message by message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "whoever serves MCP must treat each"
)]
pub enum Wire {
    /// `initialize` first; version, capabilities and log level belong to the session.
    Stateful,
    /// Version and capabilities travel in the `_meta` of every request.
    Stateless,
}

impl ProtocolVersion {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// The newest revision that starts with `initialize`.
    pub const LATEST_STATEFUL: Self = Self::V2025_11_25;

    /// Returns the date, as on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the wire of this revision.
    #[must_use]
    pub const fn wire(self) -> Wire {
        match self {
            Self::V2026_07_28 => Wire::Stateless,
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => {
                Wire::Stateful
            }
        }
    }

    /// Returns the revision for the answer to `initialize`.
    ///
    /// "If the server supports the requested protocol version, it MUST respond with the same
    /// version. Otherwise, the server MUST respond with another protocol version it supports" --
    /// 2025-11-25/basic/lifecycle#version-negotiation. A revision without a handshake is not one
    /// of those.
    #[must_use]
    pub fn negotiate(requested: &str) -> Self {
        requested
            .parse()
            .ok()
            .filter(|version: &Self| version.wire() == Wire::Stateful)
            .unwrap_or(Self::LATEST_STATEFUL)
    }

    /// Returns whether a client may send a JSON array of messages. The first revision does not
    /// mention batches, but is JSON-RPC 2.0, which has them.
    #[must_use]
    pub fn has_batches(self) -> bool {
        self <= Self::V2025_03_26
    }

    /// Returns whether a tool may carry `annotations`.
    #[must_use]
    pub fn has_tool_annotations(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Returns whether content may be `audio`.
    #[must_use]
    pub fn has_audio(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Returns whether progress may carry a `message`.
    #[must_use]
    pub fn has_progress_message(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Returns whether `completions` is a server capability; the method itself is older.
    #[must_use]
    pub fn has_completions_capability(self) -> bool {
        self >= Self::V2025_03_26
    }

    /// Returns whether content may be a `resource_link`.
    #[must_use]
    pub fn has_resource_links(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Returns whether `structuredContent` and `outputSchema` exist.
    #[must_use]
    pub fn has_structured_content(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Returns whether `structuredContent`, if the revision has it, must be an object, and
    /// `outputSchema` describe one.
    #[must_use]
    pub fn structured_content_is_object_only(self) -> bool {
        self <= Self::V2025_11_25
    }

    /// Returns whether `title` and `_meta` exist on tools, resources and prompts.
    #[must_use]
    pub fn has_titles(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Returns whether content may carry `_meta`, and its annotations `lastModified`.
    #[must_use]
    pub fn has_content_meta(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Returns whether the server may ask for input by `elicitation`.
    #[must_use]
    pub fn has_elicitation(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Returns whether elicitation has the mode `url`.
    #[must_use]
    pub fn has_url_elicitation(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Returns whether a sampling request may have tools, and needs a capability of its own for
    /// the context of servers.
    #[must_use]
    pub fn has_sampling_tools(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Returns whether a form may have multiple choices, titles of choices as in JSON Schema, and
    /// defaults for texts and numbers.
    #[must_use]
    pub fn has_rich_forms(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Returns whether `icons` exist, and `description` and `websiteUrl` of an implementation.
    #[must_use]
    pub fn has_icons(self) -> bool {
        self >= Self::V2025_11_25
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for ProtocolVersion {
    type Err = UnknownVersion;

    fn from_str(date: &str) -> Result<Self, UnknownVersion> {
        Self::ALL
            .into_iter()
            .find(|version| version.as_str() == date)
            .ok_or(UnknownVersion(()))
    }
}

/// Error for a text that names no revision this crate knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a known MCP revision")]
pub struct UnknownVersion(());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_parses_back_and_is_ordered_by_date() {
        for version in ProtocolVersion::ALL {
            assert_eq!(version.as_str().parse(), Ok(version));
            assert_eq!(
                serde_json::to_string(&version).unwrap(),
                format!("\"{version}\"")
            );
        }
        assert!(ProtocolVersion::ALL.is_sorted());
        assert_eq!(ProtocolVersion::ALL.last(), Some(&ProtocolVersion::LATEST));
    }

    #[test]
    fn initialize_never_ends_in_a_revision_without_a_handshake() {
        #[track_caller]
        fn check(requested: &str, answer: &str) {
            assert_eq!(ProtocolVersion::negotiate(requested).as_str(), answer);
        }
        check("2024-11-05", "2024-11-05");
        check("2025-11-25", "2025-11-25");
        check("2026-07-28", "2025-11-25");
        check("2099-01-01", "2025-11-25");
        check("", "2025-11-25");
    }

    #[test]
    fn only_the_first_revisions_have_batches() {
        let with: Vec<_> = ProtocolVersion::ALL
            .into_iter()
            .filter(|v| v.has_batches())
            .collect();
        assert_eq!(
            with,
            [ProtocolVersion::V2024_11_05, ProtocolVersion::V2025_03_26]
        );
    }
}
