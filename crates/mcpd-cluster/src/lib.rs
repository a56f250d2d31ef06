//! Scripts on many machines.

#![forbid(unsafe_code)]

mod catalogue;
mod delivery;
mod error;
mod front;
mod grants;
mod node;
mod operator;
mod placement;
mod presence;
mod registry;
mod selection;
mod settings;
mod thread;
mod transfer;
mod wire;
mod worker;

#[cfg(test)]
mod tests;

pub use error::Error;
pub use front::{Cluster, Placement, RerunPolicy};
pub use grants::{Role, grants};
pub use operator::{NodeStatus, drain, status};
pub use settings::{Credentials, InvalidName, Name, Settings};
pub use worker::Worker;
