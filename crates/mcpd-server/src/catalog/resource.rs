//! What can be read: the state of a script, what a script prints, a file; one by one or by template.

use std::fmt;
use std::sync::Arc;

use mcpd_protocol::ProtocolVersion;
use mcpd_protocol::{
    self as protocol, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult,
};
use mcpd_scriptspec::{ScriptPath, ScriptSpec, UriTemplate};

use super::ToolNames;
use super::file::StaticFile;
use super::list::Entry;
use crate::native::NativeResource;
use crate::output::downgrade_annotations;
use crate::source::{Behind, RemoteResource};
use crate::tool::{Script, definition};

/// A resource of the catalog.
#[derive(Debug)]
pub struct Resource {
    definition: protocol::Resource,
    source: Source,
}

/// Where the content of a resource comes from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A script, asked with `--state`.
    State(Arc<Script>),
    /// A script, run.
    Script(Arc<Script>),
    /// The file itself.
    File(Arc<StaticFile>),
    /// A function of the embedding program.
    Native(ScriptPath, Arc<NativeResource>),
    /// A source, asked.
    Remote(Arc<RemoteResource>),
}

impl Resource {
    /// The state of a stateful script.
    pub(super) fn state(script: &Arc<Script>) -> Self {
        let name = format!("{}/state", script.path);
        let mut listed = protocol::Resource::new(script.path.state_uri(), name);
        listed.title = Some(format!(
            "State of {}",
            definition::title(&script.path, &script.spec)
        ));
        listed.description = Some(format!(
            "The state of `{}` at the moment when it is read.",
            script.path
        ));
        Self {
            definition: listed,
            source: Source::State(Arc::clone(script)),
        }
    }

    /// What a script prints that is a resource.
    pub(super) fn script(script: Arc<Script>, uri: &str, mime_type: Option<&str>) -> Self {
        let mut listed = protocol::Resource::new(uri, script.path.as_str());
        listed.title = Some(definition::title(&script.path, &script.spec));
        listed.description.clone_from(&script.spec.description);
        listed.mime_type = mime_type.map(str::to_owned);
        listed.icons = definition::icons(&script.spec);
        listed.meta = Some(definition::meta_of(&script.path, &script.spec));
        Self {
            definition: listed,
            source: Source::Script(script),
        }
    }

    pub(super) fn file(file: Arc<StaticFile>) -> Self {
        let mut listed = protocol::Resource::new(file.uri(), file.name());
        listed.mime_type = file.mime_type();
        listed.size = Some(file.size());
        Self {
            definition: listed,
            source: Source::File(file),
        }
    }

    /// A resource built into the program.
    pub(crate) fn native(
        path: ScriptPath,
        definition: protocol::Resource,
        resource: NativeResource,
    ) -> Self {
        Self {
            definition,
            source: Source::Native(path, Arc::new(resource)),
        }
    }

    /// A resource that is elsewhere.
    pub(crate) fn remote(definition: protocol::Resource, remote: Arc<RemoteResource>) -> Self {
        Self {
            definition,
            source: Source::Remote(remote),
        }
    }

    /// What a list shows of it, in the newest revision.
    #[must_use]
    pub fn definition(&self) -> &protocol::Resource {
        &self.definition
    }

    /// The path of the script or file behind it, or the name it was built in or offered under.
    #[must_use]
    pub fn path(&self) -> &ScriptPath {
        match &self.source {
            Source::State(script) | Source::Script(script) => &script.path,
            Source::Native(path, _) => path,
            Source::Remote(remote) => remote.path(),
            Source::File(file) => file.path(),
        }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(super) fn is_file(&self) -> bool {
        matches!(self.source, Source::File(_))
    }

    /// Whether it is a file that was not there `before`, or with different content.
    pub(super) fn is_another_file(&self, before: Option<&Arc<Self>>) -> bool {
        match (&self.source, before.map(|before| &before.source)) {
            (Source::File(now), Some(Source::File(then))) => now.is_edited(then),
            _ => self.is_file(),
        }
    }
}

impl Entry for Resource {
    type Listed = protocol::Resource;
    type Page = ListResourcesResult;

    const KIND: u8 = b'r';

    fn key(&self) -> &str {
        &self.definition.uri
    }

    fn listed(&self, version: ProtocolVersion, _: ToolNames) -> protocol::Resource {
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

    fn page(listed: Vec<protocol::Resource>, next_cursor: Option<String>) -> ListResourcesResult {
        let mut page = ListResourcesResult::new(listed);
        page.next_cursor = next_cursor;
        page
    }

    /// The size counts as content: a file that grows is updated, and the list it is in stays the same.
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
            Source::State(script) => write!(f, "the state of {script}"),
            Source::Script(script) => script.fmt(f),
            Source::File(file) => file.fmt(f),
            Source::Native(path, _) => write!(f, "`{path}` (built in)"),
            Source::Remote(remote) => remote.fmt(f),
        }
    }
}

/// A template of the catalog: a script, or a source, that answers for every URI of one form.
#[derive(Debug)]
pub struct Template {
    definition: protocol::ResourceTemplate,
    uri: UriTemplate,
    behind: Behind<String, ReadResourceResult>,
}

impl Template {
    pub(super) fn new(script: Arc<Script>, uri: UriTemplate, mime_type: Option<&str>) -> Self {
        let mut listed = protocol::ResourceTemplate::new(uri.as_str(), script.path.as_str());
        listed.title = Some(definition::title(&script.path, &script.spec));
        listed.description.clone_from(&script.spec.description);
        listed.mime_type = mime_type.map(str::to_owned);
        listed.icons = definition::icons(&script.spec);
        listed.meta = Some(definition::meta_of(&script.path, &script.spec));
        Self {
            definition: listed,
            uri,
            behind: Behind::Script(script),
        }
    }

    /// A template whose resources are elsewhere.
    pub(crate) fn remote(
        definition: protocol::ResourceTemplate,
        uri: UriTemplate,
        remote: Arc<RemoteResource>,
    ) -> Self {
        Self {
            definition,
            uri,
            behind: Behind::Remote(remote),
        }
    }

    /// What a list shows of it, in the newest revision.
    #[must_use]
    pub fn definition(&self) -> &protocol::ResourceTemplate {
        &self.definition
    }

    /// The path of the script behind it, or the name it was offered under.
    #[must_use]
    pub fn path(&self) -> &ScriptPath {
        self.behind.path()
    }

    /// What the script said of itself, if it is one.
    #[must_use]
    pub fn spec(&self) -> Option<&ScriptSpec> {
        self.behind.spec().map(|spec| &**spec)
    }

    pub(crate) fn uri(&self) -> &UriTemplate {
        &self.uri
    }

    pub(crate) fn behind(&self) -> &Behind<String, ReadResourceResult> {
        &self.behind
    }
}

impl Entry for Template {
    type Listed = protocol::ResourceTemplate;
    type Page = ListResourceTemplatesResult;

    const KIND: u8 = b'm';

    fn key(&self) -> &str {
        self.uri.as_str()
    }

    fn listed(&self, version: ProtocolVersion, _: ToolNames) -> protocol::ResourceTemplate {
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
        listed: Vec<protocol::ResourceTemplate>,
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
        self.behind.fmt(f)
    }
}
