//! List results, encoded once per snapshot, revision and naming, and spliced into every answer.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use mcpd_protocol::ProtocolVersion;
use mcpd_protocol::{self as protocol, ListToolsResult};
use mcpd_protocol::{ListResourcesResult, Resource};
use mcpd_protocol::{ResultObject, Stamp};

use super::ToolNames;
use crate::tool::Tool;

/// One slot per revision.
type PerVersion = [OnceLock<Bytes>; ProtocolVersion::ALL.len()];

/// The results encoded so far.
#[derive(Debug, Default)]
pub(super) struct Lists {
    portable_tools: PerVersion,
    path_tools: PerVersion,
    resources: PerVersion,
}

impl Lists {
    /// The result of `tools/list`.
    pub(super) fn tools(
        &self,
        tools: &[Arc<Tool>],
        version: ProtocolVersion,
        names: ToolNames,
        stamp: &Stamp,
    ) -> Bytes {
        let lists = match names {
            ToolNames::Portable => &self.portable_tools,
            ToolNames::Path => &self.path_tools,
        };
        let encode = || {
            let listed = tools
                .iter()
                .map(|tool| tool_in(version, tool.listed(names)))
                .collect();
            encode(ListToolsResult::new(listed), stamp)
        };
        slot(lists, version).get_or_init(encode).clone()
    }

    /// The result of `resources/list`.
    pub(super) fn resources(
        &self,
        resources: impl Iterator<Item = Resource>,
        version: ProtocolVersion,
        stamp: &Stamp,
    ) -> Bytes {
        let encode = || {
            let listed = resources
                .map(|resource| resource_in(version, resource))
                .collect();
            encode(ListResourcesResult::new(listed), stamp)
        };
        slot(&self.resources, version).get_or_init(encode).clone()
    }
}

fn slot(lists: &PerVersion, version: ProtocolVersion) -> &OnceLock<Bytes> {
    let place = ProtocolVersion::ALL
        .iter()
        .position(|known| *known == version);
    &lists[place.expect("ALL holds every revision")]
}

fn encode(result: impl ResultObject, stamp: &Stamp) -> Bytes {
    stamp
        .encode(result)
        .expect("lists have string keys only")
        .into()
}

/// The tool without what `version` has no words for.
fn tool_in(version: ProtocolVersion, mut tool: protocol::Tool) -> protocol::Tool {
    if !version.has_tool_annotations() {
        tool.annotations = None;
    }
    if !version.has_titles() {
        tool.title = None;
        tool.meta = None;
    }
    if !version.has_structured_content() {
        tool.output_schema = None;
    }
    if !version.has_icons() {
        tool.icons.clear();
    }
    tool
}

/// The resource without what `version` has no words for.
fn resource_in(version: ProtocolVersion, mut resource: Resource) -> Resource {
    if !version.has_titles() {
        resource.title = None;
        resource.meta = None;
    }
    if !version.has_icons() {
        resource.icons.clear();
    }
    resource
}
