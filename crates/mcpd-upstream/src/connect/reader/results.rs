//! Results, each read by the method of its request.

use mcpd_scriptspec::excerpt;
use rmcp::model::{
    CustomResult, DiscoverResult, ErrorCode, ErrorData, ListToolsResult, ServerResult,
};
use serde_json::{Map, Value, json};

use super::{read_or_mend, text, unreadable};
use crate::call::{MAX_EXCERPT, too_long_integer};
use crate::connect::HANDSHAKE;
use crate::mend;
use crate::pending::Kind;
use crate::remarks::Remarks;

/// Reads the result of a request of this kind. Sets `is_mended` if the JSON had to be corrected.
///
/// # Errors
///
/// Returns the error that replaces an unreadable result.
pub(super) fn read(
    json: &str,
    kind: Kind,
    remarks: &Remarks,
    is_mended: &mut bool,
) -> Result<ServerResult, ErrorData> {
    if kind.belongs_to_caller() {
        return read_of_caller(json, kind, remarks, is_mended);
    }
    match kind {
        Kind::Initialize => {
            let mend = |value| mend_greeting(value, remarks);
            read_or_mend(json, is_mended, mend).map(ServerResult::InitializeResult)
        }
        Kind::Discover => read_discovered(json, remarks, is_mended),
        // One invalid entry would fail the typed list; as raw JSON it is read entry by entry.
        Kind::ListTools => match serde_json::from_str::<ListToolsResult>(json) {
            Ok(list) => Ok(ServerResult::ListToolsResult(list)),
            Err(_) => read_custom(json),
        },
        Kind::Listen => serde_json::from_str(json).map_err(unreadable),
        _ => read_custom(json),
    }
}

fn read_custom(json: &str) -> Result<ServerResult, ErrorData> {
    let value = text::parse(json).map_err(unreadable)?;
    let value = match value {
        Value::Null => json!({}),
        value => value,
    };
    Ok(ServerResult::CustomResult(CustomResult::new(value)))
}

/// Reads the result of a caller's request.
fn read_of_caller(
    json: &str,
    kind: Kind,
    remarks: &Remarks,
    is_mended: &mut bool,
) -> Result<ServerResult, ErrorData> {
    // A rounded number would be wrong, so the result is refused.
    if let Some(integer) = too_long_integer(json) {
        let integer = excerpt(integer, MAX_EXCERPT);
        return Err(unreadable(format!(
            "its integer `{integer}` has more than 64 bits and would be rounded"
        )));
    }
    let read = match kind {
        Kind::CallTool => serde_json::from_str(json).map(ServerResult::CallToolResult),
        Kind::GetPrompt => serde_json::from_str(json).map(ServerResult::GetPromptResult),
        _ => serde_json::from_str(json).map(ServerResult::ReadResourceResult),
    };
    if let Ok(result) = read {
        return Ok(result);
    }
    *is_mended = true;
    let value = text::parse(json).map_err(unreadable)?;
    let mended = match (kind, value["resultType"].as_str()) {
        (_, Some("input_required")) => {
            serde_json::from_value(value).map(ServerResult::InputRequiredResult)
        }
        (_, Some("task")) => return Err(unreadable("it is a task, which was not requested")),
        (Kind::CallTool, _) => serde_json::from_value(mend::tool_result(value, remarks))
            .map(ServerResult::CallToolResult),
        (Kind::GetPrompt, _) => serde_json::from_value(mend::prompt_result(value, remarks))
            .map(ServerResult::GetPromptResult),
        _ => serde_json::from_value(mend::resource_result(value, remarks))
            .map(ServerResult::ReadResourceResult),
    };
    mended.map_err(unreadable)
}

/// Reads the answer to `server/discover`. An answer without revisions comes from a server that
/// does not know the method: it becomes an error, after which the server is greeted by a
/// handshake.
fn read_discovered(
    json: &str,
    remarks: &Remarks,
    is_mended: &mut bool,
) -> Result<ServerResult, ErrorData> {
    let mend = |value: Value| {
        let Value::Object(mut members) = value else {
            return value;
        };
        if !members.contains_key("supportedVersions") {
            return Value::Object(members);
        }
        for (name, default) in [
            ("resultType", json!("complete")),
            ("ttlMs", json!(0)),
            ("cacheScope", json!("private")),
        ] {
            members.entry(name).or_insert(default);
        }
        mend_capabilities(&mut members, remarks);
        Value::Object(members)
    };
    let read: Result<DiscoverResult, _> = read_or_mend(json, is_mended, mend);
    read.map(ServerResult::DiscoverResult).map_err(|_| {
        remarks.add("sends an invalid response to `server/discover`");
        ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            "invalid response to `server/discover`",
            None,
        )
    })
}

/// Adds required members that are missing in the answer to `initialize`.
fn mend_greeting(value: Value, remarks: &Remarks) -> Value {
    let Value::Object(mut members) = value else {
        return value;
    };
    if !members.get("protocolVersion").is_some_and(Value::is_string) {
        remarks.add(format!(
            "does not name its protocol revision; {HANDSHAKE} is assumed"
        ));
        let version = HANDSHAKE.as_str().to_owned();
        members.insert("protocolVersion".to_owned(), version.into());
    }
    let is_named = |server: &Value| server["name"].is_string() && server["version"].is_string();
    if !members.get("serverInfo").is_some_and(is_named) {
        remarks.add("does not send its name and version (`serverInfo`)");
    }
    // Other members are not used, and may be wrong as well.
    let server = &members.get("serverInfo").cloned().unwrap_or_default();
    let text = |name: &str| server[name].as_str().unwrap_or_default();
    let server = json!({"name": text("name"), "version": text("version")});
    members.insert("serverInfo".to_owned(), server);
    if !members.get("instructions").is_some_and(Value::is_string) {
        members.remove("instructions");
    }
    members.remove("_meta");
    mend_capabilities(&mut members, remarks);
    Value::Object(members)
}

/// Replaces capabilities that are not objects, such as the empty arrays of languages that do not
/// distinguish them. A server without the member is assumed to have every capability.
fn mend_capabilities(members: &mut Map<String, Value>, remarks: &Remarks) {
    let declared = members.remove("capabilities").unwrap_or_default();
    let Value::Object(declared) = declared else {
        let all = json!({"tools": {}, "prompts": {}, "resources": {}});
        let is_empty = declared.as_array().is_some_and(Vec::is_empty);
        if !is_empty {
            remarks.add("does not declare its `capabilities`; all lists are requested");
        }
        let capabilities = if is_empty { json!({}) } else { all };
        members.insert("capabilities".to_owned(), capabilities);
        return;
    };
    let mut capabilities = Map::new();
    for (name, value) in declared {
        // Other capabilities are not used, and may be wrong as well.
        if !matches!(&*name, "tools" | "prompts" | "resources" | "logging") {
            continue;
        }
        match value {
            Value::Object(mut flags) => {
                flags.retain(|_, flag| flag.is_boolean());
                capabilities.insert(name, flags.into());
            }
            Value::Array(_) | Value::Bool(true) => {
                remarks.add(format!(
                    "declares `{name}` with a value that is not an object"
                ));
                capabilities.insert(name, json!({}));
            }
            _ => {}
        }
    }
    members.insert("capabilities".to_owned(), capabilities.into());
}
