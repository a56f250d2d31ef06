//! A language server for the files that make scripts tools: sidecars, headers in scripts, other
//! dialects of descriptions, and `mcpd.toml`.
//!
//! It shows faults while they are typed, completes keys and values, explains them, and fixes what
//! needs no decision. It never runs a script, so faults that only `--help` shows are left to
//! `mcpd check`.
//!
//! ```no_run
//! use mcpd_check::Selection;
//! use mcpd_lsp::{Ending, serve_stdio};
//!
//! fn main() -> Result<(), mcpd_lsp::Error> {
//!     let ending = serve_stdio(Selection::default())?;
//!     std::process::exit(if ending == Ending::Clean { 0 } else { 1 });
//! }
//! ```

#![forbid(unsafe_code)]

mod answer;
mod complete;
mod document;
mod json;
mod outline;
mod problem;
mod schema;
mod server;
mod text;
mod toml;

pub use server::{Ending, Error, serve_stdio};
