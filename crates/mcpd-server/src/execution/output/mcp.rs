//! Output format `"output": "mcp"`: a script prints one object in the shape of its method's
//! result, or an error of the protocol, or questions.

use std::borrow::Cow;

use indexmap::IndexMap;
use mcpd_protocol::jsonrpc::{ErrorCode, ErrorObject};
use mcpd_protocol::method::{
    CallToolResult, GetPromptResult, InputRequests, PromptMessage, ReadResourceResult,
};
use serde_json::Value;
use serde_json::value::RawValue;

use super::files::EmbeddedFiles;
use super::json_output::{OutputError, OutputObject, json_terms};
use crate::execution::input_rounds::{InputQuestions, RunResult};
use crate::message::raw::raw;

pub(super) mod check;

/// Parses the output of a script; `result` parses the shape of the method's result.
pub(super) fn read<R>(
    output: &[u8],
    result: impl FnOnce(&OutputObject<'_>) -> Result<R, OutputError>,
) -> Result<RunResult<R>, OutputError> {
    let object = OutputObject::read(output)?;
    if let Some(error) = object.member("error")? {
        return check_error(error).map(RunResult::Refused);
    }
    if object.has("inputRequests") || object.has("requestState") {
        return parse_question(&object).map(RunResult::Ask);
    }
    result(&object).map(RunResult::Complete)
}

fn check_error(error: ErrorObject) -> Result<ErrorObject, OutputError> {
    if error.code.is_free() {
        return Ok(error);
    }
    Err(OutputError::new(format!(
        "`error.code`: {} is reserved; use {} for invalid arguments, {} for failures, or a number outside of {} to {}",
        error.code,
        ErrorCode::INVALID_PARAMS,
        ErrorCode::INTERNAL_ERROR,
        ErrorCode::RESERVED.start(),
        ErrorCode::RESERVED.end(),
    )))
}

fn parse_question(object: &OutputObject<'_>) -> Result<InputQuestions, OutputError> {
    let requests: InputRequests = object.member("inputRequests")?.unwrap_or_default();
    let state = object.member::<Box<RawValue>>("requestState")?;
    if requests.is_empty() && state.is_none() {
        return Err(OutputError::new(
            "`inputRequests`: expected at least one request",
        ));
    }
    for (key, request) in &requests {
        request.check().map_err(|reason| {
            OutputError::new(format!(
                "`inputRequests.{key}.params`: {}",
                json_terms(&reason)
            ))
        })?;
    }
    Ok(InputQuestions { requests, state })
}

/// Parses the shape of `CallToolResult`.
pub(super) fn tool(
    object: &OutputObject<'_>,
    files: &mut EmbeddedFiles<'_>,
) -> Result<CallToolResult, OutputError> {
    let content = object.elements("content", |block| files.embed(block), check::block)?;
    let structured: Option<Box<RawValue>> = object.member("structuredContent")?;
    let mut result = match (content, &structured) {
        (Some(content), None) => CallToolResult::new(content),
        (Some(content), Some(_)) if !content.is_empty() => CallToolResult::new(content),
        // "a tool that returns structured content SHOULD also return the serialized JSON in a
        // TextContent block" -- 2026-07-28/server/tools#structured-content
        (_, Some(structured)) => CallToolResult::text(structured.get()),
        (None, None) => {
            return Err(OutputError::new(
                "expected `content`, `structuredContent`, `error` or `inputRequests`",
            ));
        }
    };
    result.structured_content = structured;
    result.is_error = Some(object.member("isError")?.unwrap_or_default());
    result.meta = object.member("_meta")?.unwrap_or_default();
    Ok(result)
}

/// Parses the shape of `GetPromptResult`.
pub(super) fn prompt(
    object: &OutputObject<'_>,
    files: &mut EmbeddedFiles<'_>,
) -> Result<GetPromptResult, OutputError> {
    let messages = object
        .elements(
            "messages",
            |message| files.embed(message),
            |message: &PromptMessage| check::block(&message.content),
        )?
        .ok_or_else(|| OutputError::new("expected `messages`, `error` or `inputRequests`"))?;
    let mut result = GetPromptResult::new(messages);
    result.description = object.member("description")?;
    result.meta = object.member("_meta")?.unwrap_or_default();
    Ok(result)
}

/// Parses the shape of `ReadResourceResult`; contents without a URI get the requested one.
pub(super) fn resource(
    object: &OutputObject<'_>,
    files: &mut EmbeddedFiles<'_>,
    uri: &str,
) -> Result<ReadResourceResult, OutputError> {
    let prepare = |contents: &mut Value| {
        if let Some(members) = contents.as_object_mut() {
            members.entry("uri").or_insert_with(|| uri.into());
        }
        files.embed(contents)
    };
    let contents = object
        .elements("contents", prepare, check::contents)?
        .filter(|contents: &Vec<_>| !contents.is_empty())
        .ok_or_else(|| {
            OutputError::new(
                "expected `contents` with at least one element, `error` or `inputRequests`",
            )
        })?;
    let mut result = ReadResourceResult::new(contents);
    result.ttl_ms = object.member("ttlMs")?;
    result.cache_scope = object.member("cacheScope")?;
    result.meta = object.member("_meta")?.unwrap_or_default();
    Ok(result)
}

/// Returns the output with the files that it names; `None` if it names none.
pub(super) fn embed_files(output: &[u8], files: &mut EmbeddedFiles<'_>) -> Option<Vec<u8>> {
    /// Members with items that may name a file.
    const MEMBERS: [&str; 3] = ["content", "messages", "contents"];
    let text = mcpd_scriptspec::output::json_output(output).ok()?;
    let mut members: IndexMap<Cow<'_, str>, Cow<'_, RawValue>> = serde_json::from_str(text).ok()?;
    let mut is_changed = false;
    for name in MEMBERS {
        let Some(member) = members.get_mut(name) else {
            continue;
        };
        let Ok(mut items) = serde_json::from_str::<Vec<Value>>(member.get()) else {
            continue;
        };
        if items.iter_mut().any(EmbeddedFiles::is_named_in) {
            is_changed = true;
            for item in &mut items {
                files.embed_for_front(item);
            }
            *member = Cow::Owned(raw(&items));
        }
    }
    let output = is_changed.then(|| serde_json::to_vec(&members));
    output?.ok()
}

#[cfg(test)]
mod tests;
