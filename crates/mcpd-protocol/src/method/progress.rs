//! Progress of a request whose `_meta` asked for it.

use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::notification;
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
    pub progress: Number,
    /// In the same unit, when known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Number>,
    /// For people; since 2025-03-26.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Beside the payload.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl ProgressNotificationParams {
    /// Progress towards an unknown total.
    pub fn new(progress_token: ProgressToken, progress: impl Into<Number>) -> Self {
        let progress = progress.into();
        Self {
            progress_token,
            progress,
            total: None,
            message: None,
            meta: None,
        }
    }
}
