//! Directories in git repositories and archives as sources of scripts: their addresses, a lock file
//! that pins their content, a store of what was reviewed, and the changes that are to be reviewed.
//!
//! ```
//! use mcpd_sources::{Digest, Lock, Pin, Source};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let source: Source = "git+https://host.example/tools?rev=main&path=scripts".parse()?;
//! let checkout = tempfile::tempdir()?;
//! std::fs::write(checkout.path().join("hello"), "#!/bin/sh\n")?;
//!
//! let commit = "8f0d8a6cf0e0b1c2d3e4f5061728394a5b6c7d8e".to_owned();
//! let mut lock = Lock::default();
//! lock.insert(source.clone(), Pin::git(commit, Digest::of_tree(checkout.path())?))?;
//!
//! // The text is for version control; equal locks have equal texts.
//! let read: Lock = lock.to_string().parse()?;
//! std::fs::write(checkout.path().join("hello"), "#!/bin/sh\nid\n")?;
//! let pin = read.get(&source).ok_or("never reviewed")?;
//! assert_ne!(pin.tree, Digest::of_tree(checkout.path())?, "the content has changed");
//! # Ok(()) }
//! ```
//!
//! [`Source::fetch`] gets the content with the `git` program, or over HTTP, and nothing of it is
//! run: no hook, no filter, no script. An address that parses has no value that `git` or `ssh`
//! could take for an option, and no transport that runs a command.
//!
//! # Features
//!
//! None.
//!
//! # Stability
//!
//! Before 1.0 a minor version may break. The minimum supported Rust version is 1.95.

#![forbid(unsafe_code)]

mod archive;
mod changes;
mod digest;
mod error;
mod fetch;
mod git;
mod lock;
mod source;
mod staging;
mod store;

pub use changes::{FileChange, FileVersion};
pub use digest::Digest;
pub use error::{FetchError, LockError, SourceError, TreeError};
pub use fetch::Fetched;
pub use lock::{Lock, Pin};
pub use source::Source;
pub use store::Store;

/// Example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
