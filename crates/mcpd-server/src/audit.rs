//! The audit log: who called what with which arguments, and what came of it, one JSON object a line. Knows nothing of
//! how a request is answered; what there is to tell is noted on its way, in a `Trail`.

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

use crate::output::CONTRACT;
use crate::own_files::Regained;
use crate::sync::lock;

mod arguments;
mod chain;
mod files;
mod reader;
mod record;
pub(crate) mod trail;
mod writer;

pub(crate) use arguments::{has_secrets, is_secret};
use files::Files;
pub use reader::{Fault, FaultKind, Line, Records, Verified, verify};
use writer::{Entry, State};

/// How long the last handle waits for what is still to be written.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a record may have as its `outcome` besides the names of the script contract.
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

/// All that a record may have as its `outcome`.
pub fn outcomes() -> impl Iterator<Item = &'static str> {
    CONTRACT.into_iter().chain(OTHER_OUTCOMES)
}

/// What is written to an audit log, and what if it can't be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// How much is recorded of arguments.
    pub arguments: Arguments,
    /// What becomes of a call that can't be recorded.
    pub mode: Mode,
    /// How many bytes make a file full, so that another one is begun.
    pub max_size: u64,
    /// How many full files are kept beside the newest.
    pub keep: NonZeroU32,
}

impl Default for Options {
    /// Arguments in full, calls that can't be recorded are counted, and up to 9 files of 16 MiB.
    fn default() -> Self {
        Self {
            arguments: Arguments::Full,
            mode: Mode::BestEffort,
            max_size: 16 << 20,
            keep: NonZeroU32::new(8).expect("it is not zero"),
        }
    }
}

/// The most files that are named before they are there.
const MAX_NAMED: u32 = 1024;

/// The newest file of the log at `log`, and the `keep` older ones there may be; of very many, the newest of those.
pub fn files(log: &Path, keep: NonZeroU32) -> impl Iterator<Item = PathBuf> {
    let older = (1..=keep.get().min(MAX_NAMED)).map(|number| files::numbered(log, number));
    iter::once(log.to_owned()).chain(older)
}

/// How much is recorded of the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arguments {
    /// Nothing.
    None,
    /// Their names.
    Names,
    /// Their names, and the length and hash of each value.
    Hash,
    /// Everything but secrets; of a value over 1 KiB its length and hash.
    Full,
}

/// What becomes of a call that can't be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// It is refused. Nothing runs before a record of it is safely in the file.
    Require,
    /// It is counted.
    BestEffort,
}

/// An audit log that is written. All clones are one.
///
/// Dropping the last one waits a few seconds, if it has to, until everything is written.
#[derive(Clone)]
pub struct Audit {
    inner: Arc<Inner>,
}

struct Inner {
    target: ArcSwap<Target>,
    state: Arc<State>,
    // Dropped before what waits for the end: without a sender the thread ends.
    queue: mpsc::Sender<Entry>,
    _ending: Ending,
}

/// Where a log is, and what is written to it.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    file: PathBuf,
    options: Options,
}

/// Waits for the end of the thread when dropped.
struct Ending(Mutex<std_mpsc::Receiver<()>>);

impl Audit {
    /// The log in `file`, which is made when there is something to write; older ones have the same name with a number.
    /// Several processes may write one log.
    ///
    /// # Errors
    ///
    /// The system refuses a thread.
    pub fn new(file: impl Into<PathBuf>, options: Options) -> io::Result<Self> {
        let file = file.into();
        let target = Target { file, options };
        let state = Arc::new(State::default());
        let (queue, ended) = writer::start(target.files(), Arc::clone(&state))?;
        let inner = Inner {
            target: ArcSwap::from_pointee(target),
            state,
            queue,
            _ending: Ending(Mutex::new(ended)),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Goes on in `file` as `options` say, with what has not been written yet; requests that have begun are recorded as
    /// they began. Only the mode stays: whether calls must be recorded is for good.
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

    /// The newest file.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.inner.target.load().file.clone()
    }

    /// What is written, and what if it can't be.
    #[must_use]
    pub fn options(&self) -> Options {
        self.inner.target.load().options.clone()
    }

    /// How many records could not be written.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.inner.state.lost.load(Ordering::Relaxed)
    }

    /// Whether the last attempt to write failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.inner.state.is_failing.load(Ordering::Relaxed)
    }

    /// Whether calls are refused at the moment, because they can't be recorded.
    #[must_use]
    pub fn is_refusing(&self) -> bool {
        self.is_failing() && self.options().mode == Mode::Require
    }

    /// A place in the queue, if there is one left.
    fn reserve(&self) -> Option<mpsc::OwnedPermit<Entry>> {
        self.inner.queue.clone().try_reserve_owned().ok()
    }

    /// Records that the server has regained its rights to a file of its own.
    pub(crate) fn note_regained(&self, regained: &Regained) {
        match self.reserve() {
            Some(place) => drop(place.send(Entry {
                record: record::regained(regained),
                written: None,
            })),
            None => self.lose(),
        }
    }

    /// Counts a record for which there was no place.
    fn lose(&self) {
        self.inner.state.lost.fetch_add(1, Ordering::Relaxed);
    }
}

impl Target {
    fn files(&self) -> Files {
        Files {
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

impl Drop for Ending {
    fn drop(&mut self) {
        // Nothing is ever sent: the thread drops its end, or doesn't in time.
        if let Ok(ended) = self.0.get_mut() {
            ended.recv_timeout(PATIENCE).ok();
        }
    }
}

#[cfg(test)]
mod tests;
