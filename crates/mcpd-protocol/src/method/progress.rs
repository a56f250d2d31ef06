//! Progress of a request whose `_meta` asked for it.

use serde::{Deserialize, Serialize};

use super::notification;
use crate::json;
use crate::meta::{Meta, ProgressToken};

notification! {
    /// `notifications/progress`.
    ProgressNotification, "notifications/progress", ProgressNotificationParams
}

/// Progress of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProgressNotificationParams {
    /// Token from the request.
    pub progress_token: ProgressToken,
    /// Amount done, in any unit; increases with every notification.
    #[serde(serialize_with = "json::number")]
    pub progress: f64,
    /// Total in the same unit, when known.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "json::optional_number",
        default
    )]
    pub total: Option<f64>,
    /// Message for people; since 2025-03-26.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ProgressNotificationParams {
    /// Reports progress towards an unknown total.
    #[must_use]
    pub const fn new(progress_token: ProgressToken, progress: f64) -> Self {
        Self {
            progress_token,
            progress,
            total: None,
            message: None,
            meta: None,
        }
    }
}
