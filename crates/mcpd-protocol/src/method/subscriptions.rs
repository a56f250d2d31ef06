//! Being told of changes on the stateless wire: one request that stays open.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{EmptyResult, notification, request};
use crate::meta::Meta;

request! {
    /// `subscriptions/listen`. Its result ends the subscription and, like everything before it,
    /// carries [`SUBSCRIPTION_ID`](crate::meta::SUBSCRIPTION_ID).
    SubscriptionsListenRequest, "subscriptions/listen",
    SubscriptionsListenRequestParams => EmptyResult
}

notification! {
    /// `notifications/subscriptions/acknowledged`, the first message of a subscription.
    SubscriptionsAcknowledgedNotification, "notifications/subscriptions/acknowledged",
    SubscriptionsAcknowledgedNotificationParams
}

/// What to be told of. Nothing else may be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscriptionFilter {
    /// The list of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_list_changed: Option<bool>,
    /// The list of prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts_list_changed: Option<bool>,
    /// The list of resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_list_changed: Option<bool>,
    /// These resources, by URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_subscriptions: Option<Vec<String>>,
    /// These tasks, by id. An extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_ids: Option<Vec<String>>,
}

/// A subscription.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubscriptionsListenRequestParams {
    /// What to be told of.
    pub notifications: SubscriptionFilter,
    /// Read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// What of a subscription will be honoured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubscriptionsAcknowledgedNotificationParams {
    /// No more than was asked for.
    pub notifications: SubscriptionFilter,
    /// Always with [`SUBSCRIPTION_ID`](crate::meta::SUBSCRIPTION_ID).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SubscriptionsListenRequestParams {
    /// A subscription to these.
    #[must_use]
    pub const fn new(notifications: SubscriptionFilter) -> Self {
        Self {
            notifications,
            meta: None,
        }
    }
}

impl SubscriptionsAcknowledgedNotificationParams {
    /// The acknowledgement of the subscription `meta` names.
    #[must_use]
    pub const fn new(notifications: SubscriptionFilter, meta: Meta) -> Self {
        Self {
            notifications,
            meta: Some(meta),
        }
    }
}
