//! The handshake of the stateful wire.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{NotificationParams, notification, request};
use crate::capabilities::{ClientCapabilities, Implementation, ServerCapabilities};
use crate::meta::ResultMeta;
use crate::stamp::{ResultType, stamped};
use crate::version::ProtocolVersion;

request! {
    /// `initialize`, first on the stateful wire and unknown on the other.
    InitializeRequest, "initialize", InitializeRequestParams => InitializeResult
}

notification! {
    /// `notifications/initialized`: the client is ready. Real clients send requests before it.
    InitializedNotification, "notifications/initialized", NotificationParams
}

/// What the client proposes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeRequestParams {
    /// The newest revision the client speaks, known to this crate or not.
    pub protocol_version: String,
    /// For the whole session.
    pub capabilities: ClientCapabilities,
    /// Who the client is.
    pub client_info: Implementation,
    /// Read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// What the session will be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InitializeResult {
    /// See [`ProtocolVersion::negotiate`].
    pub protocol_version: Cow<'static, str>,
    /// For the whole session.
    pub capabilities: ServerCapabilities,
    /// Who the server is.
    pub server_info: Implementation,
    /// How to use the server, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Always absent: this method has no stateless wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Beside the payload.
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

stamped!(InitializeResult);

impl InitializeRequestParams {
    /// A proposal.
    #[must_use]
    pub fn new(
        version: ProtocolVersion,
        capabilities: ClientCapabilities,
        client_info: Implementation,
    ) -> Self {
        Self {
            protocol_version: version.to_string(),
            capabilities,
            client_info,
            meta: None,
        }
    }
}

impl InitializeResult {
    /// An answer without instructions.
    #[must_use]
    pub fn new(
        version: ProtocolVersion,
        capabilities: ServerCapabilities,
        server_info: Implementation,
    ) -> Self {
        Self {
            protocol_version: version.as_str().into(),
            capabilities,
            server_info,
            instructions: None,
            result_type: None,
            meta: ResultMeta::default(),
        }
    }
}
