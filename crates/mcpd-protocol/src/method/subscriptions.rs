//! Subscriptions to changes on the stateless wire: one request that stays open.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{EmptyResult, notification, request};
use crate::meta::Meta;

request! {
    /// `subscriptions/listen`. Its result ends the subscription and, like every message before it,
    /// carries [`SUBSCRIPTION_ID`](crate::meta::SUBSCRIPTION_ID).
    SubscriptionsListenRequest, "subscriptions/listen",
    SubscriptionsListenRequestParams => EmptyResult
}

notification! {
    /// `notifications/subscriptions/acknowledged`, the first message of a subscription.
    SubscriptionsAcknowledgedNotification, "notifications/subscriptions/acknowledged",
    SubscriptionsAcknowledgedNotificationParams
}

/// Subjects of a subscription. Nothing else may be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// Changes of the list of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// Changes of the list of prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// Changes of the list of resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// Changes of these resources, by URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
    /// Changes of these tasks, by id. An extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_ids: Option<Vec<String>>,
}

/// Subscription request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubscriptionsListenRequestParams {
    /// Subjects of the subscription.
    pub notifications: SubscriptionFilter,
    /// Request metadata; read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// Accepted part of a subscription.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubscriptionsAcknowledgedNotificationParams {
    /// Accepted subjects, no more than requested.
    pub notifications: SubscriptionFilter,
    /// Metadata, always with [`SUBSCRIPTION_ID`](crate::meta::SUBSCRIPTION_ID).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SubscriptionsListenRequestParams {
    /// Makes a subscription to these subjects.
    #[must_use]
    pub const fn new(notifications: SubscriptionFilter) -> Self {
        Self {
            notifications,
            meta: None,
        }
    }
}

impl SubscriptionsAcknowledgedNotificationParams {
    /// Makes the acknowledgement of the subscription that `meta` names.
    #[must_use]
    pub const fn new(notifications: SubscriptionFilter, meta: Meta) -> Self {
        Self {
            notifications,
            meta: Some(meta),
        }
    }
}
