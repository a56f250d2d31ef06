//! Configuration files of MCP clients.

#![forbid(unsafe_code)]

pub mod edit;
