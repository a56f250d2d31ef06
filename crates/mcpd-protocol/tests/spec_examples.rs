//! Examples of every modelled type of the official schema, read and written again without loss.
//!
//! The crate's own examples are in `spec_examples/`, one file per type: a JSON object of cases by
//! name. When `MCP_SCHEMA_EXAMPLES` names a directory of official ones, laid out as
//! `<Type>/<case>.json`, those are run as well.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mcpd_protocol as p;
use mcpd_protocol::jsonrpc::{self, ErrorObject, Message};
use mcpd_protocol::{Method, NotificationMethod};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a JSON text as one type and writes it again.
type Roundtrip = fn(&str) -> Result<Value, String>;

/// Round trip of a value by itself.
fn value<T: Serialize + DeserializeOwned>(text: &str) -> Result<Value, String> {
    let value: T = serde_json::from_str(text).map_err(|e| e.to_string())?;
    serde_json::to_value(value).map_err(|e| e.to_string())
}

/// Round trip of a whole request with the parameters of `M`.
fn request<M: Method>(text: &str) -> Result<Value, String> {
    match Message::decode(text.as_bytes()) {
        Ok(Message::Request(request)) if request.method == M::NAME => {
            let params: M::Params = request.parse_params().map_err(|e| e.to_string())?;
            written(jsonrpc::request(&request.id, M::NAME, &params))
        }
        other => Err(format!("not a request for {}: {other:?}", M::NAME)),
    }
}

/// Round trip of a whole notification with the parameters of `N`.
fn notification<N: NotificationMethod>(text: &str) -> Result<Value, String> {
    match Message::decode(text.as_bytes()) {
        Ok(Message::Notification(notification)) if notification.method == N::NAME => {
            let params: N::Params = notification.parse_params().map_err(|e| e.to_string())?;
            written(jsonrpc::notification(N::NAME, &params))
        }
        other => Err(format!("not a notification {}: {other:?}", N::NAME)),
    }
}

/// Round trip of a whole response with the result of `M`.
fn response<M: Method>(text: &str) -> Result<Value, String> {
    match Message::decode(text.as_bytes()) {
        Ok(Message::Response(response)) => {
            let id = response.id.ok_or("no id")?;
            let result = response.outcome.map_err(|e| e.to_string())?;
            let result = value::<M::Result>(result.get())?;
            written(Ok(jsonrpc::response_raw(
                &id,
                result.to_string().as_bytes(),
            )))
        }
        other => Err(format!("not a response: {other:?}")),
    }
}

/// Round trip of a whole error response.
fn error(text: &str) -> Result<Value, String> {
    match Message::decode(text.as_bytes()) {
        Ok(Message::Response(response)) => {
            let error = response.outcome.err().ok_or("not an error")?;
            written(Ok(jsonrpc::error_response(response.id.as_ref(), &error)))
        }
        other => Err(format!("not a response: {other:?}")),
    }
}

fn written(encoded: serde_json::Result<Vec<u8>>) -> Result<Value, String> {
    encoded
        .and_then(|bytes| serde_json::from_slice(&bytes))
        .map_err(|e| e.to_string())
}

