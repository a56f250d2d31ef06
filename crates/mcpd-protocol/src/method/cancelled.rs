//! Cancellation of a request.

use serde::{Deserialize, Serialize};

use super::notification;
use crate::jsonrpc::RequestId;
use crate::meta::Meta;

notification! {
    /// `notifications/cancelled`. Over HTTP a stateless client closes the stream instead.
    CancelledNotification, "notifications/cancelled", CancelledNotificationParams
}

/// Request to cancel, and the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CancelledNotificationParams {
    /// Id of the request. It may be unknown or answered already: then there is nothing to do.
    pub request_id: RequestId,
    /// Reason, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl CancelledNotificationParams {
    /// Cancels a request without a reason.
    #[must_use]
    pub const fn new(request_id: RequestId) -> Self {
        Self {
            request_id,
            reason: None,
            meta: None,
        }
    }
}
