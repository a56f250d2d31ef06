//! `resources/list`, `resources/templates/list` and `resources/read`: the state of stateful scripts.

use std::sync::Arc;

use mcpd_exec::{Command, Outcome};
use mcpd_protocol::jsonrpc::{ErrorObject, Request};
use mcpd_protocol::{ListResourceTemplatesResult, ReadResourceRequestParams, ReadResourceResult};
use mcpd_protocol::{ResourceBody, ResourceContents};
use mcpd_scriptspec::ScriptPath;

use crate::Server;
use crate::context::Context;
use crate::dispatch::{Handled, MethodResult};
use crate::handler::tools::refuse_cursor;
use crate::tool::Script;

/// Every resource.
pub(crate) fn list(server: &Server, request: &Request<'_>, context: &Context) -> MethodResult {
    refuse_cursor(request)?;
    Ok(server
        .catalog()
        .resources_list(context.version, &context.stamp))
}

/// There are none yet, but clients ask.
pub(crate) fn list_templates(request: &Request<'_>, context: &Context) -> MethodResult {
    refuse_cursor(request)?;
    context.encode(ListResourceTemplatesResult::new(Vec::new()))
}

/// Reads a resource by asking the script behind it.
pub(crate) fn read(
    server: &Server,
    request: &Request<'_>,
    context: Context,
) -> Result<Handled, ErrorObject> {
    let params: ReadResourceRequestParams = request.parse_params()?;
    let catalog = server.catalog();
    let script = ScriptPath::from_state_uri(&params.uri)
        .and_then(|path| {
            catalog
                .tool(path.as_str())
                .filter(|tool| *tool.path() == path)
                .cloned()
        })
        .and_then(|tool| tool.stateful_script().cloned())
        .ok_or_else(|| ErrorObject::resource_not_found(&params.uri, context.version.wire()))?;
    let server = server.clone();
    Ok(Handled::later(async move {
        let contents = read_state(&server, &script, params.uri).await?;
        context.encode(ReadResourceResult::new(vec![contents]))
    }))
}

async fn read_state(
    server: &Server,
    script: &Arc<Script>,
    uri: String,
) -> Result<ResourceContents, ErrorObject> {
    let command = Command::new(&script.file)
        .arg("--state")
        .current_dir(&script.directory)
        .limits(server.limits().clone());
    let command = server
        .environment()
        .prepare(command)
        .env("MCPD_TOOL", script.path.as_str());
    let outcome = server.executor().run(command).await.map_err(|error| {
        tracing::error!(script = %script.path, "failed to {error}");
        unreadable(script, "it could not be started")
    })?;
    if !outcome.success() {
        tracing::warn!(script = %script.path, ending = ?outcome.ending, "`--state` failed: {}", outcome.stderr.to_text_lossy());
        return Err(unreadable(script, "`--state` did not end with exit code 0"));
    }
    Ok(contents(&outcome, uri))
}

/// JSON is JSON; everything else is text.
fn contents(outcome: &Outcome, uri: String) -> ResourceContents {
    let mut text = outcome.stdout.to_text_lossy();
    if text.ends_with('\n') {
        text.pop();
    }
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
    let mime_type = if is_json {
        "application/json"
    } else {
        "text/plain"
    };
    let mut contents = ResourceContents::new(uri, ResourceBody::Text(text));
    contents.mime_type = Some(mime_type.to_owned());
    contents
}

/// The cause is for the operator's log; a client can do nothing about it.
fn unreadable(script: &Script, reason: &str) -> ErrorObject {
    ErrorObject::internal_error(format!(
        "the state of `{}` can't be read: {reason}",
        script.path
    ))
}
