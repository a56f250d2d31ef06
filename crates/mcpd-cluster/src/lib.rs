//! Scripts on many machines.

#![forbid(unsafe_code)]

mod catalogue;
mod delivery;
mod error;
mod front;
mod node;
mod placement;
mod presence;
mod registry;
mod selection;
mod settings;
mod transfer;
mod wire;
mod worker;

#[cfg(test)]
mod tests;

pub use error::Error;
pub use front::{Cluster, Placement, RerunPolicy};
pub use settings::{Credentials, InvalidName, Name, Settings};
pub use worker::Worker;
