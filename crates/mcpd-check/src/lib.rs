//! Checks of tools: what is wrong with the scripts of a directory, which rule says so and why, and
//! what the clients of MCP make of a list of tools. Renders all of it for people and programs, and
//! describes the tools themselves.
//!
//! A linter of files that describe themselves needs no server:
//!
//! ```
//! use std::path::Path;
//!
//! use mcpd_check::{Finding, render};
//! use mcpd_scriptspec::Dialect;
//!
//! let text = b"# /// mcpd\n# titel = \"Hello\"\n# description = \"Says it\"\n# ///\n";
//! let tools = Dialect::of("hello.sh", text).expect("it has a header").read("hello.sh", text);
//! let faults = tools.iter().flat_map(|tool| &tool.parsed.diagnostics);
//! let findings: Vec<_> = faults
//!     .map(|fault| Finding::in_file(Path::new("hello.sh"), text, fault))
//!     .collect();
//! let shown = render::short(&findings);
//! assert!(shown.starts_with("hello.sh:2:3: warning[unknown-field]: "), "{shown}");
//! ```
//!
//! A directory is scanned by [`mcpd_server::catalog::scan::Scanner`]; [`Finding::all`] has
//! everything that is wrong with its catalog, [`files`] the status of every file, and [`describe`]
//! what a person reads about a tool.

#![forbid(unsafe_code)]

pub mod approval;
mod changes;
pub mod clients;
pub mod cost;
pub mod describe;
mod files;
mod finding;
pub mod fix;
pub mod ignore;
pub mod remarks;
pub mod render;
pub mod rules;
mod selection;
mod suspicious;
pub mod terminal;

pub use changes::EntryChange;
pub use files::{FileStatus, ListedFile, files};
pub use finding::{EXECUTABLE_HINT, Finding, Place, faulty_sources, shortfall};
pub use fix::Fix;
pub use selection::{Selection, UnknownCode};
