//! Log messages for the client. Deprecated in 2026-07-28, where each request sets its own level.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{EmptyResult, notification, request};
use crate::meta::Meta;

request! {
    /// `logging/setLevel`, stateful wire only.
    SetLevelRequest, "logging/setLevel", SetLevelRequestParams => EmptyResult
}

notification! {
    /// `notifications/message`.
    LoggingMessageNotification, "notifications/message", LoggingMessageNotificationParams
}

/// RFC 5424 severities, least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "RFC 5424 has these eight")]
pub enum LoggingLevel {
    /// Debugging detail.
    Debug,
    /// Normal operation.
    Info,
    /// Normal but significant event.
    Notice,
    /// Condition that may become an error.
    Warning,
    /// Failure of an operation.
    Error,
    /// Failure of a component.
    Critical,
    /// Condition that requires action now.
    Alert,
    /// Unusable system.
    Emergency,
}

/// Log level for the session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SetLevelRequestParams {
    /// Least severe level to send.
    pub level: LoggingLevel,
    /// Request metadata; read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// Log message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LoggingMessageNotificationParams {
    /// Severity.
    pub level: LoggingLevel,
    /// Name of the logger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// Message: a string or any other value.
    pub data: Value,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SetLevelRequestParams {
    /// Requests this level and all more severe ones.
    #[must_use]
    pub const fn new(level: LoggingLevel) -> Self {
        Self { level, meta: None }
    }
}

impl LoggingMessageNotificationParams {
    /// Makes a message of an unnamed logger.
    pub fn new(level: LoggingLevel, data: impl Into<Value>) -> Self {
        Self {
            level,
            logger: None,
            data: data.into(),
            meta: None,
        }
    }
}
