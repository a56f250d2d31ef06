//! Kinds of tools: scripts, native functions, commands, background runs, and tools of other
//! servers and programs.

pub(crate) mod background_tools;
pub mod endpoint;
pub(crate) mod native;
pub(crate) mod run_command;
pub mod source;
pub(crate) mod tasks;
pub(crate) mod tool;
