//! Scripts on many machines.

#![forbid(unsafe_code)]

mod delivery;
mod placement;
mod presence;
mod registry;
mod wire;

#[cfg(test)]
mod tests;
