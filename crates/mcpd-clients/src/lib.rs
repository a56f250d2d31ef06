//! Configuration files of MCP clients: where they are, the form of an entry in each, and edits
//! that keep everything else.
//!
//! Writes a server to the file of a client, and takes it away again:
//!
//! ```
//! use mcpd_clients::edit::Removal;
//! use mcpd_clients::{Client, Places, Platform, Scope, Server, diff};
//!
//! let cursor = Client::find("cursor").expect("a known client");
//! let places = Places::new(Platform::Linux, "/home/ada");
//! let file = cursor.file(Scope::User, &places, "tools").expect("it has such a file");
//! assert_eq!(file.path().to_str(), Some("/home/ada/.cursor/mcp.json"));
//!
//! let before = "{\n  // mine\n  \"mcpServers\": {\n    \"db\":{\"url\": \"http://d\"},\n  }\n}\n";
//! let server = Server::stdio("tools", "/usr/bin/mcpd", ["stdio", "--root", "/srv/tools"])
//!     .pass_env("GITHUB_TOKEN");
//! let after = file.install(before, &server)?;
//! assert!(diff(before, &after).contains("\"GITHUB_TOKEN\": \"${env:GITHUB_TOKEN}\"\n"));
//! assert!(after.starts_with("{\n  // mine\n"));
//!
//! let removal = file.remove(&after, "tools", None)?;
//! assert_eq!(removal, Removal::Text(before.to_owned()));
//! # Ok::<(), mcpd_clients::ClientError>(())
//! ```
//!
//! - [`Client`] is one of the known clients: its files, its form, its deep links, and how to find
//!   out that it is installed. Nothing is read from the environment: [`Places`] has it.
//! - [`ConfigFile`] is the file of a client in one [`Scope`]. It makes a new text of an old one,
//!   and reads the servers of a text.
//! - [`Request`] is a server to install in terms that suit every client: it becomes a [`Server`] of
//!   one client and scope.
//! - [`edit`](mod@edit) has the edits of JSON, TOML and YAML, for any table of any file.
//! - [`Client::variables`], [`Connection::environment`] and [`Connection::resolve`] say what the
//!   client starts for an entry, so that a program can start the same.
//! - [`plan`](mod@plan) plans the change of a file, to be shown and then applied.
//! - [`file`](mod@file) reads and writes files: whole, with mode and owner, and only if they are
//!   as they were read.
//!
//! Secrets are written as references to variables, or not at all.

#![forbid(unsafe_code)]

mod client;
mod config_file;
mod diff;
pub mod edit;
pub mod file;
mod launch;
mod places;
pub mod plan;
mod repair;
mod request;
mod server;

/// Example of the page for the crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use client::{Client, ClientError, ProjectPath, Reference, Scope};
pub use config_file::ConfigFile;
pub use diff::diff;
pub use places::{Places, Platform};
pub use repair::{EntryFault, Repair};
pub use request::{Prepared, Request, UrlTransport};
pub use server::{Connection, Drift, InstalledServer, Server, Transport};
