//! Handler of `prompts/get`: runs the script behind a prompt, or asks its source.

use mcpd_protocol::Params;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::GetPromptRequestParams;

use crate::catalog::handler::{EntryBody, convert_error};
use crate::client::request::context::Context;
use crate::execution::call::ScriptCall;
use crate::execution::input_rounds::Resumption;
use crate::execution::output;
use crate::message::arguments::text_arguments;
use crate::message::raw::raw;
use crate::message::reply::Handled;
use crate::server::Server;

/// Runs the script behind a prompt, or asks its source. "Servers SHOULD validate prompt arguments
/// before processing": faulty arguments are an error, for a person is there to read it.
pub(crate) fn get(
    server: &Server,
    params: &Params<'_>,
    context: Context,
) -> Result<Handled, ErrorObject> {
    let params: GetPromptRequestParams = context.parse(params)?;
    let catalog = server.catalog_for(&context.peer.principal);
    let prompt = catalog.prompt(&params.name).ok_or_else(|| {
        let whole = server.catalog();
        let there = whole.prompt(&params.name);
        if let Some(prompt) = there {
            context.record.set_tool(prompt.path(), prompt.body().spec());
        }
        let unknown = ErrorObject::invalid_params(format!(
            "unknown prompt `{}`; see prompts/list",
            params.name
        ));
        context.refuse(there.map(|prompt| prompt.path()), "unknown-prompt", unknown)
    })?;
    context.record.set_tool(prompt.path(), prompt.body().spec());
    let arguments = text_arguments(params.arguments.unwrap_or_default());
    let given = raw(&arguments);
    let body = prompt.body();
    context
        .judge(prompt.path(), Some(&given), body.spec(), || body.defaults())
        .map_err(ErrorObject::invalid_params)?;
    let script = match body {
        EntryBody::Script(script) => script,
        EntryBody::Function(handler) => {
            let result = handler.handle(
                server.call_host(),
                &context,
                ("prompt", prompt.path().as_str()),
                arguments,
            );
            return Ok(Handled::later(async move {
                context.encode_content(result.await.map_err(convert_error)?)
            }));
        }
    };
    let named = ("prompts/get", prompt.path().as_str());
    let call = ScriptCall::new(server.engine(), script, named, Some(&given), &context)
        .map_err(|refusal| refusal.into_error(context.version.wire()))?;
    let resumption = Resumption {
        responses: params.input_responses,
        state: params.request_state,
    };
    Ok(Handled::later(async move {
        context.encode_content(
            call.run_to_result(resumption, |script, outcome| {
                output::interpret(script, outcome, output::prompt)
            })
            .await?,
        )
    }))
}
