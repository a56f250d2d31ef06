//! Resources and resource templates of the catalog, by the origin of their content: the state of a
//! script, the output of a script, a file, or a function.

use std::fmt;
use std::sync::Arc;

use mcpd_protocol as protocol;
use mcpd_protocol::method::{ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult};
use mcpd_scriptspec::uri::UriTemplate;
use mcpd_scriptspec::{ScriptPath, ScriptSpec};

use super::file::StaticFile;
use super::list::{ListEntry, ListForm};
use super::skill::Skill;
use crate::catalog::handler::{EntryBody, ResourceHandler};
use crate::catalog::tool::{Tool, definition};
use crate::message::downgrade::downgrade_annotations;
use crate::script::Script;

/// Resource of the catalog.
#[derive(Debug)]
pub struct Resource {
    definition: protocol::method::Resource,
    source: ContentSource,
}

/// Origin of the content of a resource.
#[derive(Debug, Clone)]
pub(crate) enum ContentSource {
    /// State of a script, read with `--state`.
    State(Arc<Script>),
    /// Output of a script.
    Script(Arc<Script>),
    /// Content of a file.
    File(Arc<StaticFile>),
    /// Function of a source or of the embedding program.
    Function(Arc<ResourceHandler>),
}

impl Resource {
    /// Creates the state resource of a stateful script.
    pub(super) fn state(script: &Arc<Script>) -> Self {
        let name = format!("{}/state", script.path);
        let mut listed = protocol::method::Resource::new(script.path.state_uri(), name);
        listed.title = Some(format!(
            "State of {}",
            definition::title(&script.path, &script.spec)
        ));
        listed.description = Some(format!("The current state of `{}`.", script.path));
        Self {
            definition: listed,
            source: ContentSource::State(Arc::clone(script)),
        }
    }

    /// Creates the resource of a script whose output is the content.
    pub(super) fn script(script: Arc<Script>, uri: &str, mime_type: Option<&str>) -> Self {
        let mut listed = protocol::method::Resource::new(uri, script.path.as_str());
        listed.title = Some(definition::title(&script.path, &script.spec));
        listed.description.clone_from(&script.spec.description);
        listed.mime_type = mime_type.map(str::to_owned);
        listed.icons = definition::icons(&script.spec);
        listed.meta = Some(definition::meta_of(&script.path, &script.spec));
        Self {
            definition: listed,
            source: ContentSource::Script(script),
        }
    }

    pub(super) fn file(file: Arc<StaticFile>) -> Self {
        let mut listed = protocol::method::Resource::new(file.uri(), file.name());
        listed.mime_type = file.mime_type();
        listed.size = Some(file.size());
        Self {
            definition: listed,
            source: ContentSource::File(file),
        }
    }

    /// Creates the `SKILL.md` of a skill.
    pub(super) fn skill(file: Arc<StaticFile>, skill: &Skill) -> Self {
        let mut head = Self::file(file);
        if let Some(name) = skill.text("name") {
            name.clone_into(&mut head.definition.name);
        }
        head.definition.description = skill.text("description").map(str::to_owned);
        head.definition.mime_type = Some("text/markdown".to_owned());
        head
    }

    /// Creates the page of a tool. Lists leave it out: the tool names it.
    pub(super) fn app(file: Arc<StaticFile>, tool: &Tool) -> Self {
        let mut app = Self::file(file);
        app.definition.title.clone_from(&tool.definition().title);
        app.definition.meta = definition::meta_of_app(tool.definition());
        app
    }

    /// Creates a resource of a source, or one built into the program.
    pub(crate) fn function(
        definition: protocol::method::Resource,
        handler: Arc<ResourceHandler>,
    ) -> Self {
        Self {
            definition,
            source: ContentSource::Function(handler),
        }
    }

    /// Entry in a list of the newest revision.
    #[must_use]
    pub fn definition(&self) -> &protocol::method::Resource {
        &self.definition
    }

    /// Path of the script or file behind it, or the name under which it was built in or offered.
    #[must_use]
    pub fn path(&self) -> &ScriptPath {
        match &self.source {
            ContentSource::State(script) | ContentSource::Script(script) => &script.path,
            ContentSource::Function(handler) => handler.path(),
            ContentSource::File(file) => file.app_of().unwrap_or(file.path()),
        }
    }

    pub(crate) fn source(&self) -> &ContentSource {
        &self.source
    }

    pub(super) fn is_file(&self) -> bool {
        matches!(self.source, ContentSource::File(_))
    }

