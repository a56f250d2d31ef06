//! Prompts: messages a person picks to start from.

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

/// One prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Prompt {
    /// What a request names.
    pub name: String,
    /// Name for people; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
    /// Since 2025-11-25.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// One argument of a prompt; its values are strings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptArgument {
    /// What a request names.
    pub name: String,
    /// Name for people; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Absent means `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

/// A page of prompts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListPromptsResult {
    /// In an order that does not change from call to call.
    pub prompts: Vec<Prompt>,
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

/// A prompt with its arguments.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptRequestParams {
    /// The prompt.
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
    /// The state that came with the questions. Whoever sends it may have changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// Read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// The messages of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GetPromptResult {
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// In order.
    pub messages: Vec<PromptMessage>,
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

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PromptMessage {
    /// Who says it.
    pub role: Role,
    /// What is said: one block.
    pub content: ContentBlock,
}

stamped!(GetPromptResult);
stamped!(cacheable ListPromptsResult);

impl Prompt {
    /// A prompt without arguments.
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
    /// An argument that may be left out.
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
    /// All prompts on one page.
    #[must_use]
    pub fn new(prompts: Vec<Prompt>) -> Self {
        Self {
            prompts,
            ..Self::default()
        }
    }
}

impl GetPromptRequestParams {
    /// A prompt without arguments.
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
    /// These messages.
    #[must_use]
    pub fn new(messages: Vec<PromptMessage>) -> Self {
        Self {
            messages,
            ..Self::default()
        }
    }
}

impl PromptMessage {
    /// One message.
    #[must_use]
    pub const fn new(role: Role, content: ContentBlock) -> Self {
        Self { role, content }
    }
}
