//! Audit log: caller, tool, arguments and outcome of each call, one JSON object per line.
//! Tamper-evident: the records form a hash chain. Knows nothing of how a request is answered; the
//! request collects its facts on the way, in a `RequestRecord`.

use std::fmt;
use std::io;
use std::iter;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc as std_mpsc};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::mpsc;

use crate::observe::ending::CONTRACT;
use crate::support::own_files::Regained;
use crate::support::sync::lock;

mod arguments;
mod chain;
mod files;
mod reader;
mod record;
pub(crate) mod request_log;
mod writer;

use files::LogFiles;
pub use reader::{FaultKind, Line, LogFault, Records, Verified, verify};
use writer::{QueuedRecord, WriterState};

/// Longest time the last handle waits for the records that are still to be written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Values of `outcome` in addition to the outcomes of the script contract.
const OTHER_OUTCOMES: [&str; 21] = [
    "failed",
    "command-not-executable",
    "command-not-found",
    "killed-by-signal",
    "time-limit",
    "output-limit",
    "memory-limit",
    "cancelled",
    "unknown",
    "input-required",
    "invalid-output",
    "not-redacted",
    "unknown-tool",
    "unknown-prompt",
    "denied",
    "invalid-arguments",
    "missing-capability",
    "busy",
    "not-started",
    "shutting-down",
    "not-recorded",
];

/// All values of `outcome` in a record.
pub fn outcomes() -> impl Iterator<Item = &'static str> {
    CONTRACT.into_iter().chain(OTHER_OUTCOMES)
}

/// Settings of an audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Recorded part of the arguments.
    pub arguments: Arguments,
    /// Handling of a call that cannot be recorded.
    pub mode: Mode,
    /// Size in bytes at which a file is full, and another one is begun.
    pub max_size: u64,
    /// Number of full files kept beside the newest.
    pub keep: NonZeroU32,
}

impl Default for Options {
    /// Arguments in full, unrecorded calls counted, and up to 9 files of 16 MiB.
    fn default() -> Self {
        Self {
            arguments: Arguments::Full,
            mode: Mode::BestEffort,
            max_size: 16 << 20,
            keep: NonZeroU32::new(8).expect("it is not zero"),
        }
    }
}

/// Maximum number of files named without a look at the directory.
const MAX_NAMED: u32 = 1024;

/// Paths of the newest file of the log at `log`, and of up to `keep` older ones; of very many,
/// the newest.
pub fn files(log: &Path, keep: NonZeroU32) -> impl Iterator<Item = PathBuf> {
    let older = (1..=keep.get().min(MAX_NAMED)).map(|number| files::numbered_path(log, number));
    iter::once(log.to_owned()).chain(older)
}

/// Recorded part of the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arguments {
    /// Nothing.
    None,
    /// Names of the arguments.
    Names,
    /// Names, and the length and hash of each value.
    Hash,
    /// Everything but secrets; of a value over 1 KiB its length and hash.
    Full,
}

/// Handling of a call that cannot be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// The call is refused. Nothing runs before a record of it is safely in the file.
    Require,
    /// The call runs, and the missing record is counted.
    BestEffort,
}

/// Audit log, open for writing. All clones share it.
///
/// Dropping the last one waits until everything is written, a few seconds at most.
#[derive(Clone)]
pub struct Audit {
    inner: Arc<SharedAudit>,
}

struct SharedAudit {
    target: ArcSwap<Target>,
    state: Arc<WriterState>,
    // Dropped before `_ending`, which waits for the end: without a sender the thread ends.
    queue: mpsc::Sender<QueuedRecord>,
    _ending: ThreadEnd,
}

/// File and settings of a log.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    file: PathBuf,
    options: Options,
}

/// Waits for the end of the thread when dropped.
struct ThreadEnd(Mutex<std_mpsc::Receiver<()>>);

impl Audit {
    /// Opens the log in `file`, which is created with the first record; older files have the same
    /// name with a number. Several processes may write one log.
    ///
    /// # Errors
    ///
    /// The system refuses a thread.
    pub fn new(file: impl Into<PathBuf>, options: Options) -> io::Result<Self> {
        let file = file.into();
        let target = Target { file, options };
        let state = Arc::new(WriterState::default());
        let (queue, ended) = writer::start(target.files(), Arc::clone(&state))?;
        let inner = SharedAudit {
            target: ArcSwap::from_pointee(target),
            state,
            queue,
            _ending: ThreadEnd(Mutex::new(ended)),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Continues in `file` with these `options`, and with the records not yet written; requests
    /// that have begun are recorded under the previous options. The mode stays: the guarantee
    /// that calls are recorded lasts for the life of the log.
    pub fn continue_in(&self, file: impl Into<PathBuf>, options: Options) {
        let mut next = lock(&self.inner.state.next);
        let before = self.inner.target.load();
        let mode = before.options.mode;
        let target = Target {
            file: file.into(),
            options: Options { mode, ..options },
        };
        if target != **before {
            *next = Some(target.files());
            self.inner.target.store(Arc::new(target));
        }
    }

    /// Path of the newest file.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.inner.target.load().file.clone()
    }

    /// Settings in force.
    #[must_use]
    pub fn options(&self) -> Options {
        self.inner.target.load().options.clone()
    }

    /// Number of records that could not be written.
    #[must_use]
    pub fn lost_records(&self) -> u64 {
        self.inner.state.lost.load(Ordering::Relaxed)
    }

    /// Returns whether the last attempt to write failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.inner.state.is_failing.load(Ordering::Relaxed)
    }

    /// Returns whether calls are refused at the moment, because they cannot be recorded.
    #[must_use]
    pub fn is_refusing(&self) -> bool {
        self.is_failing() && self.options().mode == Mode::Require
    }

    /// Reserves a place in the queue, if one is left.
    fn reserve(&self) -> Option<mpsc::OwnedPermit<QueuedRecord>> {
        self.inner.queue.clone().try_reserve_owned().ok()
    }

    /// Records that the server has restored its permissions on one of its files.
    pub(crate) fn note_regained(&self, regained: &Regained) {
        match self.reserve() {
            Some(slot) => drop(slot.send(QueuedRecord {
                record: record::encode_regained(regained),
                written: None,
            })),
            None => self.count_lost(),
        }
    }

    /// Counts a record for which there was no place.
    fn count_lost(&self) {
        self.inner.state.lost.fetch_add(1, Ordering::Relaxed);
    }
}

impl Target {
    fn files(&self) -> LogFiles {
        LogFiles {
            path: self.file.clone(),
            max_size: self.options.max_size,
            keep: self.options.keep,
            durable: self.options.mode == Mode::Require,
        }
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit")
            .field("target", &self.inner.target)
            .finish_non_exhaustive()
    }
}

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        // Nothing is ever sent: the thread drops its end, or fails to in time.
        if let Ok(ended) = self.0.get_mut() {
            ended.recv_timeout(WRITE_TIMEOUT).ok();
        }
    }
}

#[cfg(test)]
mod tests;
