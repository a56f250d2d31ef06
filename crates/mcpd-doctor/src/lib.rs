//! Findings about a machine that serves MCP tools, and corrections of what is safe to correct.
//!
//! - [`entry`](mod@entry) finds the servers in the files of clients, and reaches one.
//! - [`trial`](mod@trial) starts the server of an entry as its client would, and lists its tools.
//!
//! The crate prints nothing and asks nothing.

#![forbid(unsafe_code)]

pub mod entry;
pub mod trial;

/// Example of the page for the crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