/// Modelled types, by their names in the schema.
const MODELLED: &[(&str, Roundtrip)] = &[
    ("AudioContent", value::<p::content::ContentBlock>),
    (
        "BlobResourceContents",
        value::<p::content::ResourceContents>,
    ),
    ("CallToolRequest", request::<p::method::CallToolRequest>),
    (
        "CallToolRequestParams",
        value::<p::method::CallToolRequestParams>,
    ),
    ("CallToolResult", value::<p::method::CallToolResult>),
    (
        "CallToolResultResponse",
        response::<p::method::CallToolRequest>,
    ),
    (
        "CancelledNotification",
        notification::<p::method::CancelledNotification>,
    ),
    (
        "CancelledNotificationParams",
        value::<p::method::CancelledNotificationParams>,
    ),
    ("ClientCapabilities", value::<p::ClientCapabilities>),
    ("CompleteRequest", request::<p::method::CompleteRequest>),
    (
        "CompleteRequestParams",
        value::<p::method::CompleteRequestParams>,
    ),
    ("CompleteResult", value::<p::method::CompleteResult>),
    (
        "CompleteResultResponse",
        response::<p::method::CompleteRequest>,
    ),
    ("CreateMessageRequest", value::<p::method::InputRequest>),
    ("DiscoverRequest", request::<p::method::DiscoverRequest>),
    ("DiscoverResult", value::<p::method::DiscoverResult>),
    (
        "DiscoverResultResponse",
        response::<p::method::DiscoverRequest>,
    ),
    ("ElicitRequest", value::<p::method::InputRequest>),
    ("EmbeddedResource", value::<p::content::ContentBlock>),
    ("EmptyResult", value::<p::method::EmptyResult>),
    ("GetPromptRequest", request::<p::method::GetPromptRequest>),
    (
        "GetPromptRequestParams",
        value::<p::method::GetPromptRequestParams>,
    ),
    ("GetPromptResult", value::<p::method::GetPromptResult>),
    (
        "GetPromptResultResponse",
        response::<p::method::GetPromptRequest>,
    ),
    ("HeaderMismatchError", error),
    ("ImageContent", value::<p::content::ContentBlock>),
    ("InitializeRequest", request::<p::method::InitializeRequest>),
    ("InitializeResult", value::<p::method::InitializeResult>),
    (
        "InitializedNotification",
        notification::<p::method::InitializedNotification>,
    ),
    ("InputRequests", value::<p::method::InputRequests>),
    (
        "InputRequiredResult",
        value::<p::method::InputRequiredResult>,
    ),
    ("InputResponses", value::<p::method::InputResponses>),
    ("InternalError", value::<ErrorObject>),
    ("InvalidParamsError", value::<ErrorObject>),
    (
        "ListPromptsRequest",
        request::<p::method::ListPromptsRequest>,
    ),
    ("ListPromptsResult", value::<p::method::ListPromptsResult>),
    (
        "ListPromptsResultResponse",
        response::<p::method::ListPromptsRequest>,
    ),
    (
        "ListResourceTemplatesRequest",
        request::<p::method::ListResourceTemplatesRequest>,
    ),
    (
        "ListResourceTemplatesResult",
        value::<p::method::ListResourceTemplatesResult>,
    ),
    (
        "ListResourceTemplatesResultResponse",
        response::<p::method::ListResourceTemplatesRequest>,
    ),
    (
        "ListResourcesRequest",
        request::<p::method::ListResourcesRequest>,
    ),
    (
        "ListResourcesResult",
        value::<p::method::ListResourcesResult>,
    ),
    (
        "ListResourcesResultResponse",
        response::<p::method::ListResourcesRequest>,
    ),
    ("ListToolsRequest", request::<p::method::ListToolsRequest>),
    ("ListToolsResult", value::<p::method::ListToolsResult>),
    (
        "ListToolsResultResponse",
        response::<p::method::ListToolsRequest>,
    ),
    (
        "LoggingMessageNotification",
        notification::<p::method::LoggingMessageNotification>,
    ),
    (
        "LoggingMessageNotificationParams",
        value::<p::method::LoggingMessageNotificationParams>,
    ),
    ("MethodNotFoundError", value::<ErrorObject>),
    ("MissingRequiredClientCapabilityError", error),
    (
        "PaginatedRequestParams",
        value::<p::method::PaginatedRequestParams>,
    ),
    ("ParseError", value::<ErrorObject>),
    ("PingRequest", request::<p::method::PingRequest>),
    (
        "ProgressNotification",
        notification::<p::method::ProgressNotification>,
    ),
    (
        "ProgressNotificationParams",
        value::<p::method::ProgressNotificationParams>,
    ),
    (
        "PromptListChangedNotification",
        notification::<p::method::PromptListChangedNotification>,
    ),
    (
        "ReadResourceRequest",
        request::<p::method::ReadResourceRequest>,
    ),
    ("ReadResourceResult", value::<p::method::ReadResourceResult>),
    (
        "ReadResourceResultResponse",
        response::<p::method::ReadResourceRequest>,
    ),
    ("Resource", value::<p::method::Resource>),
    ("ResourceLink", value::<p::content::ContentBlock>),
    (
        "ResourceListChangedNotification",
        notification::<p::method::ResourceListChangedNotification>,
    ),
    (
        "ResourceUpdatedNotification",
        notification::<p::method::ResourceUpdatedNotification>,
    ),
    (
        "ResourceUpdatedNotificationParams",
        value::<p::method::ResourceUpdatedNotificationParams>,
    ),
    ("ServerCapabilities", value::<p::ServerCapabilities>),
    ("SetLevelRequest", request::<p::method::SetLevelRequest>),
    ("SubscribeRequest", request::<p::method::SubscribeRequest>),
    (
        "SubscriptionsAcknowledgedNotification",
        notification::<p::method::SubscriptionsAcknowledgedNotification>,
    ),
    (
        "SubscriptionsListenRequest",
        request::<p::method::SubscriptionsListenRequest>,
    ),
    ("SubscriptionsListenResult", value::<p::method::EmptyResult>),
    (
        "SubscriptionsListenResultResponse",
        response::<p::method::SubscriptionsListenRequest>,
    ),
    ("TextContent", value::<p::content::ContentBlock>),
    (
        "TextResourceContents",
        value::<p::content::ResourceContents>,
    ),
    ("Tool", value::<p::method::Tool>),
    (
        "ToolListChangedNotification",
        notification::<p::method::ToolListChangedNotification>,
    ),
    (
        "UnsubscribeRequest",
        request::<p::method::UnsubscribeRequest>,
    ),
    ("UnsupportedProtocolVersionError", error),
];

