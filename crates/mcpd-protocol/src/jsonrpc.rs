//! The JSON-RPC 2.0 envelope: definition, decoding and encoding of messages. It knows no MCP
//! method.
//!
//! Reading borrows from the input and leaves `params` and `result` as raw text, because only the
//! method decides what they mean. Writing gives one line of compact JSON.

mod encode;
mod error;
mod id;
mod message;

pub(crate) use encode::response;
pub use encode::{
    error_response, notification, one_line, replace_nul, request, response_around, response_raw,
};
pub use error::{ErrorCode, ErrorObject};
pub use id::RequestId;
pub use message::{DecodeError, Frame, Message, Notification, Request, Response};
