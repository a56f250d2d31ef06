//! Entries of the catalog that a program adds itself.

use std::sync::Arc;

use mcpd_protocol as protocol;
use mcpd_scriptspec::ScriptPath;
use mcpd_scriptspec::uri::normalize_uri;

use super::ResourceDescription;
use crate::catalog::search::Search;
use crate::catalog::tool::Tool;
use crate::catalog::{BuiltIn, Resource};
use crate::policy::Policy;
use crate::server::error::Error;
use crate::tools::background_tools;
use crate::tools::native::NativeToolDescription;
use crate::tools::run_command::{self, CommandTool, RunCommand};
use crate::tools::search;

pub(super) fn built_in(
    tools: Vec<NativeToolDescription>,
    resources: Vec<ResourceDescription>,
) -> Result<BuiltIn, Error> {
    let tools = tools.into_iter().map(native_tool);
    let resources = resources.into_iter().map(native_resource);
    Ok(BuiltIn {
        tools: tools.collect::<Result<_, _>>()?,
        resources: resources.collect::<Result<_, _>>()?,
        search: None,
    })
}

/// Adds the search for tools, and returns its instructions. Its names take precedence, because
/// clients are told of them.
pub(super) fn add_search(built_in: &mut BuiltIn, search: Search) -> String {
    let tools = search::tools(&search).map(Arc::new);
    built_in.tools.splice(0..0, tools);
    built_in.search = Some(search);
    search::INSTRUCTIONS.to_owned()
}

fn native_tool(described: NativeToolDescription) -> Result<Arc<Tool>, Error> {
    let name = described.name().to_owned();
    let tool = described.into_tool();
    tool.map(Arc::new)
        .map_err(|reason| Error::Tool { name, reason })
}

/// Adds the tool for commands of a shell. Returns its part of the instructions.
pub(super) fn add_command_tool(
    built_in: &mut BuiltIn,
    options: RunCommand,
    policy: &Policy,
) -> Result<String, Error> {
    let tools = &mut built_in.tools;
    let has_background_tools = tools
        .iter()
        .any(|tool| tool.path().as_str() == background_tools::START_TOOL);
    tools.push(command_tool(options, policy, has_background_tools)?);
    Ok(CommandTool::instructions())
}

pub(in crate::server) fn command_tool(
    options: RunCommand,
    policy: &Policy,
    has_background_tools: bool,
) -> Result<Arc<Tool>, Error> {
    let tool =
        CommandTool::new(options, policy, has_background_tools).map_err(|reason| Error::Tool {
            name: run_command::NAME.to_owned(),
            reason,
        })?;
    Ok(Arc::new(tool.into_tool()))
}

fn native_resource(described: ResourceDescription) -> Result<Arc<Resource>, Error> {
    let refused = |reason: String| Error::Resource {
        uri: described.uri.clone(),
        reason,
    };
    if !described.uri.contains(':') {
        return Err(refused("a URI must begin with a scheme".to_owned()));
    }
    let path: ScriptPath = described
        .name
        .parse()
        .map_err(|error: mcpd_scriptspec::PathError| refused(format!("its name: {error}")))?;
    let mut definition =
        protocol::method::Resource::new(normalize_uri(&described.uri), described.name);
    definition.description = Some(described.description);
    definition.mime_type = Some(described.resource.mime_type().to_owned());
    let handler = described.resource.into_handler(path);
    Ok(Arc::new(Resource::function(definition, Arc::new(handler))))
}
