//! Lists in pages. A cursor is opaque to the client, and the empty string is one like any other.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Parameters of every list.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PaginatedRequestParams {
    /// From the `nextCursor` of the page before; absent for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}
