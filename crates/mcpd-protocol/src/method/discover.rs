//! What a server of the stateless wire says of itself.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{RequestParams, request};
use crate::capabilities::ServerCapabilities;
use crate::meta::ResultMeta;
use crate::stamp::{CacheScope, ResultType, stamped};
use crate::version::ProtocolVersion;

request! {
    /// `server/discover`, stateless wire only.
    DiscoverRequest, "server/discover", RequestParams => DiscoverResult
}

/// The server's revisions and capabilities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// The revisions it speaks, on either wire.
    pub supported_versions: Vec<Cow<'static, str>>,
    /// What it offers.
    pub capabilities: ServerCapabilities,
    /// How to use the server, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Milliseconds; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Beside the payload.
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

stamped!(cacheable DiscoverResult);

impl DiscoverResult {
    /// An answer without instructions.
    pub fn new(
        versions: impl IntoIterator<Item = ProtocolVersion>,
        capabilities: ServerCapabilities,
    ) -> Self {
        Self {
            supported_versions: versions.into_iter().map(|v| v.as_str().into()).collect(),
            capabilities,
            instructions: None,
            result_type: None,
            ttl_ms: None,
            cache_scope: None,
            meta: ResultMeta::default(),
        }
    }
}
