//! A prompt: its definition, and the script or source behind it.

use std::fmt;
use std::sync::Arc;

use mcpd_protocol::method::{GetPromptResult, ListPromptsResult, PromptArgument};
use mcpd_protocol::{self as protocol, JsonObject};
use mcpd_scriptspec::{ScriptOption, ScriptPath, ScriptSpec};

use super::list::{ListEntry, ListForm};
use super::names::NamedEntry;
use crate::catalog::handler::{EntryBody, PromptHandler};
use crate::catalog::tool::definition;
use crate::message::tool_names::ToolNames;
use crate::script::Script;

/// Prompt of the catalog.
#[derive(Debug, Clone)]
pub struct Prompt {
    portable_name: String,
    definition: protocol::method::Prompt,
    body: EntryBody<JsonObject, GetPromptResult>,
}

impl Prompt {
    pub(super) fn new(script: Arc<Script>) -> Self {
        let spec = &script.spec;
        let mut listed = protocol::method::Prompt::new(script.path.as_str());
        listed.title = Some(definition::title(&script.path, spec));
        listed.description.clone_from(&spec.description);
        listed.arguments = spec.options.iter().map(argument).collect();
        listed.icons = definition::icons(spec);
        listed.meta = Some(definition::meta_of(&script.path, spec));
        Self {
            portable_name: script.path.portable().into_owned(),
            definition: listed,
            body: EntryBody::Script(script),
        }
    }

    /// Creates a prompt of a source, under its path.
    pub(crate) fn function(
        mut definition: protocol::method::Prompt,
        handler: Arc<PromptHandler>,
    ) -> Self {
        let path = handler.path();
        path.as_str().clone_into(&mut definition.name);
        definition.title.get_or_insert_with(|| path.to_string());
        let meta = definition.meta.unwrap_or_default();
        definition.meta = Some(definition::meta(path, meta));
        Self {
            portable_name: path.portable().into_owned(),
            definition,
            body: EntryBody::Function(handler),
        }
    }

    /// Identity: the path below its root.
    #[must_use]
    pub fn path(&self) -> &ScriptPath {
        self.body.path()
    }

    /// Name that every client accepts.
    #[must_use]
    pub fn portable_name(&self) -> &str {
        &self.portable_name
    }

    /// Entry in a list of the newest revision, under its path.
    #[must_use]
    pub fn definition(&self) -> &protocol::method::Prompt {
        &self.definition
    }

    /// Spec of the script, if a script is behind it.
    #[must_use]
    pub fn spec(&self) -> Option<&ScriptSpec> {
        self.body.spec().map(|spec| &**spec)
    }

    pub(crate) fn body(&self) -> &EntryBody<JsonObject, GetPromptResult> {
        &self.body
    }
}

fn argument(option: &ScriptOption) -> PromptArgument {
    let mut argument = PromptArgument::new(option.name.as_str());
    argument.title.clone_from(&option.title);
    argument.description.clone_from(&option.description);
    argument.required = option.required.then_some(true);
    argument
}

impl NamedEntry for Prompt {
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

impl ListEntry for Prompt {
    type Listed = protocol::method::Prompt;
    type Page = ListPromptsResult;

    const KIND: u8 = b'p';

    fn key(&self) -> &str {
        self.path().as_str()
    }

    fn to_listed(&self, form: ListForm) -> protocol::method::Prompt {
        let ListForm { version, names, .. } = form;
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

    fn page(
        listed: Vec<protocol::method::Prompt>,
        next_cursor: Option<String>,
    ) -> ListPromptsResult {
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
        self.body.fmt(f)
    }
}
