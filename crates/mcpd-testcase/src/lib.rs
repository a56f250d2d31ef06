//! Tests of tools, prompts and resources: cases beside the scripts, their comparison with what a
//! server answers, snapshots, and generated arguments with shrinking.
//!
//! A file `NAME.test.toml` has the cases of the file `NAME` beside it:
//!
//! ```
//! use std::path::Path;
//!
//! use mcpd_testcase::{TestFile, render_faults};
//!
//! let text = r#"
//! [[case]]
//! name = "greets by name"
//! arguments = { name = "World" }
//! text = "Hello, World!"
//!
//! [[case]]
//! name = "refuses a stranger"
//! argument = { name = "Eve" }
//! exit = 3
//! "#;
//! let (file, faults) = TestFile::read(Path::new("greet.test.toml"), text);
//! assert_eq!(file.cases[0].name, "greets by name");
//! assert_eq!(
//!     render_faults(&faults),
//!     "greet.test.toml:9:1: `argument` is not a key of a case; did you mean `arguments`?\n"
//! );
//! ```
//!
//! A [`Plan`] finds the cases of a catalog, [`run`] calls the tools through a server in this
//! process, with the messages that any client sends, and [`render`] writes the [`Report`].

#![forbid(unsafe_code)]

mod call;
mod case;
mod compare;
mod ending;
mod fault;
mod generate;
mod plan;
mod reader;
mod record;
pub mod render;
mod report;
mod run;
mod snapshot;
mod subject;
mod written_files;

pub use case::{Case, Expected, Generation, TestFile};
pub use ending::Ending;
pub use fault::{Fault, render_faults};
pub use plan::{Plan, Suite};
pub use record::{Recording, append};
pub use report::{CaseReport, GeneratedFault, GeneratedReport, Report, SuiteReport};
pub use run::{Options, Servers, run};
pub use subject::{Subject, SubjectKind};

/// Suffix of a file with cases, after the name of the tested file.
pub const SUFFIX: &str = mcpd_server::catalog::scan::TEST_CASES;
