//! Calling a request off.

use serde::{Deserialize, Serialize};

use super::notification;
use crate::jsonrpc::RequestId;
use crate::meta::Meta;

notification! {
    /// `notifications/cancelled`. Over HTTP a stateless client hangs up instead.
    CancelledNotification, "notifications/cancelled", CancelledNotificationParams
}

/// Which request, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelledNotificationParams {
    /// May be unknown or answered already: then there is nothing to do.
    pub request_id: RequestId,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Beside the payload.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CancelledNotificationParams {
    /// Calls off a request without a reason.
    #[must_use]
    pub const fn new(request_id: RequestId) -> Self {
        Self {
            request_id,
            reason: None,
            meta: None,
        }
    }
}