    /// Returns whether it is a file that is new since `before` or has another content.
    pub(super) fn is_new_file_since(&self, before: Option<&Arc<Self>>) -> bool {
        match (&self.source, before.map(|before| &before.source)) {
            (ContentSource::File(now), Some(ContentSource::File(then))) => now.is_edited(then),
            _ => self.is_file(),
        }
    }
}

impl ListEntry for Resource {
    type Listed = protocol::method::Resource;
    type Page = ListResourcesResult;

    const KIND: u8 = b'r';

    fn key(&self) -> &str {
        &self.definition.uri
    }

    fn to_listed(&self, ListForm { version, .. }: ListForm) -> protocol::method::Resource {
        let mut listed = self.definition.clone();
        if !version.has_titles() {
            listed.title = None;
            listed.meta = None;
        }
        downgrade_annotations(&mut listed.annotations, version);
        if !version.has_icons() {
            listed.icons.clear();
        }
        listed
    }

    fn page(
        listed: Vec<protocol::method::Resource>,
        next_cursor: Option<String>,
    ) -> ListResourcesResult {
        let mut page = ListResourcesResult::new(listed);
        page.next_cursor = next_cursor;
        page
    }

    /// Ignores the size, which counts as content: a growing file is updated, and its list stays
    /// the same.
    fn is_listed_like(&self, other: &Self) -> bool {
        let without_size = |resource: &Self| {
            let mut definition = resource.definition.clone();
            definition.size = None;
            definition
        };
        without_size(self) == without_size(other)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            ContentSource::State(script) => write!(f, "the state of {script}"),
            ContentSource::Script(script) => script.fmt(f),
            ContentSource::File(file) => file.fmt(f),
            ContentSource::Function(handler) => handler.fmt(f),
        }
    }
}

/// Template of the catalog: a script, or a source, that answers for every URI of one form.
#[derive(Debug)]
pub struct Template {
    definition: protocol::method::ResourceTemplate,
    uri: UriTemplate,
    body: EntryBody<String, ReadResourceResult>,
}

impl Template {
    pub(super) fn new(script: Arc<Script>, uri: UriTemplate, mime_type: Option<&str>) -> Self {
        let mut listed =
            protocol::method::ResourceTemplate::new(uri.as_str(), script.path.as_str());
        listed.title = Some(definition::title(&script.path, &script.spec));
        listed.description.clone_from(&script.spec.description);
        listed.mime_type = mime_type.map(str::to_owned);
        listed.icons = definition::icons(&script.spec);
        listed.meta = Some(definition::meta_of(&script.path, &script.spec));
        Self {
            definition: listed,
            uri,
            body: EntryBody::Script(script),
        }
    }

    /// Creates a template whose resources a source holds.
    pub(crate) fn function(
        definition: protocol::method::ResourceTemplate,
        uri: UriTemplate,
        handler: Arc<ResourceHandler>,
    ) -> Self {
        Self {
            definition,
            uri,
            body: EntryBody::Function(handler),
        }
    }

    /// Entry in a list of the newest revision.
    #[must_use]
    pub fn definition(&self) -> &protocol::method::ResourceTemplate {
        &self.definition
    }

    /// Path of the script behind it, or the name under which it was offered.
    #[must_use]
    pub fn path(&self) -> &ScriptPath {
        self.body.path()
    }

    /// Spec of the script, if a script is behind it.
    #[must_use]
    pub fn spec(&self) -> Option<&ScriptSpec> {
        self.body.spec().map(|spec| &**spec)
    }

    pub(crate) fn uri(&self) -> &UriTemplate {
        &self.uri
    }

    pub(crate) fn body(&self) -> &EntryBody<String, ReadResourceResult> {
        &self.body
    }
}

impl ListEntry for Template {
    type Listed = protocol::method::ResourceTemplate;
    type Page = ListResourceTemplatesResult;

    const KIND: u8 = b'm';

    fn key(&self) -> &str {
        self.uri.as_str()
    }

    fn to_listed(&self, ListForm { version, .. }: ListForm) -> protocol::method::ResourceTemplate {
        let mut listed = self.definition.clone();
        if !version.has_titles() {
            listed.title = None;
            listed.meta = None;
        }
        downgrade_annotations(&mut listed.annotations, version);
        if !version.has_icons() {
            listed.icons.clear();
        }
        listed
    }

    fn page(
        listed: Vec<protocol::method::ResourceTemplate>,
        next_cursor: Option<String>,
    ) -> ListResourceTemplatesResult {
        let mut page = ListResourceTemplatesResult::new(listed);
        page.next_cursor = next_cursor;
        page
    }

    fn is_listed_like(&self, other: &Self) -> bool {
        self.definition == other.definition
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.body.fmt(f)
    }
}
