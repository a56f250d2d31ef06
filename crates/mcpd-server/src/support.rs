//! Helpers without knowledge of MCP: locks, random identifiers, and files and directories
//! that only this process may touch.

pub(crate) mod blocking;
pub(crate) mod error_chain;
pub(crate) mod own_files;
pub(crate) mod private_dir;
pub(crate) mod random_id;
pub(crate) mod regular_file;
pub(crate) mod sync;
