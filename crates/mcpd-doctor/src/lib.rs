//! Findings about a machine that serves MCP tools, and corrections of what is safe to correct.
//!
//! - [`report`](mod@report) examines the machine: an [`Examination`](report::Examination) makes a
//!   [`Report`](report::Report) of everything below, as data and as text.
//! - [`machine`](mod@machine) has the sandbox levels and limits that the machine can enforce, found
//!   by experiment, and the interpreters that it has.
//! - [`homes`](mod@homes) has the parts of homes that confined scripts see.
//! - [`scripts`](mod@scripts) checks scripts in the environment of each client.
//! - [`correction`](mod@correction) finds faults of files that are safe to correct, shows and
//!   corrects them.
//! - [`entry`](mod@entry) finds the servers in the files of clients, and reaches one.
//! - [`installed`](mod@installed) lists the clients with the state of a server in their files.
//! - [`trial`](mod@trial) starts the server of an entry as its client would, and lists its tools.
//!
//! The crate prints nothing and asks nothing.
//!
//! ```no_run
//! # async fn example() -> Result<(), String> {
//! let report = mcpd_doctor::report::examine_with(None).await?;
//! println!("{report}");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod correction;
pub mod entry;
pub mod homes;
pub mod installed;
pub mod machine;
pub mod report;
pub mod scripts;
pub mod trial;

/// Example of the page for the crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
