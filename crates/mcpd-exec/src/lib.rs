//! Runs one process under limits, and confined as far as the caller asks. Every way a run can end
//! is a value, its output is bounded, and the outcome tells what was enforced.
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
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(example()).unwrap();
//! ```
//!
//! The crate knows no protocol and no shell, and reads no configuration. It takes nothing of its
//! host unasked: it installs no signal handler, reaps no child that it did not start, and adopts
//! orphans only if [`Config::reaper`] is set.
//!
//! # Guarantees
//!
//! | when | then |
//! |---|---|
//! | the process ends | [`Ending::Exited`] or [`Ending::Signaled`], exactly |
//! | [`Limits::wall`] is up | TERM to the group, grace, KILL; [`Ending::TimedOut`] with output |
//! | the caller cancels | the same, with [`Ending::Cancelled`] ([`Executor::run_until`]) |
//! | the future is dropped | the same in the background; KILL at once if the executor is dropped |
//! | the future is dropped in the queue | nothing is started |
//! | output passes [`Limits::output_hard`] | KILL; [`Ending::OutputLimit`] |
//! | output passes head and tail | these are kept, the total is exact, memory does not grow |
//! | [`Limits::keep`] is set | the beginning is also on disk, without a name: [`Captured::file`] |
//! | the process never reads its input | no error; [`StdinReport::closed_early`] |
//! | a leftover process holds its pipes | over after [`Limits::drain`]; [`Outcome::pipes_held`] |
//! | nothing can be started | [`StartError`] gives the cause that was found; nothing is guessed |
//! | too many runs | they wait in order; beyond [`Config::queue`], [`StartError::Busy`] at once |
//! | the executor is shut down | nothing new; TERM, then KILL ([`Executor::shutdown`]) |
//! | the host is killed | with [`Config::watchdog`], all that it has started is killed |
//!
//! # Confinement
//!
//! ```
//! # use mcpd_exec::{Command, Config, Containment, Executor, Network, Sandbox};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut config = Config::default();
//! config.reaper = true;
//! let executor = Executor::new(config)?;
//! let sandbox = Sandbox::guarded().network(Network::Off);
//! let command = Command::new("sh").args(["-c", "sleep 60 & echo data > /var/tmp/file"]);
//! let outcome = executor.run(command.sandbox(sandbox)).await?;
//! if outcome.enforced.landlock.is_some() {
//!     assert!(!outcome.success(), "it may write its temporary directory only");
//! }
//! if outcome.enforced.containment == Containment::Proven {
//!     assert_eq!(outcome.leftovers, Some(1), "what it left behind was ended");
//! }
//! # Ok(()) }
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(example()).unwrap();
//! ```
//!
//! | | [`none`](Level::None) | [`guarded`](Level::Guarded) | [`strict`](Level::Strict) |
//! |---|---|---|---|
//! | own process group, no terminal, inherited descriptor or blocked signal | yes | yes | yes |
//! | limits of the kernel ([`Limits`]) | as given | with defaults | with defaults |
//! | an own temporary directory, emptied afterwards | | yes | in memory |
//! | no new privileges, and none of root's | | yes | yes |
//! | writes only there and below [`Sandbox::write`] | | Landlock | read-only mounts |
//! | can't read [`Sandbox::hidden`] | | Landlock | covered by mounts |
//! | can't signal or look into other processes | | Landlock, seccomp | can't see any |
//! | dangerous system calls are refused | | seccomp | seccomp |
//! | no network | | if asked: seccomp, Landlock | unless allowed |
//! | only listed destinations ([`Sandbox::destinations`]) | | namespace, or Landlock | namespace |
//! | no descendant outlives the run | | killed, proven with [`Config::reaper`] | by its namespace |
//!
//! A [backend](backend::Backend) has a program of the system make the namespaces of `strict`.
//!
//! The table is for Linux. On macOS, `guarded` denies files, signals and the network by Seatbelt.
//! On Windows, a job object ends everything the process has started. Both systems refuse
//! `strict`, and neither is tested. The README of the crate has the rest.
//!
//! [`Outcome::enforced`] tells what was done, and what the system lacks unless the run was
//! refused for that: [`Sandbox::missing`]. Confinement keeps programs from doing harm by mistake
//! or by bad advice. A bug of the kernel undoes all of it, so hostile code belongs into a virtual
//! machine.
//!
//! Processes that an unconfined run leaves behind when it ends on its own are reported, not
//! killed. The host must not ignore SIGCHLD, nor reap children that it did not start. It must
//! ignore SIGPIPE, as every Rust program does by default, and SIGXFSZ if its file size is
//! limited. The parent of the host may have set these signals otherwise; [`prepare_signals`] sets
//! them right. Each process gets the default action for all standard signals; one that the host
//! has begun to ignore less than 50 ms ago may still be ignored.
//!
//! # Lines as they arrive, and cancelling
//!
//! ```
//! # use mcpd_exec::{Command, Config, Ending, Executor};
//! # use std::time::Duration;
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! # let executor = Executor::new(Config::default())?;
//! let command = Command::new("sh").args(["-c", "echo working; sleep 60"]);
//! let (lines, mut seen) = tokio::sync::mpsc::channel(16);
//! let on_line = |line: mcpd_exec::Line<'_>| {
//!     // A full channel loses lines; the process is never kept waiting.
//!     lines.try_send(line.bytes.to_vec()).ok();
//! };
//! let enough = async { drop(seen.recv().await) };
//! let outcome = executor.run_until(command, on_line, enough).await?;
//! assert_eq!(outcome.ending, Ending::Cancelled);
//! assert_eq!(outcome.stdout.head, "working\n");
//! # Ok(()) }
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(example()).unwrap();
//! ```

