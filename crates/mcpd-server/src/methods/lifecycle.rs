//! Handlers of identity and capabilities of the server: `server/discover` on the stateless wire,
//! the result of `initialize` on the stateful one, and the small methods around them.

use bytes::Bytes;
use mcpd_protocol::ClientCapabilities;
use mcpd_protocol::JsonObject;
use mcpd_protocol::Params;
use mcpd_protocol::ProtocolVersion;
use mcpd_protocol::Stamp;
use mcpd_protocol::Wire;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{
    DiscoverResult, InitializeRequestParams, InitializeResult, SKILLS_EXTENSION,
    SetLevelRequestParams, TASKS_EXTENSION,
};
use mcpd_protocol::{ListCapability, ResourcesCapability, ServerCapabilities};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::instructions;
use crate::client::request::context::{self, Context};
use crate::client::session::Introduction;
use crate::message::apps::{APP_TYPE, APPS_EXTENSION};
use crate::message::downgrade::Downgrade as _;
use crate::message::reply::{Handled, MethodResult};
use crate::policy::principal::Principal;
use crate::server::Server;

/// Maximum size of the capabilities and the name that a client sends in `initialize`, in bytes:
/// they are kept as long as the session.
const MAX_INTRODUCTION_BYTES: usize = 16 * 1024;

/// Answers `server/discover`.
pub(crate) fn discover(server: Server, context: Context) -> Handled {
    if server.live_catalog().is_scanned() {
        return Handled::Now(describe_server(&server, &context));
    }
    Handled::later(async move {
        instructions::wait_for_catalog(&server).await;
        describe_server(&server, &context)
    })
}

fn describe_server(server: &Server, context: &Context) -> MethodResult {
    // The order is "newest first": clients that pick the first entry expect it.
    let versions = ProtocolVersion::ALL.into_iter().rev();
    let mut result = DiscoverResult::new(versions, capabilities(server, context.version));
    result.instructions = instructions::instructions(server, &context.peer.principal);
    context.encode(result)
}

/// Negotiates the revision in which [`initialize`] answers.
///
/// # Errors
///
/// The parameters are malformed or too long.
pub(crate) fn introduce(server: &Server, params: &Params<'_>) -> Result<Introduction, ErrorObject> {
    check_length(params)?;
    let params: InitializeRequestParams = params.parse()?;
    let version = ProtocolVersion::negotiate(&params.protocol_version);
    tracing::debug!(client = params.client_info.name, version = params.client_info.version, %version, "initialize");
    Ok(Introduction {
        version,
        capabilities: adjust_capabilities(params.capabilities, version),
        client: Some(params.client_info),
        is_given: true,
        has_list_changes: server.is_watching(),
    })
}

/// Makes the result of `initialize` for a client that has introduced itself.
pub(crate) async fn initialize(
    server: Server,
    version: ProtocolVersion,
    principal: Principal,
) -> MethodResult {
    instructions::wait_for_catalog(&server).await;
    let identity = server.engine().identity.load();
    let mut implementation = identity.implementation().clone();
    implementation.downgrade(version);
    let mut result = InitializeResult::new(version, capabilities(&server, version), implementation);
    result.instructions = instructions::instructions(&server, &principal);
    context::encode(&Stamp::Stateful, result)
}

fn check_length(params: &Params<'_>) -> Result<(), ErrorObject> {
    #[derive(Deserialize)]
    struct KeptParams<'a> {
        #[serde(borrow)]
        capabilities: Option<&'a RawValue>,
        #[serde(borrow, rename = "clientInfo")]
        client_info: Option<&'a RawValue>,
    }
    let kept: KeptParams<'_> = params.parse()?;
    let kept = kept.capabilities.into_iter().chain(kept.client_info);
    if kept.map(|value| value.get().len()).sum::<usize>() <= MAX_INTRODUCTION_BYTES {
        return Ok(());
    }
    Err(ErrorObject::invalid_params(format!(
        "`capabilities` and `clientInfo` may have at most {MAX_INTRODUCTION_BYTES} bytes together"
    )))
}

/// Adjusts the declared capabilities to the revision: removes those that it does not know, since
/// the server could not use them, and adds those that every client of the revision has
/// undeclared.
fn adjust_capabilities(
    mut declared: ClientCapabilities,
    version: ProtocolVersion,
) -> ClientCapabilities {
    declared.elicitation = declared
        .elicitation
        .filter(|_| version.has_elicitation())
        .map(|mut elicitation| {
            elicitation.url = elicitation.url.filter(|_| version.has_url_elicitation());
            elicitation
        });
    if let Some(sampling) = &mut declared.sampling
        && !version.has_sampling_tools()
    {
        sampling.tools = None;
        sampling.context.get_or_insert_default();
    }
    declared
}

/// Empty result, with which methods on the stateful wire acknowledge a request.
pub(crate) fn empty() -> Bytes {
    Bytes::from_static(b"{}")
}

/// Sets the log level of the session.
pub(crate) fn set_level(params: &Params<'_>, context: &Context) -> MethodResult {
    let params: SetLevelRequestParams = params.parse()?;
    if let Some(session) = &context.session {
        session.set_log_level(params.level);
    }
    Ok(empty())
}

impl Server {
    /// Capabilities for a client of the newest revision.
    #[must_use]
    pub fn capabilities(&self) -> ServerCapabilities {
        capabilities(self, ProtocolVersion::LATEST)
    }
}

pub(crate) fn capabilities(server: &Server, version: ProtocolVersion) -> ServerCapabilities {
    let list_changed = Some(server.is_watching());
    let mut list = ListCapability::default();
    list.list_changed = list_changed;
    let mut resources = ResourcesCapability::default();
    resources.list_changed = list_changed;
    resources.subscribe = Some(true);
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(list.clone());
    capabilities.prompts = Some(list);
    capabilities.resources = Some(resources);
    capabilities.completions = version.has_completions_capability().then(JsonObject::new);
    // Deprecated on the stateless wire, where a request asks for messages without it.
    capabilities.logging = (version.wire() == Wire::Stateful).then(JsonObject::new);
    let extensions = extensions(server, version);
    capabilities.extensions = (!extensions.is_empty()).then_some(extensions);
    capabilities
}

fn extensions(server: &Server, version: ProtocolVersion) -> JsonObject {
    let mut extensions = JsonObject::new();
    if server.tasks().is_some() && version.wire() == Wire::Stateless {
        extensions.insert(TASKS_EXTENSION.to_owned(), json!({}));
    }
    if server.catalog().has_apps() {
        extensions.insert(APPS_EXTENSION.to_owned(), json!({"mimeTypes": [APP_TYPE]}));
    }
    if !server.catalog().skills().is_empty() {
        extensions.insert(SKILLS_EXTENSION.to_owned(), json!({}));
    }
    extensions
}
