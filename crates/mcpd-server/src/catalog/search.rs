//! Search for tools: the short list that clients get in place of all tools, and the index behind
//! it, which is built once for a snapshot and all its views, before clients see it.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use mcpd_protocol as protocol;

use super::Catalog;
use super::list::{List, ListEntry as _, ListForm};
use crate::catalog::tool::Tool;
use crate::policy::pattern::{Pattern, PatternError};

mod index;
mod question;
mod verbs;
mod words;

use index::ToolIndex;

/// Settings of the search for tools. See
/// [`ServerBuilder::search`](crate::ServerBuilder::search).
///
/// ```
/// use mcpd_server::Server;
/// use mcpd_server::catalog::Search;
///
/// # fn main() -> Result<(), mcpd_server::policy::PatternError> {
/// let server = Server::builder().search(Search::default().always_list("git/*")?);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Search {
    always_listed: Vec<Pattern>,
    results: usize,
}

impl Default for Search {
    /// Lists no other tool, and finds five unless the caller wants another number.
    fn default() -> Self {
        Self {
            always_listed: Vec::new(),
            results: 5,
        }
    }
}

impl Search {
    /// Maximum number of tools in a result.
    pub const MAX_RESULTS: usize = 20;

    /// Lists the tools whose paths match `pattern` as well: `*` matches a part of a name, `**`
    /// any number of names, `?` a character, `[ab]` and `{a,b}` either.
    ///
    /// # Errors
    ///
    /// Fails if the pattern is invalid.
    pub fn always_list(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.always_listed.push(Pattern::of_paths(pattern)?);
        Ok(self)
    }

    /// Sets the number of tools that a search finds by default, 20 at most.
    pub fn results(mut self, number: NonZeroUsize) -> Self {
        self.results = number.get().min(Self::MAX_RESULTS);
        self
    }

    /// Number of tools that a search finds by default.
    pub(crate) fn default_results(&self) -> usize {
        self.results
    }

    /// Returns whether clients see the tool in their list.
    fn lists(&self, tool: &Tool) -> bool {
        let path = tool.path().as_str();
        tool.is_part_of_search()
            || self
                .always_listed
                .iter()
                .any(|pattern| pattern.is_match(path))
    }
}

/// Short list of one catalog, and all tools that may be found.
#[derive(Debug)]
pub(super) struct SearchableTools {
    listed: List<Tool>,
    indexed: Arc<IndexedTools>,
}

/// Tools of a whole catalog, which its views share: each finds those that are its own.
#[derive(Debug)]
struct IndexedTools {
    tools: Vec<Arc<Tool>>,
    index: OnceLock<ToolIndex>,
}

impl IndexedTools {
    fn index(&self) -> &ToolIndex {
        self.index.get_or_init(|| ToolIndex::new(&self.tools))
    }

    /// Returns the tools that match `query`, best first.
    fn search(&self, query: &str) -> impl Iterator<Item = &Arc<Tool>> {
        let matching = self.index().search(query).into_iter();
        matching.map(|place| &self.tools[place])
    }
}

impl SearchableTools {
    pub(super) fn new(search: &Search, tools: &List<Tool>) -> Self {
        Self {
            listed: tools.filter(|tool| search.lists(tool)),
            indexed: Arc::new(IndexedTools {
                tools: tools.entries().to_vec(),
                index: OnceLock::new(),
            }),
        }
    }

    /// Returns the part of the list that is among `tools`.
    pub(super) fn restricted_to(&self, tools: &List<Tool>) -> Self {
        let is_kept = |tool: &Tool| tools.find(tool.path().as_str()).is_some();
        Self {
            listed: self.listed.filter(is_kept),
            indexed: Arc::clone(&self.indexed),
        }
    }

    /// List that clients get.
    pub(super) fn listed(&self) -> &List<Tool> {
        &self.listed
    }
}

impl Catalog {
    /// Returns whether clients get a short list, and search for the other tools.
    pub(crate) fn has_search(&self) -> bool {
        self.searchable.is_some()
    }

    /// Builds the index of its tools, so that no search has to wait for it.
    pub(crate) async fn build_index(&self) {
        let Some(searchable) = &self.searchable else {
            return;
        };
        let indexed = Arc::clone(&searchable.indexed);
        let build = move || {
            indexed.index();
        };
        tokio::task::spawn_blocking(build).await.ok();
    }

    /// Returns the tools that match `query`, best first, with the schemas of their arguments as
    /// lists show them. A tool called `query` comes first.
    pub(crate) fn find_tools(
        &self,
        query: &str,
        limit: usize,
        form: ListForm,
    ) -> Vec<protocol::method::Tool> {
        let Some(searchable) = &self.searchable else {
            return Vec::new();
        };
        let named = self.tool(query.trim());
        let named = named.filter(|tool| !tool.is_part_of_search());
        let matching = searchable.indexed.search(query);
        let matching = matching.filter_map(|tool| self.tools.find(tool.path().as_str()));
        let is_other = |tool: &&Arc<Tool>| named.is_none_or(|named| !Arc::ptr_eq(named, tool));
        let found = named.into_iter().chain(matching.filter(is_other));
        let found = found.take(limit);
        found.map(|tool| tool.to_listed(form)).collect()
    }
}
