//! Progress of a request whose `_meta` asked for it.

use serde::{Deserialize, Serialize};

use super::notification;
use crate::json;
use crate::meta::{Meta, ProgressToken};

notification! {
    /// `notifications/progress`.
    ProgressNotification, "notifications/progress", ProgressNotificationParams
}

/// How far a request is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProgressNotificationParams {
    /// From the request.
    pub progress_token: ProgressToken,
    /// More than last time, in whatever unit.
    #[serde(serialize_with = "json::number")]
    pub progress: f64,
    /// In the same unit, when known.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "json::optional_number",
        default
    )]
    pub total: Option<f64>,
    /// For people; since 2025-03-26.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Beside the payload.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ProgressNotificationParams {
    /// Progress towards an unknown total.
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
