//! Self-description of a server on the stateless wire.

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

/// Revisions and capabilities of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DiscoverResult {
    /// Revisions that the server speaks, on either wire.
    pub supported_versions: Vec<Cow<'static, str>>,
    /// Capabilities of the server.
    pub capabilities: ServerCapabilities,
    /// Usage instructions for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Kind of result; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Cache lifetime in milliseconds; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// Clients that may share a cached result; stateless wire only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// Metadata.
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

stamped!(cacheable DiscoverResult);

impl DiscoverResult {
    /// Makes an answer without instructions.
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
