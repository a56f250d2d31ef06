//! The three requests that are passed on, and the conversion of their results to this server's
//! types.

use std::fmt::Display;

use mcpd_protocol::JsonObject;
use mcpd_protocol::jsonrpc::{ErrorCode, ErrorObject};
use mcpd_protocol::meta::ResultMeta;
use mcpd_protocol::method::{CallToolResult, GetPromptResult, ReadResourceResult};
use mcpd_scriptspec::excerpt;
use mcpd_server::CallContext;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetPromptRequest,
    GetPromptRequestParams, ReadResourceRequest, ReadResourceRequestParams, ServerResult,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::link::{Failure, Link, TOO_MANY_REQUESTS};

/// Maximum length of a number in a message, in characters.
pub(crate) const MAX_EXCERPT: usize = 40;

/// Calls a tool. A failure becomes an error result, which the model that made the call reads.
///
/// # Errors
///
/// Fails if the server is overloaded: the caller can wait and try again, and no model needs to
/// know.
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
    let invalid = |why: &dyn Display| Failure::Unanswered(format!("Invalid arguments: {why}"));
    // A call with a rounded number would be about something else, so it is refused.
    if let Some(integer) = too_long_integer(arguments.get()) {
        let integer = excerpt(integer, MAX_EXCERPT);
        let why = format!("the integer `{integer}` has more than 64 bits and would be rounded");
        return Err(invalid(&why));
    }
    let arguments: JsonObject =
        serde_json::from_str(arguments.get()).map_err(|error| invalid(&error))?;
    let params = CallToolRequestParams::new(name).with_arguments(arguments);
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let mut result: CallToolResult = match link.request(request, context).await? {
        ServerResult::CallToolResult(result) => convert(link, &result)?,
        other => return Err(no_result(link, &other)),
    };
    result.result_type = None;
    remove_server_info(&mut result.meta);
    Ok(result)
}

/// Removes a structured result that is `null`, which has no meaning for a tool without an output
/// schema.
pub(crate) fn leave_out_null(link: &Link, result: &mut CallToolResult) {
    let is_null = |structured: &mut Box<RawValue>| structured.get() == "null";
    if result.structured_content.take_if(is_null).is_some() {
        link.remarks()
            .add("sends `structuredContent` that is `null`; it is dropped");
    }
}

/// Returns the first integer in a JSON text that fits neither an `i64` nor a `u64`: it would be
/// passed on as the nearest double.
pub(crate) fn too_long_integer(json: &str) -> Option<&str> {
    let mut rest = json;
    while let Some(start) = rest.find(|char: char| matches!(char, '"' | '-' | '0'..='9')) {
        rest = &rest[start..];
        let end = if let Some(text) = rest.strip_prefix('"') {
            let mut is_escaped = false;
            let closing = text.find(|char| {
                let was_escaped = is_escaped;
                is_escaped = char == '\\' && !was_escaped;
                char == '"' && !was_escaped
            });
            closing.map_or(rest.len(), |closing| closing + 2)
        } else {
            let is_part = |char: char| char.is_ascii_alphanumeric() || "+-.".contains(char);
            rest.find(|char| !is_part(char)).unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(end);
        let is_integer = !token.contains(['"', '.', 'e', 'E']);
        if is_integer && token.parse::<i64>().is_err() && token.parse::<u64>().is_err() {
            return Some(token);
        }
        rest = after;
    }
    None
}

/// Reads a resource.
///
/// # Errors
///
/// Returns the error of the server, or the reason why it gave no answer.
pub(crate) async fn resource(
    link: &Link,
    uri: String,
    context: &mut CallContext,
) -> Result<ReadResourceResult, ErrorObject> {
    let params = ReadResourceRequestParams::new(uri);
    let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
    let mut result: ReadResourceResult = match link.request(request, context).await {
        Ok(ServerResult::ReadResourceResult(result)) => convert(link, &result)?,
        Ok(other) => return Err(no_result(link, &other).into()),
        Err(failure) => return Err(not_read(failure)),
    };
    result.result_type = None;
    (result.ttl_ms, result.cache_scope) = (None, None);
    remove_server_info(&mut result.meta);
    Ok(result)
}

/// Gets a prompt.
///
/// # Errors
///
/// Returns the error of the server, or the reason why it gave no answer.
pub(crate) async fn prompt(
    link: &Link,
    name: String,
    arguments: JsonObject,
    context: &mut CallContext,
) -> Result<GetPromptResult, ErrorObject> {
    let params = GetPromptRequestParams::new(name).with_arguments(arguments);
    let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
    let mut result: GetPromptResult = match link.request(request, context).await? {
        ServerResult::GetPromptResult(result) => convert(link, &result)?,
        other => return Err(no_result(link, &other).into()),
    };
    result.result_type = None;
    remove_server_info(&mut result.meta);
    Ok(result)
}

/// Converts the failure of a read. The URI is its only parameter, so invalid parameters mean an
/// unknown resource. The code for the caller depends on the caller's wire and is chosen elsewhere.
fn not_read(failure: Failure) -> ErrorObject {
    let mut error = ErrorObject::from(failure);
    if error.code == ErrorCode::INVALID_PARAMS {
        error.code = ErrorCode::RESOURCE_NOT_FOUND;
    }
    error
}

fn convert<T: DeserializeOwned>(link: &Link, result: &impl Serialize) -> Result<T, Failure> {
    link.convert_redacted(result)
        .map_err(|error| link.invalid_answer(error))
}

fn no_result(link: &Link, answer: &ServerResult) -> Failure {
    match answer {
        ServerResult::InputRequiredResult(_) => link.input_required(),
        _ => link.invalid_answer("it is the response to another request"),
    }
}

/// Removes the identity of the upstream server: this server answers in its own name.
fn remove_server_info(meta: &mut ResultMeta) {
    meta.server_info = None;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Option<&str>) {
        assert_eq!(too_long_integer(json), expected);
    }

    #[test]
    fn too_long_integer_is_found_anywhere() {
        check(
            r#"{"a": 18446744073709551615, "b": -9223372036854775808}"#,
            None,
        );
        check(
            r#"{"a": 1.8446744073709551616e19, "b": [1e30], "c": true}"#,
            None,
        );
        check(r#"{"18446744073709551616": "18446744073709551616"}"#, None);
        check(r#"{"a\\": "\" 18446744073709551616 \\"}"#, None);
        check(
            r#"{"a": 18446744073709551616}"#,
            Some("18446744073709551616"),
        );
        check(
            r#"{"\"": [{"a": -9223372036854775809}, 1]}"#,
            Some("-9223372036854775809"),
        );
    }
}
