//! Tools: what there is to call, and calling it.

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

/// One tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Tool {
    /// What a call names.
    pub name: String,
    /// Name for people; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the arguments, whose root is `"type": "object"`; sent byte for byte.
    pub input_schema: Box<RawValue>,
    /// JSON Schema of `structuredContent`, sent byte for byte; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Box<RawValue>>,
    /// Since 2025-03-26.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// What a tool claims about its effects: hints, which a client must not trust blindly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// Name for people; [`Tool::title`] goes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Changes nothing. Absent means `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// May destroy, not only add. Absent means `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// A second equal call changes nothing more. Absent means `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// Reaches beyond this machine. Absent means `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// A page of tools.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListToolsResult {
    /// In an order that does not change from call to call.
    pub tools: Vec<Tool>,
    /// Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Milliseconds; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Stateless wire only; the same on every page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Beside the payload.
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// A call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolRequestParams {
    /// The tool.
    pub name: String,
    /// As they came, until the tool's schema says what they are. Absent means `{}`.
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
    /// The state that came with the questions. Whoever sends it may have changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// "Requests that fail to satisfy CallToolRequest schema" are errors -- 2026-07-28/server/tools#error-handling
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

/// What a call gave. A tool that failed gives a result too; only a call that never reached a tool is
/// a JSON-RPC error.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// For the model; may be empty.
    pub content: Vec<ContentBlock>,
    /// For programs. `Some` also for an explicit `null`. An object up to 2025-11-25, then any value.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub structured_content: Option<Box<RawValue>>,
    /// Whether the tool failed. Absent means `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Beside the payload.
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
    /// A tool with nothing but what it must have.
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
    /// All tools on one page.
    #[must_use]
    pub fn new(tools: Vec<Tool>) -> Self {
        Self {
            tools,
            ..Self::default()
        }
    }
}

impl CallToolRequestParams {
    /// A call without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            arguments: None,
            input_responses: None,
            request_state: None,
            meta: None,
        }
    }

    /// The same call with arguments, which must be an object.
    #[must_use]
    pub fn with_arguments(mut self, arguments: Box<RawValue>) -> Self {
        self.arguments = Some(arguments);
        self
    }
}

impl CallToolResult {
    /// A success with this content.
    #[must_use]
    pub fn new(content: Vec<ContentBlock>) -> Self {
        Self {
            content,
            is_error: Some(false),
            ..Self::default()
        }
    }

    /// A failure with this content.
    #[must_use]
    pub fn failed(content: Vec<ContentBlock>) -> Self {
        Self {
            content,
            is_error: Some(true),
            ..Self::default()
        }
    }

    /// A success that is one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![ContentBlock::text(text)])
    }

    /// A failure explained by one text.
    pub fn error(text: impl Into<String>) -> Self {
        Self::failed(vec![ContentBlock::text(text)])
    }
}
