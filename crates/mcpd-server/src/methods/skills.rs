//! Handler of `skills/get`. The files of a skill are resources.

use mcpd_protocol::Params;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{GetSkillRequestParams, GetSkillResult};

use crate::client::request::context::Context;
use crate::message::reply::MethodResult;
use crate::server::Server;

/// Returns the skill whose `SKILL.md` has the URI.
pub(crate) fn get(server: &Server, params: &Params<'_>, context: &Context) -> MethodResult {
    let params: GetSkillRequestParams = params.parse()?;
    let catalog = server.catalog_for(&context.peer.principal);
    let skill = catalog.skill(&params.uri).ok_or_else(|| {
        ErrorObject::invalid_params(format!("no skill is served at {}", params.uri))
    })?;
    context.encode(GetSkillResult::new(skill.definition().clone()))
}
