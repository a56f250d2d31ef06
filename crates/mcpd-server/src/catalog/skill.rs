//! A skill: instructions for models, in a directory below `skills/` with a `SKILL.md`. Its files
//! are resources; the entry lists them with their digests.

use std::fmt;

use mcpd_protocol::method::{ListSkillsResult, Skill as Definition};
use mcpd_scriptspec::ScriptPath;

use super::list::{ListEntry, ListForm};

/// Skill of the catalog.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    path: ScriptPath,
    definition: Definition,
}

impl Skill {
    /// Creates a skill of the `SKILL.md` at `path`.
    pub(super) fn new(path: ScriptPath, definition: Definition) -> Self {
        Self { path, definition }
    }

    /// Entry in a list.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Path of its `SKILL.md` below the root.
    #[must_use]
    pub fn path(&self) -> &ScriptPath {
        &self.path
    }

    /// Text of a member of its frontmatter.
    pub(super) fn text(&self, member: &str) -> Option<&str> {
        self.definition.frontmatter.get(member)?.as_str()
    }
}

impl ListEntry for Skill {
    type Listed = Definition;
    type Page = ListSkillsResult;

    const KIND: u8 = b'k';

    fn key(&self) -> &str {
        &self.definition.uri
    }

    fn to_listed(&self, _: ListForm) -> Definition {
        self.definition.clone()
    }

    fn page(listed: Vec<Definition>, next_cursor: Option<String>) -> ListSkillsResult {
        let mut page = ListSkillsResult::new(listed);
        page.next_cursor = next_cursor;
        page
    }

    fn is_listed_like(&self, other: &Self) -> bool {
        self == other
    }
}

impl fmt::Display for Skill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skill `{}`", self.definition.uri)
    }
}
