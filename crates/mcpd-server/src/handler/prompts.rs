//! `prompts/get`.

use mcpd_protocol::GetPromptRequestParams;
use mcpd_protocol::jsonrpc::{ErrorObject, Request};

use crate::Server;
use crate::call::{self, Call};
use crate::context::Context;
use crate::dispatch::Handled;
use crate::interaction::Brought;
use crate::output;

/// Runs the script behind a prompt. "Servers SHOULD validate prompt arguments before processing": what is
/// wrong with them is an error, for a person is there to read it.
pub(crate) fn get(
    server: &Server,
    request: &Request<'_>,
    context: Context,
) -> Result<Handled, ErrorObject> {
    let params: GetPromptRequestParams = request.parse_params()?;
    let catalog = server.catalog_for(&context.principal);
    let prompt = catalog.prompt(&params.name).ok_or_else(|| {
        let is_there = server.catalog().prompt(&params.name).is_some();
        context
            .trail
            .ended_as(if is_there { "denied" } else { "unknown-prompt" });
        ErrorObject::invalid_params(format!(
            "unknown prompt `{}`; prompts/list has the names",
            params.name
        ))
    })?;
    let spec = &prompt.script().spec;
    context.trail.names(prompt.path(), Some(spec));
    let named = ("prompts/get", prompt.path().as_str());
    let arguments = call::arguments(params.arguments.unwrap_or_default());
    let call = Call::new(server, prompt.script(), named, Some(&arguments), &context)
        .map_err(|refusal| refusal.into_error(context.version.wire()))?;
    let brought = Brought {
        responses: params.input_responses,
        state: params.request_state,
    };
    Ok(Handled::later(async move {
        context.encode_content(call.result(brought, output::prompt_result).await?)
    }))
}
