//! MCP server to embed: tools are the scripts of directories and functions of the program.
//!
//! ```no_run
//! use mcpd_server::{CallContext, Server, transport::stdio};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add {
//!     /// One summand.
//!     a: i64,
//!     /// The other.
//!     b: i64,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), mcpd_server::Error> {
//! let server = Server::builder()
//!     .scripts("/srv/tools")
//!     .tool("math/add", "Adds two numbers.", async |add: Add, _: CallContext| {
//!         add.a.checked_add(add.b).map(|sum| sum.to_string()).ok_or("the sum is too large")
//!     })
//!     .start()?;
//! stdio::serve(&server, std::io::stdin(), std::io::stdout(), stdio::Options::default()).await
//! # }
//! ```
//!
//! # Policy
//!
//! Limits and confinement of scripts use the types of `mcpd-exec`; prompts and results use those
//! of `mcpd-protocol`. A program that needs them depends on the same version of those crates.
//!
//! ```no_run
//! use mcpd_exec::{Config, Executor, Network, Sandbox};
//! use mcpd_server::{Policy, SandboxProfile, Server};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // First in `main`: `watchdog` starts this program a second time.
//! mcpd_exec::prepare_signals();
//! if mcpd_exec::run_watchdog() {
//!     return Ok(());
//! }
//! // Without these two, confinement is reported as incomplete.
//! let mut config = Config::default();
//! config.reaper = true;
//! config.watchdog = true;
//! let sandbox = Sandbox::guarded().network(Network::Off);
//! let server = Server::builder()
//!     .scripts("/srv/tools")
//!     .executor(Executor::new(config)?)
//!     .policy(Policy::default().floor(SandboxProfile::new(sandbox)));
//! # Ok(()) }
//! ```
//!
//! # Path of a message
//!
//! ```text
//! bytes ─► transport ─► exchange ─► envelope ─► dispatch ─► method ─► Catalog ─► Tool ─► run
//! ```
//!
//! Every request of every transport takes this path. A [`Connection`] carries it where messages
//! come in order, such as over stdio; over HTTP each POST is a channel of its own.
//!
//! A [`Server`] is started once, is cheap to clone, and stops when the last clone is dropped or
//! [`Server::shutdown`] is called. A [`Connection`] is one client on an ordered channel.
//! [`transport`] has two that come with their own channels: [`transport::stdio`] and
//! [`transport::http`]. A [`Catalog`] is an immutable snapshot of everything served; a change
//! replaces it as a whole. Tools that run elsewhere come from a [`source`], which needs
//! `serde_json` with its feature `raw_value`.
//!
//! A program without an async runtime runs a server on a separate thread:
//! `transport::http::Background`. [`Server::reload`] is the hot reload: it gives a running server
//! new [`Settings`].
//!
//! Every transport speaks both wires of MCP and decides message by message: revision 2026-07-28,
//! in which every request stands alone, and the older ones, which begin with `initialize`.
//!
//! # Faults
//!
//! The server reports faults to the operator as events of `tracing`: a script that cannot be
//! described or started, confinement that is unavailable, a name claimed twice. A program without
//! a subscriber therefore prints nothing. [`Server::catalog`] lists the faults of scripts and
//! sources as well.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `database` | yes | [`Database`], which outlives the server, and tasks; without it, no C code |
//! | `metrics` | no | [`Server::metrics_text`], what the server does as text for Prometheus |
//! | `otel` | no | [`ServerBuilder::spans`], what the server does as spans of OpenTelemetry |
//! | `http` | yes | [`transport::http`]; without it the crate has no HTTP dependency |
//! | `oauth` | no | `transport::http::OAuth`; without it the crate has no HTTP client and no TLS |
//! | `tls` | no | HTTP over TLS, and certificates of clients |
//!
//! # Stability
//!
//! Before 1.0 a minor version may break. The minimum supported Rust version is 1.95.

#![forbid(unsafe_code)]
#![warn(clippy::large_futures)] // 4 kB, in clippy.toml

pub mod catalog;
mod client;
pub mod database;
mod execution;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod limits;
mod message;
mod methods;
mod observe;
pub mod policy;
pub mod remote;
mod script;
mod server;
mod support;
mod tools;
pub mod transport;

pub use catalog::call::CallContext;
pub use catalog::source;
pub use catalog::tool::Tool;
pub use catalog::{Catalog, Prompt, Resource, Template};
#[cfg(feature = "database")]
pub use database::Database;
pub use message::tool_names::ToolNames;
pub use message::trace::TraceContext;
pub use observe::audit;
pub use observe::audit::Audit;
pub use observe::operator;
pub use observe::request_events::RequestEvent;
pub use policy::principal::Principal;
pub use policy::{Policy, SandboxProfile};
pub use script::interpreter;
pub use script::interpreter::Interpreters;
pub use server::error::Error;
pub use server::{Server, ServerBuilder, Settings};
pub use tools::endpoint;
pub use tools::native::{IntoResourceBody, IntoToolResult, Json};
pub use tools::run_command::RunCommand;
pub use tools::tasks::store as tasks;
pub use transport::connection::{Connection, Reply};

/// Default size of an output that stays readable as a resource when it is too long for a result,
/// in bytes.
pub const DEFAULT_KEEP: u64 = 16 << 20;

/// Default limit of a message that is read, in bytes.
pub const DEFAULT_MAX_MESSAGE: usize = 16 << 20;
