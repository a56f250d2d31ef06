//! MCP servers behind an mcpd server: what they offer is served as its own, under a prefix.
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
//! An [`Upstream`] is a [`Source`](mcpd_server::source::Source): it connects, lists what there is, follows its changes,
//! and connects again when the connection is lost. A call goes the way
//!
//! ```text
//! Tool ─► Link ─► rmcp's client ─► stdin of a program, or HTTP
//! ```
//!
//! It knows nothing of its callers but what they ask for: no token, name or capability of theirs is ever sent on.
//! Servers are offered nothing but requests; one that asks back (sampling, elicitation, roots) is refused.
//!
//! # Stability
//!
//! Before 1.0 a minor version may break. The minimum supported Rust version is 1.95.

#![forbid(unsafe_code)]

mod address;
mod call;
mod connect;
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
mod words;

pub use address::{Address, AddressError};
pub use program::Program;
pub use upstream::{PatternError, Upstream};

#[cfg(test)]
mod tests;
