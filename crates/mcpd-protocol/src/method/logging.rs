//! Log messages for the client. Deprecated in 2026-07-28, where each request says whether it wants any.

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
    /// For debugging.
    Debug,
    /// What happens.
    Info,
    /// What is worth a look.
    Notice,
    /// What may become an error.
    Warning,
    /// What failed.
    Error,
    /// What broke.
    Critical,
    /// What someone must do now.
    Alert,
    /// Nothing works.
    Emergency,
}

/// A level for the session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SetLevelRequestParams {
    /// The least severe level to send.
    pub level: LoggingLevel,
    /// Read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// A log message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LoggingMessageNotificationParams {
    /// How severe.
    pub level: LoggingLevel,
    /// Who logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logger: Option<String>,
    /// The message: a string or any other value.
    pub data: Value,
    /// Beside the payload.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl SetLevelRequestParams {
    /// This level and all more severe ones.
    #[must_use]
    pub const fn new(level: LoggingLevel) -> Self {
        Self { level, meta: None }
    }
}

impl LoggingMessageNotificationParams {
    /// A message of an unnamed logger.
    pub fn new(level: LoggingLevel, data: impl Into<Value>) -> Self {
        Self {
            level,
            logger: None,
            data: data.into(),
            meta: None,
        }
    }
}
