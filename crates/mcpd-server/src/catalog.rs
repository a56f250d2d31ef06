//! Current set of tools, prompts and resources: an immutable snapshot, replaced as a whole. Knows
//! the entries and their names; neither how they are found ([`scan`]) nor how they run.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use mcpd_scriptspec::ScriptPath;
use mcpd_scriptspec::uri::normalize_uri;

use crate::catalog::source::Offer;
use crate::catalog::tool::Tool;
use crate::client::subscribers::Event;
use crate::message::reply::MethodResult;
use crate::policy::access::Access;

pub(crate) mod announced;
mod assembly;
pub(crate) mod call;
pub(crate) mod cursor;
mod file;
pub(crate) mod handler;
mod list;
pub(crate) mod live;
mod names;
pub mod pins;
#[cfg(feature = "database")]
mod probe_cache;
#[cfg(not(feature = "database"))]
#[path = "catalog/probe_cache/absent.rs"]
mod probe_cache;
mod prompt;
mod resource;
pub mod scan;
pub(crate) mod search;
mod served;
mod skill;
pub mod source;
pub(crate) mod tool;
mod view;
mod walk;
mod watch;

use assembly::Assembly;
pub(crate) use file::{ReadError, StaticFile};
use list::List;
pub(crate) use list::{ListForm, PageRequest};
pub use prompt::Prompt;
pub(crate) use resource::ContentSource;
pub use resource::{Resource, Template};
use scan::{Scan, ScannedScript};
pub use search::Search;
use search::SearchableTools;
pub use skill::Skill;
pub use tool::RunPlan;
use view::Views;
pub use watch::FileChanges;

/// Default number of entries on a page of a list.
///
/// Some clients never request a second page, and a list that fits into one result needs none.
pub const DEFAULT_PAGE_SIZE: NonZeroUsize = NonZeroUsize::new(1000).expect("it is not zero");

/// Variables of a template in its order, each with its value from a URI.
type Values<'a> = Vec<(&'a str, String)>;

/// Entries built into the program, independent of the directories.
#[derive(Debug, Default)]
pub(crate) struct BuiltIn {
    pub(crate) tools: Vec<Arc<Tool>>,
    pub(crate) resources: Vec<Arc<Resource>>,
    /// Short list of tools, if clients search for the others.
    pub(crate) search: Option<Search>,
}

/// Entries that mcpd serves at one moment.
#[derive(Debug)]
pub struct Catalog {
    tools: List<Tool>,
    prompts: List<Prompt>,
    resources: List<Resource>,
    templates: List<Template>,
    skills: List<Skill>,
    /// Pages of tools, and supporting files of skills, by URI: lists leave them out.
    unlisted: BTreeMap<String, Arc<Resource>>,
    /// Maps every spelling that a call may use to an index in `tools`.
    tool_names: BTreeMap<String, usize>,
    prompt_names: BTreeMap<String, usize>,
    /// Templates in the order in which they are tried.
    matchers: Vec<Arc<Template>>,
    scan: Scan,
    offers: Vec<Arc<Offer>>,
    conflicts: Vec<Conflict>,
    views: Views,
    /// Short list of tools, if clients search for the others.
    searchable: Option<SearchableTools>,
}

/// Two scripts or files that claim one name or one URI.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// Path of the one that lost.
    pub path: ScriptPath,
    /// Description of the conflict, as a sentence fragment.
    pub message: String,
    /// Advice for the operator, likewise.
    pub help: &'static str,
}

impl From<Scan> for Catalog {
    /// Builds the catalog of a server that serves these scripts.
    fn from(scan: Scan) -> Self {
        Self::new(&BuiltIn::default(), scan, Vec::new(), DEFAULT_PAGE_SIZE)
    }
}

impl Catalog {
    /// Builds the catalog of a server that serves the same scripts beside these offers.
    #[must_use]
    pub fn with_offers(self, offers: Vec<Arc<Offer>>) -> Self {
        Self::new(&BuiltIn::default(), self.scan, offers, DEFAULT_PAGE_SIZE)
    }

