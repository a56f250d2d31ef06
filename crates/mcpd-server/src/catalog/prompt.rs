//! One prompt: its definition and the script behind it.

use std::fmt;
use std::sync::Arc;

use mcpd_protocol::ProtocolVersion;
use mcpd_protocol::{self as protocol, ListPromptsResult, PromptArgument};
use mcpd_scriptspec::{ScriptOption, ScriptPath, ScriptSpec};

use super::ToolNames;
use super::list::Entry;
use super::names::Named;
use crate::tool::{Script, definition};

/// A prompt of the catalog.
#[derive(Debug, Clone)]
pub struct Prompt {
    portable_name: String,
    definition: protocol::Prompt,
    script: Arc<Script>,
}

impl Prompt {
    pub(super) fn new(script: Arc<Script>) -> Self {
        let spec = &script.spec;
        let mut listed = protocol::Prompt::new(script.path.as_str());
        listed.title = Some(definition::title(&script.path, spec));
        listed.description.clone_from(&spec.description);
        listed.arguments = spec.options.iter().map(argument).collect();
        listed.icons = definition::icons(spec);
        listed.meta = Some(definition::meta(&script.path, spec.meta.clone().into()));
        Self {
            portable_name: script.path.portable().into_owned(),
            definition: listed,
            script,
        }
    }

    /// Its identity: the path below its root.
    #[must_use]
    pub fn path(&self) -> &ScriptPath {
        &self.script.path
    }

    /// The name that every client accepts.
    #[must_use]
    pub fn portable_name(&self) -> &str {
        &self.portable_name
    }

    /// What a list shows of it, in the newest revision and under its path.
    #[must_use]
    pub fn definition(&self) -> &protocol::Prompt {
        &self.definition
    }

    /// What the script said of itself.
    #[must_use]
    pub fn spec(&self) -> &ScriptSpec {
        &self.script.spec
    }

    pub(crate) fn script(&self) -> &Arc<Script> {
        &self.script
    }
}

fn argument(option: &ScriptOption) -> PromptArgument {
    let mut argument = PromptArgument::new(option.name.as_str());
    argument.title.clone_from(&option.title);
    argument.description.clone_from(&option.description);
    argument.required = option.required.then_some(true);
    argument
}

impl Named for Prompt {
    fn path(&self) -> &ScriptPath {
        self.path()
    }

    fn portable_name(&self) -> &str {
        self.portable_name()
    }

    fn with_distinct_name(&self) -> Self {
        Self {
            portable_name: self.path().portable_hashed(),
            ..self.clone()
        }
    }
}

impl Entry for Prompt {
    type Listed = protocol::Prompt;
    type Page = ListPromptsResult;

    const KIND: u8 = b'p';

    fn key(&self) -> &str {
        self.path().as_str()
    }

    fn listed(&self, version: ProtocolVersion, names: ToolNames) -> protocol::Prompt {
        let mut listed = self.definition.clone();
        if names == ToolNames::Portable {
            listed.name.clone_from(&self.portable_name);
        }
        if !version.has_titles() {
            listed.title = None;
            listed.meta = None;
            for argument in &mut listed.arguments {
                argument.title = None;
            }
        }
        if !version.has_icons() {
            listed.icons.clear();
        }
        listed
    }

    fn page(listed: Vec<protocol::Prompt>, next_cursor: Option<String>) -> ListPromptsResult {
        let mut page = ListPromptsResult::new(listed);
        page.next_cursor = next_cursor;
        page
    }

    fn is_listed_like(&self, other: &Self) -> bool {
        self.portable_name == other.portable_name && self.definition == other.definition
    }
}

impl fmt::Display for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.script.fmt(f)
    }
}
