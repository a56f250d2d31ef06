//! An MCP server over a directory of scripts, to embed.

#![forbid(unsafe_code)]

mod call;
pub mod catalog;
mod connection;
mod context;
mod dispatch;
mod environment;
mod error;
mod handler;
mod inflight;
mod interaction;
mod mirror;
mod native;
mod output;
mod questions;
mod run;
mod seal;
mod server;
mod session;
mod subscribers;
mod sync;
mod tool;
pub mod transport;
mod wire;

pub use catalog::{Catalog, Conflict, ToolNames};
pub use connection::{Connection, Reply};
pub use environment::Environment;
pub use error::Error;
pub use native::{CallContext, IntoToolResult, Json};
pub use server::{Server, ServerBuilder};
pub use tool::Tool;

/// The largest message that is read by default, in bytes.
pub const DEFAULT_MAX_MESSAGE: usize = 16 << 20;
