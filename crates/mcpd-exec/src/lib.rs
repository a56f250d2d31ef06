//! Runs one process under limits and as confined as you like: every way it can end is a value, its output is bounded, and
//! what was enforced is part of its outcome.
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
//!
//! It knows no protocol and no shell, reads no configuration, and takes nothing of its host unasked: no signal handler,
//! no child it did not start, and the care for orphans only where [`Config::reaper`] says so.
//!
//! # Guarantees
//!
//! | when | then |
//! |---|---|
//! | the process ends | [`Ending::Exited`] or [`Ending::Signaled`], exactly |
//! | [`Limits::wall`] is up | TERM to the group, [`Limits::grace`], KILL; [`Ending::TimedOut`] with output and status |
//! | the caller cancels | the same, as [`Ending::Cancelled`] ([`Executor::run_until`]) |
//! | the future is dropped | the same, in the background; KILL at once when the executor is dropped, too |
//! | the future is dropped while it waits | nothing is started |
//! | output passes [`Limits::output_hard`] | KILL; [`Ending::OutputLimit`] |
//! | output passes what is kept | head and tail are kept, the total is exact, memory does not grow |
//! | [`Limits::keep`] is set | its beginning is on disk besides, in a file without a name ([`Captured::file`]) |
//! | the process never reads its input | no fault; [`StdinReport::closed_early`] |
//! | something it left behind holds its pipes | over after [`Limits::drain`]; [`Outcome::pipes_held`] |
//! | nothing can be started | [`StartError`] says why; nothing is guessed |
//! | too many want to run | they wait in order; beyond [`Config::queue`], [`StartError::Busy`] at once |
//! | the executor is shut down | nothing new, and what runs is asked, then killed ([`Executor::shutdown`]) |
//! | the host is killed | with [`Config::watchdog`], so is all it has started |
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
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```
//!
//! | | [`none`](Level::None) | [`guarded`](Level::Guarded) | [`strict`](Level::Strict) |
//! |---|---|---|---|
//! | a process group of its own, no terminal, no inherited descriptors, no signals held back | yes | yes | yes |
//! | limits of the kernel ([`Limits`]) | as given | with defaults | with defaults |
//! | a temporary directory of its own, emptied afterwards | | yes | in memory |
//! | no new privileges, and none of root's | | yes | yes |
//! | writes only there and below [`Sandbox::write`] | | Landlock | read-only mounts |
//! | can't read [`Sandbox::hidden`] | | Landlock | covered by mounts |
//! | can't signal or look into other processes | | Landlock, seccomp | can't see any |
//! | system calls it has no business with are refused | | seccomp | seccomp |
//! | no network | | if asked: seccomp, Landlock | unless allowed |
//! | nothing it has started outlives it | | killed, proven with [`Config::reaper`] | by its namespace |
//!
//! That is Linux. On macOS `guarded` keeps files, signals and the network from a process by Seatbelt, and on Windows a job
//! object ends all it has started; `strict` is refused on both, and neither is tested. The README of the crate has the rest.
//!
//! What was done is in [`Outcome::enforced`], and what could not be had is there too, or refused:
//! [`Sandbox::missing`]. Confinement keeps programs from doing harm by mistake or by bad advice; a fault of the kernel
//! undoes all of it, so code of an enemy belongs into a virtual machine.
//!
//! What an unconfined process leaves behind when it ends on its own is reported, not killed. The host must not ignore
//! SIGCHLD nor reap children it did not start. It must ignore SIGPIPE, as every Rust program does unless it chooses otherwise,
//! and SIGXFSZ if the size of its files is limited. As who starts the host may have chosen for it, [`prepare_signals`] sees to
//! that.
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
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
//! ```

mod account;
mod capture;
mod command;
mod enforced;
mod error;
mod executor;
mod kept;
mod limits;
mod line;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
mod linux;
mod os;
mod outcome;
mod pipes;
mod process;
mod run;
mod sandbox;
mod spawner;
mod terminal;
mod variables;

pub use account::{Account, expand_home};
pub use capture::Captured;
pub use command::Command;
pub use enforced::{Containment, Enforced, MissingMechanism};
pub use error::StartError;
pub use executor::{Config, Executor};
pub use kept::Kept;
pub use limits::Limits;
pub use line::{Line, Stream};
pub use outcome::{Ending, Outcome, StdinReport, Timing, Usage, signal_name};
pub use sandbox::{Level, Missing, Network, RunAs, Sandbox, UnknownLevel};
pub use terminal::shown;
pub use variables::Variables;

/// The control group this process is in, if systemd has delegated it to this process (`Delegate=yes`) with what
/// [`Config::cgroup`] is for. An executor that uses it moves this process out of it: to be asked before.
#[must_use]
pub fn control_group() -> Option<std::path::PathBuf> {
    os::control_group()
}

/// The system's place for temporary files. A `TMPDIR` that is empty is none, as to shells and `mktemp`.
#[must_use]
pub fn temporary_directory() -> std::path::PathBuf {
    let directory = std::env::temp_dir();
    if directory.as_os_str().is_empty() {
        return "/tmp".into();
    }
    directory
}

/// Does the work of the second process of [`Config::watchdog`], if this process was started as that.
///
/// To be called first in `main`, before any thread is started; if it returns true, `main` must return.
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

/// Returns whether a process has `file` open for writing (Linux). It is asked for with a read lease, which the kernel grants
/// for files of this user, and to root for any; where it can't be known, the answer is `false`.
#[must_use]
pub fn is_open_for_writing(file: &std::path::Path) -> bool {
    os::is_open_for_writing(file)
}

/// Makes signals of this process do what an executor needs, whatever was chosen by who started it (Linux): its children can be
/// waited for, and a file that grows too large is an error, not the end, unless there is a handler for SIGXFSZ.
///
/// To be called first in `main`. What is started by other means than an [`Executor`] ignores what this process does.
pub fn prepare_signals() {
    os::prepare_signals();
}

/// Lets the allocator take memory from the system in large pieces (Linux with glibc). Otherwise threads take it page by
/// page while a program grows, and wait for each other.
///
/// To be called first in `main`: it concerns the whole process.
pub fn prepare_memory() {
    os::prepare_memory();
}

/// Gives back to the system what the allocator holds of memory that is free (Linux with glibc).
///
/// Worth the milliseconds that it may take when much has been in use: glibc keeps free memory below memory in use.
pub fn release_memory() {
    os::release_memory();
}
