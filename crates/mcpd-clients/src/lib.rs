//! Configuration files of MCP clients.

#![forbid(unsafe_code)]

mod client;
mod config_file;
mod diff;
pub mod edit;
pub mod file;
mod places;
mod server;

pub use client::{Client, ClientError, Reference, Scope};
pub use config_file::ConfigFile;
pub use diff::diff;
pub use places::{Places, Platform};
pub use server::{Connection, Drift, InstalledServer, Server, Transport};
