//! The current set of tools and resources: an immutable snapshot, replaced whole. Knows what is served
//! and under which names; not how it is found ([`scan`]) or run.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use mcpd_protocol::ProtocolVersion;
use mcpd_protocol::Resource;
use mcpd_protocol::Stamp;
use mcpd_scriptspec::ScriptPath;

use crate::tool::Tool;

mod cache;
mod list;
pub(crate) mod live;
mod names;
pub mod scan;
mod walk;
mod watch;

use list::Lists;
pub use names::ToolNames;
use scan::Scan;

/// What mcpd serves at one moment.
#[derive(Debug)]
pub struct Catalog {
    tools: Vec<Arc<Tool>>,
    /// Every spelling a call may use, to the place in `tools`.
    by_name: BTreeMap<String, usize>,
    scan: Scan,
    conflicts: Vec<Conflict>,
    lists: Lists,
}

/// Two tools that want one name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The path of the tool that had to give way.
    pub path: ScriptPath,
    /// What happened, as a sentence fragment.
    pub message: String,
}

impl From<Scan> for Catalog {
    /// What a server of these scripts would serve.
    fn from(scan: Scan) -> Self {
        Self::new(&[], scan)
    }
}

impl Catalog {
    /// Puts tools built into the program and scanned scripts under their names: built-in ones first,
    /// then the roots in their order; of two with one path the first wins.
    pub(crate) fn new(native: &[Arc<Tool>], scan: Scan) -> Self {
        let scripts = scan
            .scripts
            .iter()
            .filter_map(Tool::from_script)
            .map(Arc::new);
        let (tools, conflicts) = names::assign(native.iter().cloned().chain(scripts));
        let by_name = names::index(&tools);
        Self {
            tools,
            by_name,
            scan,
            conflicts,
            lists: Lists::default(),
        }
    }

    /// The tools, in the order of their paths.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// The tool that `name` means: `math/add`, `math_add` and `math.add` are one.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name).map(|&place| &self.tools[place])
    }

    /// Whether a client that knows the tools of one catalog knows those of the other.
    pub(crate) fn same_tools(&self, other: &Self) -> bool {
        self.tools.len() == other.tools.len()
            && self
                .tools
                .iter()
                .zip(&other.tools)
                .all(|(ours, theirs)| ours.is_listed_like(theirs))
    }

    /// The resources, in the order of the tools they belong to.
    pub fn resources(&self) -> impl Iterator<Item = Resource> {
        self.tools.iter().filter_map(|tool| tool.state_resource())
    }

    /// What was found under the roots, faulty scripts included.
    #[must_use]
    pub fn scan(&self) -> &Scan {
        &self.scan
    }

    /// Tools that are not served under the name they asked for.
    #[must_use]
    pub fn conflicts(&self) -> &[Conflict] {
        &self.conflicts
    }

    /// The whole result of `tools/list`, encoded once per revision and naming.
    pub(crate) fn tools_list(
        &self,
        version: ProtocolVersion,
        names: ToolNames,
        stamp: &Stamp,
    ) -> Bytes {
        self.lists.tools(&self.tools, version, names, stamp)
    }

    /// The whole result of `resources/list`, likewise.
    pub(crate) fn resources_list(&self, version: ProtocolVersion, stamp: &Stamp) -> Bytes {
        self.lists.resources(self.resources(), version, stamp)
    }
}