    /// Assigns names and URIs to the built-in entries, the scanned scripts and the offers of
    /// sources.
    pub(crate) fn new(
        built_in: &BuiltIn,
        mut scan: Scan,
        offers: Vec<Arc<Offer>>,
        page_size: NonZeroUsize,
    ) -> Self {
        let assembly = Assembly::new(built_in, &scan, &offers);
        scan.unusable.extend(assembly.idle_apps);
        let mut matchers = assembly.templates.clone();
        matchers.sort_by_key(|template| {
            let uri = template.uri();
            (Reverse(uri.literal_len()), uri.as_str().to_owned())
        });
        let tools = List::new(assembly.tools, page_size);
        let prompts = List::new(assembly.prompts, page_size);
        let search = built_in.search.as_ref();
        Self {
            searchable: search.map(|search| SearchableTools::new(search, &tools)),
            tool_names: names::index(tools.entries()),
            prompt_names: names::index(prompts.entries()),
            tools,
            prompts,
            resources: List::new(assembly.resources, page_size),
            templates: List::new(assembly.templates, page_size),
            skills: List::new(assembly.skills, page_size),
            unlisted: assembly.unlisted,
            matchers,
            scan,
            offers,
            conflicts: assembly.conflicts,
            views: Views::default(),
        }
    }

    /// Returns the part of the catalog that `access` allows to see, under the same names.
    pub(crate) fn view(&self, access: &Arc<Access>) -> Arc<Self> {
        self.views
            .get(access, || Arc::new(self.restricted_to(access)))
    }

    fn restricted_to(&self, access: &Access) -> Self {
        // The search itself is for every caller, and counts against no cap.
        let own = self.tools().iter().filter(|tool| !tool.is_part_of_search());
        let traits: Vec<_> = own.map(|tool| tool.traits()).collect();
        let mut selected = access.select_tools(&traits).into_iter();
        let tools = self
            .tools
            .filter(|tool| tool.is_part_of_search() || selected.next().unwrap_or_default());
        let prompts = self.prompts.filter(|prompt| access.allows(prompt.path()));
        let matchers = self.matchers.iter();
        let matchers = matchers.filter(|template| access.allows(template.path()));
        let searchable = self.searchable.as_ref();
        Self {
            searchable: searchable.map(|all| all.restricted_to(&tools)),
            tool_names: names::index(tools.entries()),
            prompt_names: names::index(prompts.entries()),
            tools,
            prompts,
            resources: self
                .resources
                .filter(|resource| access.allows(resource.path())),
            templates: self
                .templates
                .filter(|template| access.allows(template.path())),
            skills: self.skills.filter(|skill| access.allows(skill.path())),
            unlisted: self.allowed_unlisted(access),
            matchers: matchers.cloned().collect(),
            scan: Scan::default(),
            offers: Vec::new(),
            conflicts: Vec::new(),
            views: Views::default(),
        }
    }

    fn allowed_unlisted(&self, access: &Access) -> BTreeMap<String, Arc<Resource>> {
        let unlisted = self.unlisted.iter();
        let allowed = unlisted.filter(|(_, resource)| access.allows(resource.path()));
        allowed
            .map(|(uri, resource)| (uri.clone(), Arc::clone(resource)))
            .collect()
    }

    /// Returns whether a tool has an app.
    pub(crate) fn has_apps(&self) -> bool {
        self.tools().iter().any(|tool| tool.app().is_some())
    }

    /// Skills, in the order of their URIs.
    #[must_use]
    pub fn skills(&self) -> &[Arc<Skill>] {
        self.skills.entries()
    }

    /// Returns the skill whose `SKILL.md` is at `uri`.
    #[must_use]
    pub fn skill(&self, uri: &str) -> Option<&Arc<Skill>> {
        self.skills.find(uri)
    }

    /// Returns a page of `skills/list`.
    pub(crate) fn skills_page(&self, request: PageRequest<'_>) -> MethodResult {
        self.skills.page(request)
    }

