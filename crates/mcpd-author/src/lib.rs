//! Help for the authors of scripts that are tools of MCP.
//!
//! ```no_run
//! use mcpd_author::adopt::{Adoption, Subcommands};
//! use mcpd_exec::{Config, Executor};
//!
//! # async fn example() -> anyhow::Result<()> {
//! let executor = Executor::new(Config::default())?;
//! let remark = |text: &str| eprintln!("{text}");
//! let mut adoption = Adoption::new(executor, &remark);
//! adoption.adopt("git log", Subcommands::LeftOut).await?;
//! for draft in adoption.drafts() {
//!     println!("{}", draft.text());
//! }
//! # Ok(()) }
//! ```
//!
//! - [`adopt`] drafts sidecars for programs that know nothing of mcpd.
//! - [`package`] gathers the content of a bundle of scripts, and tries the finished file.
//! - [`script`] creates scripts that work, to begin from.
//! - [`session`] shows what happens on a server while its scripts are written, and makes the last
//!   call again when its script is saved.
//!
//! The crate prints nothing and asks nothing. It overwrites no script; a finished bundle replaces
//! an older one only on request.
//!
//! # Features
//!
//! None.
//!
//! # Stability
//!
//! Before 1.0 a minor version may break. The minimum supported Rust version is 1.95.

#![forbid(unsafe_code)]

pub mod adopt;
mod new_file;
pub mod package;
pub mod script;
pub mod session;
mod shell;

/// Example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
