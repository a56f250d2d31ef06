//! Helpers shared by the end-to-end tests: the built binary, a place of its own to run it in, and a
//! server that runs there. Knows nothing of what is tested.

#![cfg(unix)]

mod binary;
mod client;
mod daemon;
mod sandbox;
mod wait;

pub use binary::binary;
pub use client::Client;
pub use daemon::Daemon;
pub use sandbox::Sandbox;
pub use wait::{assert_group_ends, eventually};
