//! JSON-RPC 2.0 and the Model Context Protocol as data: every revision, both wires, no I/O.
//!
//! ```
//! use mcpd_protocol::jsonrpc::{self, ErrorObject, Message};
//! use mcpd_protocol::{Method as _, Stamp};
//! use mcpd_protocol::method::{CallToolRequest, CallToolRequestParams, CallToolResult};
//!
//! let line = br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"greet"}}"#;
//! let Message::Request(request) = Message::decode(line)? else { panic!("has an id") };
//!
//! let answer = match &*request.method {
//!     CallToolRequest::NAME => {
//!         let call: CallToolRequestParams = request.parse_params()?;
//!         Stamp::Stateful.respond(&request.id, CallToolResult::text(format!("{}!", call.name)))?
//!     }
//!     other => jsonrpc::error_response(Some(&request.id), &ErrorObject::method_not_found(other)),
//! };
//! assert_eq!(
//!     String::from_utf8(answer)?,
//!     concat!(
//!         r#"{"jsonrpc":"2.0","id":"a","result":"#,
//!         r#"{"content":[{"type":"text","text":"greet!"}],"isError":false}}"#,
//!     ),
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A request of the stateless wire identifies itself as such, and its answer needs another stamp:
//!
//! ```
//! use mcpd_protocol::jsonrpc::Message;
//! use mcpd_protocol::{CacheHint, Implementation, Params};
//! use mcpd_protocol::method::DiscoverResult;
//! use mcpd_protocol::{ProtocolVersion, ServerCapabilities, Stamp};
//!
//! let line = br#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":
//!     {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
//! let Message::Request(request) = Message::decode(line)? else { panic!("has an id") };
//! let params = Params::read(request.params)?;
//! assert!(params.meta.is_stateless());
//! assert_eq!(params.meta.protocol_version()?.as_deref(), Some("2026-07-28"));
//!
//! let server_info = Implementation::new("me", "1.0").into();
//! let stamp = Stamp::Stateless { server_info, cache: CacheHint::NONE };
//! let result = DiscoverResult::new(ProtocolVersion::ALL, ServerCapabilities::default());
//! let answer = String::from_utf8(stamp.respond(&request.id, result)?)?;
//! assert!(answer.contains(r#""resultType":"complete""#), "{answer}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A client uses the same types from the other side:
//!
//! ```
//! use mcpd_protocol::jsonrpc::{self, Message};
//! use mcpd_protocol::Method as _;
//! use mcpd_protocol::method::{ListToolsRequest, ListToolsResult, PaginatedRequestParams};
//!
//! let first_page = PaginatedRequestParams::default();
//! let line = jsonrpc::request(&1.into(), ListToolsRequest::NAME, &first_page)?;
//! assert_eq!(line, br#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#);
//!
//! let line = br#"{"jsonrpc":"2.0","id":1,
//!     "result":{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}}"#;
//! let Message::Response(response) = Message::decode(line)? else { panic!("has a result") };
//! let result: ListToolsResult = serde_json::from_str(response.outcome?.get())?;
//! assert_eq!(result.tools[0].name, "greet");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layers
//!
//! | layer | content |
//! |---|---|
//! | [`jsonrpc`] | the envelope: ids, requests, notifications, responses, error objects |
//! | [`ProtocolVersion`], [`Wire`] | the revisions and their features |
//! | [`meta`], [`Params`] | `_meta`: reserved keys, and reading before the method is known |
//! | [`content`], [`ClientCapabilities`] … | shared values, named as in the schema |
//! | [`method`] | each method: its name, its parameters, its result |
//! | [`event_stream`] | messages in the body of a response over HTTP |
//! | [`Stamp`] | members that results carry on one wire and must not carry on the other |
//!
//! # Revisions
//!
//! | revision | wire |
//! |---|---|
//! | 2024-11-05 … 2025-11-25 | [stateful](Wire::Stateful): begins with `initialize` |
//! | 2026-07-28 | [stateless](Wire::Stateless): every request stands alone |
//!
//! One set of types serves all revisions: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and
//! 2026-07-28. A field that a revision does not have stays `None`; [`ProtocolVersion`] says which
//! these are. Of tasks only the extension of the stateless wire is modelled, not the experiment of
//! 2025-11-25.
//!
//! # Out of scope
//!
//! - Transports, sessions and time: the crate has bytes on one side and values on the other.
//! - The meaning of schemas, arguments, questions to the user and answers: they are raw JSON and
//!   leave the crate byte for byte, except that line breaks become spaces.
//! - The wire of a method, and the order in which faults are reported: the server decides.
//!
//! # Stability
//!
//! Structures grow with the protocol: build them with `new` or `default` and set their public
//! fields. There are no features. The minimum supported Rust version is 1.95.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod capabilities;
pub mod content;
pub mod event_stream;
mod json;
pub mod jsonrpc;
pub mod meta;
pub mod method;
mod params;
mod stamp;
mod version;

pub use capabilities::{
    ClientCapabilities, ElicitationCapability, Implementation, ListCapability, ResourcesCapability,
    RootsCapability, SamplingCapability, ServerCapabilities,
};
pub use json::string as json_string;
pub use method::{Method, NotificationMethod};
pub use params::Params;
pub use stamp::{CacheHint, CacheScope, ResultObject, ResultType, Stamp};
pub use version::{ProtocolVersion, UnknownVersion, Wire};

/// A JSON object whose members keep their order.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;
