//! Offer of one source at one moment, with its faults. Bounded, so that no source slows down the
//! lists of others.

use std::sync::Arc;

use mcpd_protocol as protocol;
use mcpd_protocol::JsonObject;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{CallToolResult, GetPromptResult, ReadResourceResult};
use mcpd_scriptspec::uri::normalize_uri;
use mcpd_scriptspec::{PathError, ScriptPath, excerpt, header_fault};
use serde_json::value::RawValue;

use super::{RemoteTool, remote_script};
use crate::catalog::call::CallContext;
use crate::catalog::handler::{PromptHandler, ResourceHandler};
use crate::catalog::pins::PinKind;
use crate::catalog::served::{CatalogEntry, ServedScript};
use crate::catalog::tool::Tool;
use crate::catalog::{Prompt, Resource, Template};
use crate::policy::Policy;
use crate::remote::{Announcement, Place};
use crate::script::schema;

/// Maximum number of tools of one source, and of each other kind of entry.
pub const MAX_ENTRIES: usize = 1000;
/// Maximum number of faults reported of one source.
const MAX_FAULTS: usize = 20;
/// Maximum number of characters of a path that a fault quotes.
const MAX_QUOTED_PATH_CHARS: usize = 200;
/// Fault of a source that has published nothing.
const NOTHING_PUBLISHED: &str = "has not listed its tools within 5 s";

/// Entries of a source at one moment. See [`Publisher::offer`](super::Publisher::offer).
#[derive(Debug, Clone)]
pub struct Offer {
    source: Arc<str>,
    /// Policy of the server, for scripts that run elsewhere.
    policy: Option<Arc<Policy>>,
    tools: Vec<Arc<Tool>>,
    resources: Vec<Arc<Resource>>,
    templates: Vec<Arc<Template>>,
    prompts: Vec<Arc<Prompt>>,
    /// Where its scripts run.
    places: Vec<Arc<dyn Place>>,
    faults: Vec<String>,
    is_pending: bool,
    is_unauthorized: bool,
}

impl Offer {
    /// Creates the offer of a source that has published nothing yet.
    pub(super) fn pending(source: &str) -> Self {
        Self {
            faults: vec![NOTHING_PUBLISHED.to_owned()],
            is_pending: true,
            ..Self::empty(source.into())
        }
    }

    /// Creates an empty offer of the same source.
    pub(super) fn empty_like(before: &Self, policy: &Arc<Policy>) -> Self {
        Self {
            policy: Some(Arc::clone(policy)),
            ..Self::empty(Arc::clone(&before.source))
        }
    }

    fn empty(source: Arc<str>) -> Self {
        Self {
            source,
            policy: None,
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
            places: Vec::new(),
            faults: Vec::new(),
            is_pending: false,
            is_unauthorized: false,
        }
    }

    /// Returns a copy with this fault, unless it is the only one already.
    pub(super) fn with_failure(&self, fault: String, is_unauthorized: bool) -> Option<Self> {
        let is_known = self.faults.len() == 1 && self.faults[0] == fault;
        (!is_known).then(|| Self {
            faults: vec![fault],
            is_pending: false,
            is_unauthorized,
            ..self.clone()
        })
    }

    /// Returns a copy without the entries of which `is_left_out` is told kind and name.
    pub(in crate::catalog) fn without(&self, is_left_out: impl Fn(PinKind, &str) -> bool) -> Self {
        let mut offer = self.clone();
        let is_in = |kind, name: &str| !is_left_out(kind, name);
        (offer.tools).retain(|one| is_in(PinKind::Tool, one.path().as_str()));
        (offer.prompts).retain(|one| is_in(PinKind::Prompt, one.path().as_str()));
        (offer.resources).retain(|one| is_in(PinKind::Resource, &one.definition().uri));
        (offer.templates).retain(|one| is_in(PinKind::Template, one.uri().as_str()));
        offer
    }

