//! Helpers shared by the end-to-end tests: the built binary, a sandbox directory, and a server
//! that runs there. Knows nothing of what is tested.

#![cfg(unix)]

mod audit_log;
mod binary;
mod client;
mod cluster;
mod daemon;
mod issuer;
mod nats;
mod pipes;
#[cfg(target_os = "linux")]
mod processes;
mod round_robin;
mod sandbox;
mod skip;
mod wait;

pub use audit_log::write_audit_log;
pub use binary::{binary, repository};
pub use client::Client;
pub use cluster::{TwoFronts, Worker, wait_for_tools};
pub use daemon::Daemon;
pub use issuer::{Algorithm, Conduct, Issuer, now};
pub use nats::Nats;
pub use pipes::Pipes;
#[cfg(target_os = "linux")]
pub use processes::{bytes_read, peak_memory, processes_of};
pub use round_robin::RoundRobin;
pub use sandbox::{Sandbox, output, output_within};
pub use skip::skip;
pub use wait::{assert_group_ends, eventually};