#![warn(clippy::large_futures)] // 4 kB, in clippy.toml

mod account;
pub mod backend;
mod capture;
mod command;
pub mod egress;
#[cfg(feature = "serde")]
mod encoding;
mod enforcement;
mod error;
mod executor;
mod limits;
mod line;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod linux;
pub mod memory;
mod os;
mod outcome;
mod pipes;
mod process;
mod run;
mod sandbox;
mod spawner;
mod spill;
mod terminal;
mod variables;
pub mod warm;

pub use account::{Account, expand_home};
pub use capture::Captured;
pub use command::Command;
pub use enforcement::{Containment, Enforcement, MissingMechanism};
pub use error::StartError;
pub use executor::{Config, Executor};
pub use limits::Limits;
pub use line::{Line, Stream};
pub use outcome::{Ending, Outcome, StdinReport, Timing, Usage, signal_name};
pub use sandbox::{Level, Missing, Network, RunAs, Sandbox, UnknownLevel};
pub use spill::SpillFile;
pub use terminal::terminal_text;
pub use variables::Variables;

/// Returns the control group of this process, if systemd has delegated it (`Delegate=yes`) with
/// all that [`Config::cgroup`] needs. Call it before an executor is made: one that uses the group
/// moves this process out of it.
#[must_use]
pub fn control_group() -> Option<std::path::PathBuf> {
    os::control_group()
}

/// Returns the system's directory for temporary files. An empty `TMPDIR` counts as unset, as it
/// does for shells and `mktemp`.
#[must_use]
pub fn temporary_directory() -> std::path::PathBuf {
    let directory = std::env::temp_dir();
    if directory.as_os_str().is_empty() {
        return "/tmp".into();
    }
    directory
}

/// Does the work of the watchdog process of [`Config::watchdog`], if this process was started as
/// that.
///
/// Call it first in `main`, before any thread starts. If it returns true, `main` must return.
///
/// ```
/// # fn begin() {
/// if mcpd_exec::run_watchdog() {
///     return;
/// }
/// // ...
/// # }
/// ```
#[must_use]
pub fn run_watchdog() -> bool {
    os::run_watchdog()
}

/// Returns whether a process has `file` open for writing (Linux). It asks for a read lease, which
/// the kernel grants on files of this user, and to root on any file. If that can't be had, it
/// returns `false`.
#[must_use]
pub fn is_open_for_writing(file: &std::path::Path) -> bool {
    os::is_open_for_writing(file)
}

/// Sets the signals of this process as an executor needs them, even if its parent has set them
/// otherwise (Linux). Children can be waited for, and a file that grows too large is an error
/// instead of the end of the process, unless SIGXFSZ has a handler.
///
/// Call it first in `main`. Processes that are started without an [`Executor`] inherit the
/// signals that are ignored.
pub fn prepare_signals() {
    os::prepare_signals();
}
