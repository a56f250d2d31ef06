//! `_meta`: data beside the payload of a message. Reserved keys are constants here; every other
//! key belongs to the party that set it.

mod request;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use request::RequestMeta;
pub(crate) use request::fault;

use crate::JsonObject;
use crate::capabilities::Implementation;
use crate::jsonrpc::RequestId;

/// In a request: its revision.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// In a request: the client's capabilities for this request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// In a request: the identity of the client.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// In a request: the lowest level of log messages to send while it runs.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// In every message of a `subscriptions/listen` stream: the id of that request.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// In a result: the identity of the server.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// In a request: the token for its progress notifications.
pub const PROGRESS_TOKEN: &str = "progressToken";

/// Ordered JSON object of `_meta` members.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Meta(JsonObject);

impl Meta {
    /// Makes an object without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`SUBSCRIPTION_ID`], keeping the JSON type of the id.
    #[must_use]
    pub fn with_subscription_id(mut self, id: &RequestId) -> Self {
        let id = match id {
            RequestId::Integer(id) => Value::from(*id),
            RequestId::String(id) => Value::from(&**id),
        };
        self.insert(SUBSCRIPTION_ID.into(), id);
        self
    }
}

impl Deref for Meta {
    type Target = JsonObject;

    fn deref(&self) -> &JsonObject {
        &self.0
    }
}

impl DerefMut for Meta {
    fn deref_mut(&mut self) -> &mut JsonObject {
        &mut self.0
    }
}

impl From<JsonObject> for Meta {
    fn from(members: JsonObject) -> Self {
        Self(members)
    }
}

/// `_meta` of a result. Absent on the wire when empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(expecting = "an object")]
#[non_exhaustive]
pub struct ResultMeta {
    /// Identity of the server. Set by [`Stamp`](crate::Stamp), and shared by all results of a
    /// server.
    #[serde(
        rename = "io.modelcontextprotocol/serverInfo",
        skip_serializing_if = "Option::is_none"
    )]
    pub server_info: Option<Arc<Implementation>>,
    /// Every other member.
    #[serde(flatten)]
    pub other: Meta,
}

impl ResultMeta {
    /// Returns whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.server_info.is_none() && self.other.is_empty()
    }
}

impl From<Meta> for ResultMeta {
    fn from(other: Meta) -> Self {
        Self {
            server_info: None,
            other,
        }
    }
}

/// Opaque token that ties progress notifications to their request. A string or an integer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProgressToken(RequestId);

impl From<RequestId> for ProgressToken {
    fn from(token: RequestId) -> Self {
        Self(token)
    }
}
