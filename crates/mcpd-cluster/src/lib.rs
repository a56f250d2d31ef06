//! Scripts on many machines: fronts, which are MCP servers, and workers, which run the scripts,
//! joined by [NATS](https://nats.io).
//!
//! ```no_run
//! use mcpd_cluster::{Cluster, Settings, Worker};
//! use mcpd_server::Server;
//!
//! # async fn front() -> Result<(), Box<dyn std::error::Error>> {
//! // A front serves the scripts of all workers.
//! let settings = Settings::new(vec!["nats://127.0.0.1:4222".to_owned()], "front-1".parse()?);
//! let front = Server::builder().source(Cluster::new(settings)).start()?;
//! # Ok(()) }
//! # async fn worker() -> Result<(), Box<dyn std::error::Error>> {
//! // A worker announces the scripts of its server, and runs them until it is stopped.
//! let settings = Settings::new(vec!["nats://127.0.0.1:4222".to_owned()], "worker-1".parse()?);
//! let server = Server::builder().scripts("/srv/tools").start()?;
//! Worker::new(settings).serve(server, std::future::pending()).await?;
//! # Ok(()) }
//! ```
//!
//! # Parts
//!
//! ```text
//! front                                            worker
//! place ─► delivery ─► node ══ NATS ══ node ─► registry ─► Server::execute
//!             │ placement, presence              │ echo, lease
//! inventory ◄─┴─ selection              catalogue ◄─ Server::announcements
//! ```
//!
//! The state machines `delivery`, `registry`, `presence`, `placement` and `selection` are pure:
//! they know neither a connection nor a clock. Ten thousand schedules of a simulation, with virtual
//! time and faults drawn from seeds, check their promises in the ordinary tests.
//!
//! # Promises
//!
//! - A run that must not be made twice is never started twice, whatever is sent again, replayed,
//!   delayed or reordered.
//! - A caller who is told that a run has ended was told its own end.
//! - Every call gets an answer; one whose end is not known says so.
//! - A worker that is cut off for longer than its lease ends what it runs.
//! - A run never meets a version of its script other than the one whose description its caller has
//!   seen.
//!
//! # Stability
//!
//! Before 1.0 a minor version may break. The minimum supported Rust version is 1.95.

#![forbid(unsafe_code)]

mod catalogue;
mod delivery;
mod detached;
mod error;
mod examination;
mod front;
mod grants;
mod node;
mod operator;
mod placement;
mod presence;
mod registry;
mod selection;
mod settings;
mod tasks;
mod transfer;
mod wire;
mod worker;

#[cfg(test)]
mod tests;

pub use error::Error;
pub use examination::{Examination, ExaminedNode, ExaminedServer, Reach, RoleRights, examine};
pub use front::{Cluster, Placement, RerunPolicy};
pub use grants::{Role, grants};
pub use operator::{NodeStatus, describe, described_status, drain, status};
pub use settings::{Credentials, InvalidName, Name, Settings};
pub use tasks::SharedTasks;
pub use worker::Worker;
