//! Runs one process under limits. Every way it can end is a value, its output is bounded, and when it is cut short
//! nothing its process group can reach is left behind.
//!
//! ```
//! use mcpd_exec::{Command, Config, Ending, Executor};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let executor = Executor::new(Config::default())?;
//! let outcome = executor.run(Command::new("sort").stdin("b\na\n")).await?;
//! assert_eq!(outcome.ending, Ending::Exited(0));
//! assert_eq!(outcome.stdout.to_text_lossy(), "a\nb\n");
//! # Ok(()) }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
#![forbid(unsafe_code)]

mod capture;
mod command;
mod error;
mod executor;
mod limits;
mod line;
mod os;
mod outcome;
mod pipes;
mod process;
mod run;
mod spawner;

pub use capture::Captured;
pub use command::Command;
pub use error::StartError;
pub use executor::{Config, Executor};
pub use limits::Limits;
pub use line::{Line, Stream};
pub use outcome::{Ending, Outcome, StdinReport, Timing};
