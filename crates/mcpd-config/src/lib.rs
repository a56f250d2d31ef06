//! Configuration of an MCP server of scripts: options of a command line, their variables, the file
//! `mcpd.toml` and defaults become one server.
//!
//! Each setting is combined by its type: a flag precedes its variable, both precede the file, and
//! the default comes last. A program flattens the groups of [`options`] into its commands, reads
//! the [`File`], and combines both in [`Layers`]:
//!
//! ```
//! use clap::{CommandFactory, FromArgMatches, Parser};
//! use mcpd_config::options::Serving;
//! use mcpd_config::{Combine, File, Layers};
//!
//! #[derive(Parser)]
//! struct Args {
//!     #[command(flatten)]
//!     serving: Serving,
//! }
//!
//! # fn main() -> anyhow::Result<()> {
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("mcpd.toml");
//! std::fs::write(&path, "timeout = 5\npage_size = 7\n")?;
//! let file = File::read(&path)?;
//!
//! let definition = Args::command();
//! let matches = definition.clone().get_matches_from(["tools", "--timeout", "2", "scripts"]);
//! let mut args = Args::from_arg_matches(&matches)?;
//! let mut layers = Layers::new(&definition, &matches, &file);
//! args.serving.combine(&mut layers);
//!
//! assert_eq!(args.serving.limits.timeout.map(|time| time.0.as_secs()), Some(2));
//! assert_eq!(args.serving.page_size.map(usize::from), Some(7));
//! # Ok(())
//! # }
//! ```
//!
//! [`server_for_stdio`] and [`server_for_http`] build the server; [`effective`] lists every value
//! with its origin, [`faults`] what is wrong with a file, and [`schema`] is its JSON Schema.

#![forbid(unsafe_code)]

mod approval;
mod basic_script;
pub mod directories;
pub mod discovery;
mod effective;
pub mod examination;
mod faults;
mod file;
mod layers;
pub mod listening;
mod lock_file;
pub mod log_filter;
pub mod options;
mod portable;
pub mod private_file;
mod program;
mod roots;
mod schema;
mod server;
mod tables;
pub mod token;
mod value;
mod variables;

pub use approval::{ApprovedCopies, Review, review};
pub use basic_script::BasicScript;
pub use effective::{Effective, Origin, effective, shown_url};
pub use faults::{Fault, LocatedFault, faults};
pub use file::{File, Search};
pub use layers::{Combine, Layers, Setting};
pub use lock_file::{LockFile, locked};
pub use portable::{Portable, ProvidedSecret};
pub use roots::{RootSource, is_address, store};
pub use schema::schema;
pub use server::audit::{audit, audit_log};
pub use server::changes::{Changes, Started, read_changes};
pub use server::clients::{AGENT, name_fault};
pub use server::cluster::{FrontNode, work};
#[cfg(feature = "cluster")]
pub use server::cluster::{cluster_name, cluster_settings, examined_cluster, server_for_worker};
pub use server::interpreters::{interpreters, tolerate_faults};
pub use server::profiles::selected;
pub use server::unmatched::{unmatched_patterns, warn_of_unmatched};
pub use server::{
    ExecutionSettings, execution_settings, executor, limits, local_client, server_for_http,
    server_for_query, server_for_sources, server_for_stdio, server_for_test,
};
pub use value::Seconds;
pub use variables::{TOKEN, warn_of_variables};
