//! Handle of an audit log: reserves places in its queue, sends records, and follows changes of its
//! settings. Sending never waits for a disk.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc as std_mpsc};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot};

use crate::access::Regained;
use crate::files::LogFiles;
use crate::options::{Mode, Options};
use crate::record::{self, Record};
use crate::writer::{self, QueuedRecord, WriterState, lock};

/// Longest wait for the file: of the last handle for the records that are still to be written, and
/// of a caller for its record.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

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

    /// Reserves a place in the queue, if one is left, so that a later record is not lost when many
    /// records wait to be written.
    #[must_use]
    pub fn reserve(&self) -> Option<Slot> {
        let permit = self.inner.queue.clone().try_reserve_owned();
        permit.ok().map(Slot)
    }

    /// Sends `record` to the log, or counts it as lost if too many wait.
    pub fn record(&self, record: &Record<'_>) {
        self.send(record.encode());
    }

    /// Sends `record` to the log at once. The future waits until it is in the file: at mode
    /// [`Require`](Mode::Require) it survives a crash of the system from then on.
    ///
    /// # Errors
    ///
    /// The record could not be queued or written, or not within five seconds. A queued one is
    /// written later if that becomes possible.
    ///
    /// # Cancel safety
    ///
    /// The record is written even if the future is dropped.
    pub fn commit(
        &self,
        record: &Record<'_>,
    ) -> impl Future<Output = Result<(), NotRecorded>> + Send + use<> {
        let (written, is_written) = oneshot::channel();
        let entry = QueuedRecord {
            record: record.encode(),
            written: Some(written),
        };
        // If it is not queued, its sender is dropped, and the receiver knows at once.
        self.inner.queue.try_send(entry).ok();
        async {
            let in_time = tokio::time::timeout(WRITE_TIMEOUT, is_written).await;
            in_time.ok().and_then(Result::ok).ok_or(NotRecorded)
        }
    }

    /// Records something that is no request, such as what an operator did.
    pub fn note(&self, what: &str, details: &serde_json::Value) {
        self.send(record::note(what, details));
    }

    /// Records that this process has restored its rights to one of its files.
    pub fn note_regained(&self, regained: &Regained) {
        self.send(record::encode_regained(regained));
    }

    /// Counts a record for which there was no place.
    pub fn count_lost(&self) {
        self.inner.state.lost.fetch_add(1, Ordering::Relaxed);
    }

    fn send(&self, record: String) {
        let written = None;
        let entry = QueuedRecord { record, written };
        if self.inner.queue.try_send(entry).is_err() {
            self.count_lost();
        }
    }
}

/// Reserved place in the queue of a log. The log stays open while one is left.
#[derive(Debug)]
pub struct Slot(mpsc::OwnedPermit<QueuedRecord>);

impl Slot {
    /// Sends `record` to the log.
    pub fn record(self, record: &Record<'_>) {
        self.0.send(QueuedRecord {
            record: record.encode(),
            written: None,
        });
    }
}

/// The record is not in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the audit log cannot be written")]
#[non_exhaustive]
pub struct NotRecorded;

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
