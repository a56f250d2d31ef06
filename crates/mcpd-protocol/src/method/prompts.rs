//! Prompts: templates of messages that a user picks to start from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::input::{InputResponses, Interactive};
use super::pagination::PaginatedRequestParams;
use super::{NotificationParams, notification, request};
use crate::content::{ContentBlock, Icon, Role};
use crate::json::{self, present};
use crate::meta::{Meta, ResultMeta};
use crate::stamp::{CacheScope, ResultType, stamped};

request! {
    /// `prompts/list`.
    ListPromptsRequest, "prompts/list", PaginatedRequestParams => ListPromptsResult
}

request! {
    /// `prompts/get`.
    GetPromptRequest, "prompts/get", GetPromptRequestParams => Interactive<GetPromptResult>
}

notification! {
    /// `notifications/prompts/list_changed`.
    PromptListChangedNotification, "notifications/prompts/list_changed", NotificationParams
}

/// Prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Prompt {
    /// Identifier in requests.
    pub name: String,
    /// Display name; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Arguments it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
    /// Icons; since 2025-11-25.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Metadata; since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Argument of a prompt; its values are strings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// Identifier in requests.
    pub name: String,
    /// Display name; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Absent means `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

/// Page of prompts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListPromptsResult {
    /// Entries in an order that is stable across calls.
    pub prompts: Vec<Prompt>,
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

/// Prompt to get, with its arguments.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptRequestParams {
    /// Name of the prompt.
    pub name: String,
    /// Values by name of the argument.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "json::optional_object"
    )]
    pub arguments: Option<BTreeMap<String, String>>,
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

/// Messages of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptResult {
    /// Purpose of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Messages in order.
    pub messages: Vec<PromptMessage>,
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

/// Message of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptMessage {
    /// Speaker.
    pub role: Role,
    /// Content, a single block.
    pub content: ContentBlock,
}

stamped!(GetPromptResult);
stamped!(cacheable ListPromptsResult);

impl Prompt {
    /// Makes a prompt without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            arguments: Vec::new(),
            icons: Vec::new(),
            meta: None,
        }
    }
}

impl PromptArgument {
    /// Makes an optional argument.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: None,
            required: None,
        }
    }
}

impl ListPromptsResult {
    /// Puts all prompts on one page.
    #[must_use]
    pub fn new(prompts: Vec<Prompt>) -> Self {
        Self {
            prompts,
            ..Self::default()
        }
    }
}

impl GetPromptRequestParams {
    /// Makes a request without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            arguments: None,
            input_responses: None,
            request_state: None,
            meta: None,
        }
    }
}

impl GetPromptResult {
    /// Makes a result with these messages.
    #[must_use]
    pub fn new(messages: Vec<PromptMessage>) -> Self {
        Self {
            messages,
            ..Self::default()
        }
    }
}

impl PromptMessage {
    /// Makes a message.
    #[must_use]
    pub const fn new(role: Role, content: ContentBlock) -> Self {
        Self { role, content }
    }
}