    /// Adds the tool at `path`, such as `notes/find`, which clients know by that name alone.
    /// `call` receives an object without duplicate keys, not checked against the schema, and is
    /// dropped when the call is cancelled.
    ///
    /// An entry that cannot be served is recorded as a [fault](Self::fault), here and below.
    pub fn tool<F, R>(&mut self, path: &str, definition: protocol::method::Tool, call: F)
    where
        F: Fn(Box<RawValue>, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<CallToolResult, ErrorObject>> + Send + 'static,
    {
        if !self.admit_entry(self.tools.len(), "tools") {
            return;
        }
        if !schema::is_of_objects(&definition.input_schema) {
            let reason = "its input schema lacks `\"type\": \"object\"`";
            return self.unservable("tool", path, reason);
        }
        if let Some(reason) = header_fault(&definition.input_schema) {
            let reason = format!("its `x-mcp-header`: {reason}");
            return self.unservable("tool", path, &reason);
        }
        if let Some(path) = self.path("tool", path) {
            let body = RemoteTool::new(Arc::clone(&self.source), call);
            self.tools
                .push(Arc::new(Tool::remote(path, definition, body)));
        }
    }

    /// Adds the resource at the URI of its definition; people know it by `path`, such as
    /// `notes/today`. `read` receives the URI, and is dropped when the request is cancelled.
    pub fn resource<F, R>(
        &mut self,
        path: &str,
        mut definition: protocol::method::Resource,
        read: F,
    ) where
        F: Fn(String, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ReadResourceResult, ErrorObject>> + Send + 'static,
    {
        if !self.admit_entry(self.resources.len(), "resources") {
            return;
        }
        definition.uri = normalize_uri(&definition.uri).into_owned();
        if let Some(path) = self.path("resource", path) {
            let handler = Arc::new(ResourceHandler::new(
                Some(Arc::clone(&self.source)),
                path,
                read,
            ));
            self.resources
                .push(Arc::new(Resource::function(definition, handler)));
        }
    }

    /// Adds a template; people know it by `path`. `read` receives a URI made from it.
    pub fn template<F, R>(
        &mut self,
        path: &str,
        definition: protocol::method::ResourceTemplate,
        read: F,
    ) where
        F: Fn(String, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ReadResourceResult, ErrorObject>> + Send + 'static,
    {
        if !self.admit_entry(self.templates.len(), "resource templates") {
            return;
        }
        let uri = match definition.uri_template.parse() {
            Ok(uri) => uri,
            Err(error) => {
                let reason = format!("its URI template: {error}");
                return self.unservable("resource template", path, &reason);
            }
        };
        if let Some(path) = self.path("resource template", path) {
            let handler = Arc::new(ResourceHandler::new(
                Some(Arc::clone(&self.source)),
                path,
                read,
            ));
            self.templates
                .push(Arc::new(Template::function(definition, uri, handler)));
        }
    }

    /// Adds the prompt at `path`, which clients know by that name alone. `get` receives its
    /// arguments.
    pub fn prompt<F, R>(&mut self, path: &str, definition: protocol::method::Prompt, get: F)
    where
        F: Fn(JsonObject, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<GetPromptResult, ErrorObject>> + Send + 'static,
    {
        if !self.admit_entry(self.prompts.len(), "prompts") {
            return;
        }
        if let Some(path) = self.path("prompt", path) {
            let handler = Arc::new(PromptHandler::new(
                Some(Arc::clone(&self.source)),
                path,
                get,
            ));
            self.prompts
                .push(Arc::new(Prompt::function(definition, handler)));
        }
    }

    /// Adds the script that another server has [announced](Announcement), and that runs at `place`.
    /// It is served as if it had been found here: as a tool, a prompt or a resource, by its role,
    /// and with its state. Any number of scripts is served.
    ///
    /// The policy of this server applies; a source that offers scripts must
    /// [follow it](super::Source::follows_policy).
    pub fn script(&mut self, announced: &Announcement, place: Arc<dyn Place>) {
        let Some(path) = self.path("script", &announced.path) else {
            return;
        };
        if !self.places.iter().any(|one| Arc::ptr_eq(one, &place)) {
            self.places.push(Arc::clone(&place));
        }
        let policy = self.policy.as_deref().cloned().unwrap_or_default();
        let made = remote_script::make(&policy, &self.source, path, announced, place);
        let served = match made {
            Ok(script) => ServedScript::new(script),
            Err(reason) => return self.unservable("script", &announced.path, &reason),
        };
        if served.script.spec.state {
            self.resources
                .push(Arc::new(Resource::state(&served.script)));
        }
        match served.entry {
            CatalogEntry::Tool(tool) => self.tools.push(tool),
            CatalogEntry::Prompt(prompt) => self.prompts.push(prompt),
            CatalogEntry::Resource(resource) => self.resources.push(resource),
            CatalogEntry::Template(template) => self.templates.push(template),
        }
    }

    /// Returns where its scripts run.
    pub(crate) fn places(&self) -> &[Arc<dyn Place>] {
        &self.places
    }

    /// Returns whether an entry after `count` others is served, and records a fault if it is not.
    fn admit_entry(&mut self, count: usize, what: &str) -> bool {
        let admit_entry = count < MAX_ENTRIES;
        if !admit_entry {
            let more = format!("has more than {MAX_ENTRIES} {what}; the rest is not served");
            if !self.faults.contains(&more) {
                self.fault(more);
            }
        }
        admit_entry
    }

    /// Returns the path under which an entry can be served.
    fn path(&mut self, what: &str, path: &str) -> Option<ScriptPath> {
        let parsed: Result<ScriptPath, PathError> = path.parse();
        parsed
            .inspect_err(|error| self.unservable(what, path, &error.to_string()))
            .ok()
    }

    /// Records that an entry, such as a tool, cannot be served at `path`.
    pub fn unservable(&mut self, what: &str, path: &str, reason: &str) {
        let path = excerpt(path, MAX_QUOTED_PATH_CHARS);
        self.fault(format!(
            "has the {what} `{path}`, which cannot be served: {reason}"
        ));
    }

    /// Records a fault, as words that fit after the name of the source.
    pub fn fault(&mut self, fault: impl Into<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault.into());
        }
    }

    /// Origin, for people.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Faults, each as words that fit after the name of the source. Tools may be served all the
    /// same.
    #[must_use]
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Returns whether it has a fault.
    #[must_use]
    pub fn is_faulty(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Returns whether the source has failed because it wants credentials, or others.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.is_unauthorized
    }

    pub(crate) fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    pub(crate) fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    pub(crate) fn templates(&self) -> &[Arc<Template>] {
        &self.templates
    }

    pub(crate) fn prompts(&self) -> &[Arc<Prompt>] {
        &self.prompts
    }

    /// Returns whether the source has published nothing yet.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.is_pending
    }
}
