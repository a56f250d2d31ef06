//! `tools/call`.

use mcpd_protocol::CallToolRequestParams;
use mcpd_protocol::jsonrpc::{ErrorObject, Request};

use crate::Server;
use crate::context::Context;
use crate::dispatch::Handled;
use crate::interaction::Brought;

/// Runs a tool. Whatever goes wrong in the tool, its arguments included, is a result; only a call that
/// names no tool is an error. "Errors that originate from the tool SHOULD be reported inside the
/// result object" -- 2026-07-28/server/tools#error-handling
pub(crate) fn call(
    server: &Server,
    request: &Request<'_>,
    context: Context,
) -> Result<Handled, ErrorObject> {
    let params: CallToolRequestParams = request.parse_params()?;
    let catalog = server.catalog_for(&context.principal);
    let tool = catalog.tool(&params.name).ok_or_else(|| {
        context.trail.ended_as("unknown-tool");
        ErrorObject::invalid_params(format!(
            "unknown tool `{}`; tools/list has the names",
            params.name
        ))
    })?;
    let spec = tool.script().map(|script| &script.spec);
    context.trail.names(tool.path(), spec);
    if let Some(headers) = &context.parameters {
        tool.check_headers(headers, params.arguments.as_deref())?;
    }
    let brought = Brought {
        responses: params.input_responses,
        state: params.request_state,
    };
    let run = tool.call(server, params.arguments.as_deref(), brought, &context);
    Ok(Handled::later(async move {
        let result = run.await?;
        context.trail.answers(&result);
        context.encode_content(result)
    }))
}
