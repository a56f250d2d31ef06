//! Resources: listing, reading, and on the stateful wire subscriptions to changes.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::input::{InputResponses, Interactive};
use super::pagination::PaginatedRequestParams;
use super::{EmptyResult, NotificationParams, notification, request};
use crate::content::{Annotations, Icon, ResourceContents};
use crate::json::present;
use crate::meta::{Meta, ResultMeta};
use crate::stamp::{CacheScope, ResultType, stamped};

request! {
    /// `resources/list`.
    ListResourcesRequest, "resources/list", PaginatedRequestParams => ListResourcesResult
}

request! {
    /// `resources/templates/list`.
    ListResourceTemplatesRequest, "resources/templates/list",
    PaginatedRequestParams => ListResourceTemplatesResult
}

request! {
    /// `resources/read`.
    ReadResourceRequest, "resources/read",
    ReadResourceRequestParams => Interactive<ReadResourceResult>
}

request! {
    /// `resources/subscribe`, stateful wire only.
    SubscribeRequest, "resources/subscribe", ResourceRequestParams => EmptyResult
}

request! {
    /// `resources/unsubscribe`, stateful wire only.
    UnsubscribeRequest, "resources/unsubscribe", ResourceRequestParams => EmptyResult
}

notification! {
    /// `notifications/resources/list_changed`.
    ResourceListChangedNotification, "notifications/resources/list_changed", NotificationParams
}

notification! {
    /// `notifications/resources/updated`.
    ResourceUpdatedNotification, "notifications/resources/updated",
    ResourceUpdatedNotificationParams
}

/// Resource; also a link to one, in a content block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// URI by which it is read.
    pub uri: String,
    /// Programmatic name.
    pub name: String,
    /// Display name; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// MIME type, such as `text/plain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Size in bytes, before any Base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Hints for the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Icons; since 2025-11-25.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Metadata; since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Family of resources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// Template as in RFC 6570.
    pub uri_template: String,
    /// Programmatic name.
    pub name: String,
    /// Display name; since 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// MIME type, if all resources of the family share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Hints for the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Icons; since 2025-11-25.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Metadata; since 2025-06-18.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Page of resources.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListResourcesResult {
    /// Entries in an order that is stable across calls.
    pub resources: Vec<Resource>,
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

/// Page of templates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListResourceTemplatesResult {
    /// Entries in an order that is stable across calls.
    pub resource_templates: Vec<ResourceTemplate>,
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

/// Resource to subscribe to or unsubscribe from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceRequestParams {
    /// URI of the resource.
    pub uri: String,
    /// Request metadata; read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// Resource to read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceRequestParams {
    /// URI of the resource, listed or not.
    pub uri: String,
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

/// Contents that were read: at least one piece. A missing resource is an error, not an empty list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// Contents; several when the URI names a collection.
    pub contents: Vec<ResourceContents>,
    /// Kind of result; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Cache lifetime in milliseconds; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Clients that may share a cached result; stateless wire only.
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

/// Change of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceUpdatedNotificationParams {
    /// URI of the resource, or of one it is part of.
    pub uri: String,
    /// Metadata; with [`SUBSCRIPTION_ID`](crate::meta::SUBSCRIPTION_ID) when it belongs to a
    /// subscription.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

stamped!(cacheable ListResourcesResult, ListResourceTemplatesResult, ReadResourceResult);

impl Resource {
    /// Makes a resource with the required members only.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            annotations: None,
            icons: Vec::new(),
            meta: None,
        }
    }
}

impl ResourceTemplate {
    /// Makes a template with the required members only.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri_template: uri_template.into(),
            name: name.into(),
            title: None,
            description: None,
            mime_type: None,
            annotations: None,
            icons: Vec::new(),
            meta: None,
        }
    }
}

impl ListResourcesResult {
    /// Puts all resources on one page.
    #[must_use]
    pub fn new(resources: Vec<Resource>) -> Self {
        Self {
            resources,
            ..Self::default()
        }
    }
}

impl ListResourceTemplatesResult {
    /// Puts all templates on one page.
    #[must_use]
    pub fn new(resource_templates: Vec<ResourceTemplate>) -> Self {
        Self {
            resource_templates,
            ..Self::default()
        }
    }
}

impl ResourceRequestParams {
    /// Names this resource.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            meta: None,
        }
    }
}

impl ReadResourceRequestParams {
    /// Makes a first request to read this resource.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            input_responses: None,
            request_state: None,
            meta: None,
        }
    }
}

impl ReadResourceResult {
    /// Makes a result with these contents.
    #[must_use]
    pub fn new(contents: Vec<ResourceContents>) -> Self {
        Self {
            contents,
            ..Self::default()
        }
    }
}

impl ResourceUpdatedNotificationParams {
    /// Reports a change of this resource.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            meta: None,
        }
    }
}