/// Types that have examples and no model: questions to the client and its answers pass through as
/// raw JSON, inside `InputRequest` and `InputResponses`.
const PASSED_THROUGH: &[&str] = &[
    "BooleanSchema",
    "CreateMessageRequestParams",
    "CreateMessageResult",
    "ElicitRequestFormParams",
    "ElicitRequestURLParams",
    "ElicitResult",
    "ListRootsRequest",
    "ListRootsResult",
    "ModelPreferences",
    "NumberSchema",
    "Root",
    "SamplingMessage",
    "StringSchema",
    "TitledMultiSelectEnumSchema",
    "TitledSingleSelectEnumSchema",
    "ToolResultContent",
    "ToolUseContent",
    "UntitledMultiSelectEnumSchema",
    "UntitledSingleSelectEnumSchema",
];

/// Returns the fault of one example, if it has any.
fn fault(roundtrip: Roundtrip, text: &str) -> Option<String> {
    let expected: Value = serde_json::from_str(text).expect("examples are JSON");
    match roundtrip(text) {
        Ok(written) if written == expected => None,
        Ok(written) => Some(format!("read  {expected}\nwrote {written}")),
        Err(refused) => Some(refused),
    }
}

#[track_caller]
fn check(examples: impl IntoIterator<Item = (String, Roundtrip, String)>) -> usize {
    let mut count = 0;
    let mut faults = Vec::new();
    for (name, roundtrip, text) in examples {
        count += 1;
        faults.extend(fault(roundtrip, &text).map(|fault| format!("{name}: {fault}")));
    }
    assert!(
        faults.is_empty(),
        "{} of {count} failed:\n{}",
        faults.len(),
        faults.join("\n")
    );
    count
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("examples are readable");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry is readable").path())
        .collect();
    paths.sort();
    paths
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .expect("an entry has a name")
        .to_string_lossy()
        .into_owned()
}

#[test]
fn own_examples_survive() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/spec_examples");
    let mut files: BTreeMap<String, String> = entries(&directory)
        .iter()
        .map(|path| (stem(path), fs::read_to_string(path).unwrap()))
        .collect();
    let examples = MODELLED.iter().flat_map(|(name, roundtrip)| {
        let text = files
            .remove(*name)
            .unwrap_or_else(|| panic!("no example of {name}"));
        let cases: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
        assert!(!cases.is_empty(), "no case of {name}");
        cases
            .into_iter()
            .map(move |(case, value)| (format!("{name}/{case}"), *roundtrip, value.to_string()))
    });
    check(examples.collect::<Vec<_>>());
    assert!(
        files.is_empty(),
        "examples of no known type: {:?}",
        files.keys()
    );
}

#[test]
fn official_examples_survive() {
    let Some(directory) = std::env::var_os("MCP_SCHEMA_EXAMPLES") else {
        println!("MCP_SCHEMA_EXAMPLES is not set: only our own examples are run");
        return;
    };
    let mut examples = Vec::new();
    let mut skipped = Vec::new();
    for directory in entries(Path::new(&directory)) {
        let name = stem(&directory);
        if let Some((_, roundtrip)) = MODELLED.iter().find(|(modelled, _)| *modelled == name) {
            examples.extend(entries(&directory).iter().map(|path| {
                let case = format!("{name}/{}", stem(path));
                (case, *roundtrip, fs::read_to_string(path).unwrap())
            }));
        } else {
            assert!(
                PASSED_THROUGH.contains(&&*name),
                "{name} is new: model it or pass it through"
            );
            skipped.push(name);
        }
    }
    let count = check(examples);
    assert!(count > 0, "the directory holds no example");
    println!(
        "{count} official examples survive; passed through as raw JSON: {}",
        skipped.join(", ")
    );
}

#[test]
fn lost_field_is_noticed() {
    let text = r#"{"name":"t","inputSchema":{},"unheardOf":1}"#;
    assert!(fault(value::<p::method::Tool>, text).is_some());
}