    /// Tools, in the order of their paths.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Tool>] {
        self.tools.entries()
    }

    /// Prompts, in the order of their paths.
    #[must_use]
    pub fn prompts(&self) -> &[Arc<Prompt>] {
        self.prompts.entries()
    }

    /// Resources, in the order of their URIs.
    #[must_use]
    pub fn resources(&self) -> &[Arc<Resource>] {
        self.resources.entries()
    }

    /// Resource templates, in the order of their URI templates.
    #[must_use]
    pub fn templates(&self) -> &[Arc<Template>] {
        self.templates.entries()
    }

    /// Returns the tool called `name`: `math/add`, `math_add` and `math.add` are one.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        let place = self.tool_names.get(name)?;
        Some(&self.tools()[*place])
    }

    /// Returns the faulty script called `name`, in any spelling.
    pub(crate) fn faulty_script(&self, name: &str) -> Option<&Arc<ScannedScript>> {
        self.scan.faulty().find(|script| {
            let path = &script.path;
            path.as_str() == name || path.portable() == name || path.dotted() == name
        })
    }

    /// Returns the prompt called `name`, in any spelling.
    #[must_use]
    pub fn prompt(&self, name: &str) -> Option<&Arc<Prompt>> {
        let place = self.prompt_names.get(name)?;
        Some(&self.prompts()[*place])
    }

    /// Returns the resource at `uri`, in any equivalent spelling of the URI.
    #[must_use]
    pub fn resource(&self, uri: &str) -> Option<&Arc<Resource>> {
        let find = |uri: &str| self.resources.find(uri).or_else(|| self.unlisted.get(uri));
        find(uri).or_else(|| find(&normalize_uri(uri)))
    }

    /// Returns the template written `uri`.
    #[must_use]
    pub fn template(&self, uri: &str) -> Option<&Arc<Template>> {
        self.templates.find(uri)
    }

    /// Returns the template that matches `uri`, and its variables. Of several, the template with
    /// the most literal text matches.
    #[must_use]
    pub fn template_of(&self, uri: &str) -> Option<(&Arc<Template>, Values<'_>)> {
        self.matchers
            .iter()
            .find_map(|template| Some((template, template.uri().values(uri)?)))
    }

    /// Scan of the roots, faulty scripts included.
    #[must_use]
    pub fn scan(&self) -> &Scan {
        &self.scan
    }

    /// Offer of each source, the faulty ones included.
    #[must_use]
    pub fn offers(&self) -> &[Arc<Offer>] {
        &self.offers
    }

    /// Conflicts: entries that are served under another name than their own, or not at all.
    #[must_use]
    pub fn conflicts(&self) -> &[Conflict] {
        &self.conflicts
    }

    /// Returns a page of `tools/list`.
    pub(crate) fn tools_page(&self, request: PageRequest<'_>) -> MethodResult {
        let short = self.searchable.as_ref().map(SearchableTools::listed);
        short.unwrap_or(&self.tools).page(request)
    }

    /// Returns a page of `prompts/list`.
    pub(crate) fn prompts_page(&self, request: PageRequest<'_>) -> MethodResult {
        self.prompts.page(request)
    }

    /// Returns a page of `resources/list`.
    pub(crate) fn resources_page(&self, request: PageRequest<'_>) -> MethodResult {
        self.resources.page(request)
    }

    /// Returns a page of `resources/templates/list`.
    pub(crate) fn templates_page(&self, request: PageRequest<'_>) -> MethodResult {
        self.templates.page(request)
    }

    fn file_at(&self, uri: &str) -> Option<&Arc<Resource>> {
        self.resources.find(uri).or_else(|| self.unlisted.get(uri))
    }

    /// Returns the notifications for clients that know the catalog `before`.
    pub(crate) fn events_since(&self, before: &Self) -> Vec<Event> {
        let mut events = Vec::new();
        if !self.tools.is_like(&before.tools) {
            events.push(Event::ToolsChanged);
        }
        if !self.prompts.is_like(&before.prompts) {
            events.push(Event::PromptsChanged);
        }
        if !self.resources.is_like(&before.resources) || !self.templates.is_like(&before.templates)
        {
            events.push(Event::ResourcesChanged);
        }
        for resource in self.resources().iter().chain(self.unlisted.values()) {
            let uri = &resource.definition().uri;
            if resource.is_new_file_since(before.file_at(uri)) {
                events.push(Event::ResourceUpdated(uri.clone()));
            }
        }
        for resource in before.resources().iter().chain(before.unlisted.values()) {
            let uri = &resource.definition().uri;
            if resource.is_file() && self.file_at(uri).is_none() {
                events.push(Event::ResourceUpdated(uri.clone()));
            }
        }
        events
    }
}
