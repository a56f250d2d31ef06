//! MCP servers behind an mcpd server: their tools, resources and prompts are served under a prefix.
//!
//! ```no_run
//! use mcpd_server::Server;
//! use mcpd_upstream::{Address, Program, Upstream};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let files = Program::new("mcp-server-filesystem").args(["/srv/files"]);
//! let search = Address::new("https://search.example/mcp")?.token("ed9fb1c0");
//! let server = Server::builder()
//!     .source(Upstream::stdio("files", files).tools(["read_*", "list_*"])?)
//!     .source(Upstream::http("search", search))
//!     .start()?;
//! # Ok(()) }
//! ```
//!
//! An [`Upstream`] is a [`Source`](mcpd_server::source::Source): it connects, fetches the server's
//! lists, follows their changes, and reconnects with backoff when the connection is lost. The path
//! of a call:
//!
//! ```text
//! Tool ─► Link ─► rmcp's client ─► stdin of a program, or HTTP
//! ```
//!
//! It knows nothing of its callers but their requests: no token, name or capability of a caller is
//! forwarded. Requests of the server itself (sampling, elicitation, roots) are refused.
//!
//! # Stability
//!
//! Before 1.0 a minor version may break. The minimum supported Rust version is 1.95.

#![forbid(unsafe_code)]

mod address;
mod call;
mod connect;
mod conversion;
mod inventory;
mod link;
mod listener;
mod mend;
mod offer;
mod pending;
mod program;
mod remarks;
mod source;
mod upstream;

pub use address::{Address, AddressError};
pub use program::Program;
pub use upstream::{PatternError, Upstream};

#[cfg(test)]
mod tests;
