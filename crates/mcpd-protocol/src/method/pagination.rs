//! Pagination of lists. A cursor is opaque to the client, and the empty string is a valid one.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Parameters of every list request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PaginatedRequestParams {
    /// `nextCursor` of the previous page; absent for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Request metadata; read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}
