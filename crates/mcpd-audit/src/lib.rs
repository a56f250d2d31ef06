//! Tamper-evident audit log: one JSON object per line, in files that rotate. Each record contains
//! the hash of the one before, so that a record that is changed, removed or moved later is
//! detected.
//!
//! ```
//! use mcpd_audit::{Audit, Details, Options, Record, RecordKind, RecordedCaller, Records, verify};
//! use serde_json::{json, value::to_raw_value};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let file = directory.path().join("audit.jsonl");
//! let audit = Audit::new(&file, Options::default())?;
//! let mut details = Details::default();
//! details.tool = Some("transfer");
//! let params = to_raw_value(&json!({"amount": 10}))?;
//! let record = Record::new(RecordKind::End, "tools/call", &params)
//!     .caller(RecordedCaller::new("ada", "http", "2026-07-28"))
//!     .error(Some("there is no such account"))
//!     .details(details);
//! audit.record(&record);
//! drop(audit); // Waits until everything is written.
//!
//! for line in Records::open(&file)? {
//!     assert!(line?.text.contains(r#""principal":"ada""#));
//! }
//! let verified = verify(&file)?;
//! assert!(verified.faults.is_empty());
//! assert!(std::fs::read_to_string(&file)?.contains(&verified.hash));
//! # Ok(()) }
//! ```
//!
//! # Writing
//!
//! An [`Audit`] is a handle of a thread that writes. [`Audit::record`] never waits for a disk, and
//! [`Audit::commit`] waits until the record is in the file. [`Audit::reserve`] makes sure that the
//! end of what has begun can be recorded. Records that cannot be written are counted
//! ([`Audit::lost_records`]), and the log has a note about them as soon as it can be written again.
//!
//! Several processes may write one log: a writer locks the newest file, and continues after the
//! last record of any process. A file that is full is renamed to a number.
//!
//! # Reading
//!
//! [`Records`] iterates over the lines of all files, or the last of them, and continues with those
//! written since. A [`Search`] finds records, and [`find_record`] reads one again. [`verify`] finds
//! every fault. Who can write the files can also write a new chain; a copy of the last hash, kept
//! elsewhere, proves that there is none.
//!
//! # Stability
//!
//! Before 1.0 a minor version may break. The minimum supported Rust version is 1.95.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod access;
mod blocks;
mod chain;
mod files;
mod log;
mod options;
mod reader;
mod record;
mod regular_file;
mod search;
#[cfg(test)]
mod test_log;
mod verification;
mod witness;
mod writer;

pub use log::{Audit, NotRecorded, Slot};
pub use options::{Arguments, Mode, Options, files};
pub use reader::{Line, Records, find_record};
pub use record::{ConnectionDetails, Details, Record, RecordKind, RecordedCaller, RunDetails};
pub use search::{Found, Search, parse_time};
pub use verification::{FaultKind, LogFault, Verified, verify};
pub use witness::{Run, WitnessedRuns, Witnesses};
