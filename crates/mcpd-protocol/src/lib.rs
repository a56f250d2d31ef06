//! JSON-RPC 2.0 and the Model Context Protocol as data.

#![forbid(unsafe_code)]

pub mod capabilities;
pub mod content;
mod json;
pub mod jsonrpc;
pub mod meta;
pub mod method;
pub mod stamp;
pub mod version;

/// A JSON object whose members keep their order.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;
