//! Tools: listing and calling them.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::input::{InputResponses, Interactive};
use super::pagination::PaginatedRequestParams;
use super::{NotificationParams, notification, request};
use crate::content::{ContentBlock, Icon};
use crate::json::{self, present};
use crate::meta::{Meta, ResultMeta};
use crate::stamp::{CacheScope, ResultType, stamped};

request! {
    /// `tools/list`.
    ListToolsRequest, "tools/list", PaginatedRequestParams => ListToolsResult
}

request! {
    /// `tools/call`.
    CallToolRequest, "tools/call", CallToolRequestParams => Interactive<CallToolResult>
}

notification! {
    /// `notifications/tools/list_changed`.
    ToolListChangedNotification, "notifications/tools/list_changed", NotificationParams
}

/// Tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// Identifier in calls.
    pub name: String,
    /// Display name; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments, whose root is `"type": "object"`; sent byte for byte.
    pub input_schema: Box<RawValue>,
    /// JSON Schema of `structuredContent`, sent byte for byte; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Box<RawValue>>,
    /// Hints on its effects; since 2025-03-26.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Icons; since 2025-11-25.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Metadata; since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Effects that a tool claims: hints, which a client must not trust blindly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// Display name; [`Tool::title`] takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool changes nothing. Absent means `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// The tool may destroy, not only add. Absent means `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Repeating an equal call changes nothing more. Absent means `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// The tool reaches beyond this machine. Absent means `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// Page of tools.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListToolsResult {
    /// Entries in an order that is stable across calls.
    pub tools: Vec<Tool>,
    /// Cursor of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Kind of result; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Cache lifetime in milliseconds; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Clients that may share a cached result; stateless wire only, and equal on every page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Metadata.
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// Call of a tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolRequestParams {
    /// Name of the tool.
    pub name: String,
    /// Raw arguments, which the tool's schema interprets later. Absent means `{}`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "arguments"
    )]
    pub arguments: Option<Box<RawValue>>,
    /// Answers to an [`InputRequiredResult`](super::input::InputRequiredResult).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub input_responses: Option<InputResponses>,
    /// State that came with the questions. The client may have altered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Request metadata; read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// Reads the arguments, which must be an object: "Requests that fail to satisfy CallToolRequest
/// schema" are errors -- 2026-07-28/server/tools#error-handling
fn arguments<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Box<RawValue>>, D::Error> {
    let arguments = Option::<Box<RawValue>>::deserialize(deserializer)?;
    let arguments = arguments.filter(|raw| !json::is_nothing(raw));
    match arguments.as_deref().filter(|raw| !json::is_object(raw)) {
        None => Ok(arguments),
        Some(raw) => Err(D::Error::custom(format_args!(
            "`arguments` must be an object, not {}",
            json::kind(raw)
        ))),
    }
}

/// Result of a call. A tool that failed gives a result too; only a call that never reached a tool
/// is a JSON-RPC error.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// Content for the model; may be empty.
    pub content: Vec<ContentBlock>,
    /// Content for programs. `Some` also for an explicit `null`. An object up to 2025-11-25, then
    /// any value.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub structured_content: Option<Box<RawValue>>,
    /// The tool failed. Absent means `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Kind of result; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

stamped!(CallToolResult);
stamped!(cacheable ListToolsResult);

impl Tool {
    /// Makes a tool with the required members only.
    pub fn new(name: impl Into<String>, input_schema: Box<RawValue>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            input_schema,
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            meta: None,
        }
    }
}

impl ListToolsResult {
    /// Puts all tools on one page.
    #[must_use]
    pub fn new(tools: Vec<Tool>) -> Self {
        Self {
            tools,
            ..Self::default()
        }
    }
}

impl CallToolRequestParams {
    /// Makes a call without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            arguments: None,
            input_responses: None,
            request_state: None,
            meta: None,
        }
    }

    /// Sets the arguments, which must be an object.
    #[must_use]
    pub fn with_arguments(mut self, arguments: Box<RawValue>) -> Self {
        self.arguments = Some(arguments);
        self
    }
}

impl CallToolResult {
    /// Makes a success with this content.
    #[must_use]
    pub fn new(content: Vec<ContentBlock>) -> Self {
        Self {
            content,
            is_error: Some(false),
            ..Self::default()
        }
    }

    /// Makes a failure with this content.
    #[must_use]
    pub fn failed(content: Vec<ContentBlock>) -> Self {
        Self {
            content,
            is_error: Some(true),
            ..Self::default()
        }
    }

    /// Makes a success that is one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![ContentBlock::text(text)])
    }

    /// Makes a failure explained by one text.
    pub fn error(text: impl Into<String>) -> Self {
        Self::failed(vec![ContentBlock::text(text)])
    }
}
