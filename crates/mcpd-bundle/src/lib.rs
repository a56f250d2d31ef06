//! MCP bundles (`.mcpb`): an archive with a program, scripts and a manifest, made reproducibly,
//! and unpacked with care.
//!
//! ```
//! use std::fs;
//!
//! use mcpd_bundle::{Archive, Manifest, Platform, Selection, Tree, unpack};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scripts = tempfile::tempdir()?;
//! fs::write(scripts.path().join("hello"), "#!/bin/sh\necho Hello\n")?;
//! fs::write(scripts.path().join(".env"), "TOKEN=s3cret\n")?;
//! let tree = Tree::read(scripts.path(), &Selection::default())?;
//! assert_eq!(tree.left_out[0].path, ".env");
//!
//! let mut archive = Archive::default();
//! archive.add_tree("scripts", &tree)?;
//! let manifest = Manifest::new("hello", "1.0.0", "Says hello.", "Ada");
//! archive.add_bytes("manifest.json", manifest.to_json())?;
//! let mut file = tempfile::tempfile()?;
//! archive.write(&mut file)?;
//!
//! let unpacked = tempfile::tempdir()?;
//! unpack(&mut file, unpacked.path())?;
//! assert!(unpacked.path().join("scripts/hello").exists());
//! # Ok(()) }
//! ```
//!
//! - [`Selection`] and [`Tree`] find the files of a directory that belong in a bundle, and
//!   [`Contents`] those of a whole catalog, with its tools and settings.
//! - [`Archive`] holds the entries and writes them; [`unpack`] is the way back.
//! - [`Manifest`] is `manifest.json`, [`Setting`] a value that the client asks its user for, and
//!   [`Launch`] what the client starts.
//! - [`registry_entry`] is the `server.json` of the registry of MCP servers.
//!
//! The crate starts no process and reads no environment.
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
mod contents;
mod error;
mod launch;
mod manifest;
mod platform;
mod registry;
mod selection;
mod setting;
mod tree;
mod unpack;

pub use archive::{Archive, digest};
pub use contents::{Contents, PackedRoot};
pub use error::BundleError;
pub use launch::Launch;
pub use manifest::{Author, Compatibility, ListedTool, Manifest, McpConfig, Override, ServerEntry};
pub use platform::Platform;
pub use registry::registry_entry;
pub use selection::Selection;
pub use setting::{Kind, Setting, UserSetting, merge};
pub use tree::{LeftOut, Tree, TreeFile};
pub use unpack::unpack;

/// Example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
