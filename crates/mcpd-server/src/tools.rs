//! Tools that are no scripts: native functions, shell commands, background runs, the search for
//! tools, and the tools of endpoints. Knows the catalog and how to run; no method and no transport.

pub(crate) mod background_tools;
pub mod endpoint;
pub(crate) mod native;
pub(crate) mod run_command;
pub(crate) mod search;
pub(crate) mod tasks;
