//! The three requests that are passed on, and their results in the words of this server.

use mcpd_protocol::jsonrpc::{ErrorCode, ErrorObject};
use mcpd_protocol::meta::ResultMeta;
use mcpd_protocol::{CallToolResult, GetPromptResult, JsonObject, ReadResourceResult};
use mcpd_server::CallContext;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetPromptRequest,
    GetPromptRequestParams, ReadResourceRequest, ReadResourceRequestParams, ServerResult,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::link::{Failure, Link, TOO_MANY_REQUESTS};
use crate::words;

/// Calls a tool. What goes wrong is a result: the model that made the call reads those.
///
/// # Errors
///
/// The server has too much to do: whoever called can wait and try again, and no model needs to know.
pub(crate) async fn tool(
    link: &Link,
    name: String,
    arguments: &RawValue,
    context: &mut CallContext,
) -> Result<CallToolResult, ErrorObject> {
    match try_tool(link, name, arguments, context).await {
        Ok(result) => Ok(result),
        Err(Failure::Unanswered(told)) => Ok(CallToolResult::error(told)),
        Err(Failure::Refused(error)) if error.code.0 == TOO_MANY_REQUESTS => {
            Err(Failure::Refused(error).into())
        }
        Err(Failure::Refused(error)) => Ok(CallToolResult::error(error.message)),
    }
}

async fn try_tool(
    link: &Link,
    name: String,
    arguments: &RawValue,
    context: &mut CallContext,
) -> Result<CallToolResult, Failure> {
    let arguments: JsonObject = serde_json::from_str(arguments.get())
        .map_err(|error| Failure::Unanswered(format!("Invalid arguments: {error}")))?;
    let params = CallToolRequestParams::new(name).with_arguments(arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let mut result: CallToolResult = match link.request(request, context).await? {
        ServerResult::CallToolResult(result) => translated(link, &result)?,
        other => return Err(no_result(link, &other)),
    };
    result.result_type = None;
    unsigned(&mut result.meta);
    Ok(result)
}

/// Reads a resource.
///
/// # Errors
///
/// That of the server, or why there is no answer of its.
pub(crate) async fn resource(
    link: &Link,
    uri: String,
    context: &mut CallContext,
) -> Result<ReadResourceResult, ErrorObject> {
    let params = ReadResourceRequestParams::new(uri);
    let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
    let mut result: ReadResourceResult = match link.request(request, context).await {
        Ok(ServerResult::ReadResourceResult(result)) => translated(link, &result)?,
        Ok(other) => return Err(no_result(link, &other).into()),
        Err(failure) => return Err(not_read(failure)),
    };
    result.result_type = None;
    (result.ttl_ms, result.cache_scope) = (None, None);
    unsigned(&mut result.meta);
    Ok(result)
}

/// Gets a prompt.
///
/// # Errors
///
/// That of the server, or why there is no answer of its.
pub(crate) async fn prompt(
    link: &Link,
    name: String,
    arguments: JsonObject,
    context: &mut CallContext,
) -> Result<GetPromptResult, ErrorObject> {
    let params = GetPromptRequestParams::new(name).with_arguments(arguments);
    let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
    let mut result: GetPromptResult = match link.request(request, context).await? {
        ServerResult::GetPromptResult(result) => translated(link, &result)?,
        other => return Err(no_result(link, &other).into()),
    };
    result.result_type = None;
    unsigned(&mut result.meta);
    Ok(result)
}

/// The only parameter of a read is the URI, so if that is wrong there is no such resource. Which code says so to a caller
/// is decided where the caller is known.
fn not_read(failure: Failure) -> ErrorObject {
    let mut error = ErrorObject::from(failure);
    if error.code == ErrorCode::INVALID_PARAMS {
        error.code = ErrorCode::RESOURCE_NOT_FOUND;
    }
    error
}

fn translated<T: DeserializeOwned>(link: &Link, result: &impl Serialize) -> Result<T, Failure> {
    words::translated(result).map_err(|error| link.confused(error))
}

fn no_result(link: &Link, answer: &ServerResult) -> Failure {
    match answer {
        ServerResult::InputRequiredResult(_) => link.asks_back(),
        _ => link.confused("it answers another question"),
    }
}

/// What is served here is answered for here.
fn unsigned(meta: &mut ResultMeta) {
    meta.server_info = None;
}
