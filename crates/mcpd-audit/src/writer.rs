//! Writer thread of an audit log. A sender puts its record into a queue, and never waits for a
//! disk; records that arrive together are written as one batch.
//!
//! ```text
//!          ┌──────────────── batch written ◄───────────────┐
//!          ▼                                               │
//!  wait for records ─► collect ≤ 256 ─► append to the file ┤
//!                           ▲                              │
//!                           └── failing: retry every 250 ms ◄── error: count as lost
//! ```

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::files::{LogFiles, WrittenState};
use crate::record;

/// Maximum number of queued records, including places reserved by open requests.
const MAX_QUEUED_RECORDS: usize = 4096;
/// Maximum number of records in one batch.
const MAX_BATCH: usize = 256;

/// Delay that collects a batch of records for which no request waits.
const BATCH_DELAY: Duration = Duration::from_millis(2);

/// Interval of attempts while writing fails.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// Record on its way to the file.
#[derive(Debug)]
pub(crate) struct QueuedRecord {
    /// JSON object.
    pub(crate) record: String,
    /// Receives a message when the record is in the file; dropped if it cannot be written.
    pub(crate) written: Option<oneshot::Sender<()>>,
}

/// State of the writer, shared with the handles.
#[derive(Debug, Default)]
pub(crate) struct WriterState {
    /// Number of records that are in no file, and never will be.
    pub(crate) lost: AtomicU64,
    /// The last attempt to write failed.
    pub(crate) is_failing: AtomicBool,
    /// Files to continue in.
    pub(crate) next: Mutex<Option<LogFiles>>,
}

struct Writer {
    files: LogFiles,
    written: Option<WrittenState>,
    state: Arc<WriterState>,
    /// Number of lost records that the log reports.
    reported: u64,
}

/// Locks `mutex`. No code of this crate panics while it holds a lock, so a poisoned one still
/// guards consistent data.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread, which ends when every sender is gone and everything is written; then the
/// receiver disconnects.
///
/// # Errors
///
/// The system refuses a thread.
pub(crate) fn start(
    files: LogFiles,
    state: Arc<WriterState>,
) -> io::Result<(mpsc::Sender<QueuedRecord>, std_mpsc::Receiver<()>)> {
    let (queue, entries) = mpsc::channel(MAX_QUEUED_RECORDS);
    let (ending, ended) = std_mpsc::channel();
    let writer = Writer {
        files,
        written: None,
        state,
        reported: 0,
    };
    thread::Builder::new()
        .name("mcpd-audit".to_owned())
        .spawn(move || {
            writer.run(entries);
            drop(ending);
        })?;
    Ok((queue, ended))
}

impl Writer {
    fn run(mut self, mut entries: mpsc::Receiver<QueuedRecord>) {
        let mut batch = Vec::new();
        while entries.blocking_recv_many(&mut batch, MAX_BATCH) > 0 {
            let is_awaited = batch.iter().any(|entry| entry.written.is_some());
            let is_full = batch.len() == MAX_BATCH;
            self.write(batch.drain(..));
            if !is_awaited && !is_full && !entries.is_closed() {
                thread::sleep(BATCH_DELAY);
            }
            // While writing fails, calls may be refused and no record may arrive: the end of the
            // failure must be detected without one.
            while self.is_failing() && entries.is_empty() && !entries.is_closed() {
                thread::sleep(RETRY_INTERVAL);
                self.write(std::iter::empty());
            }
        }
    }

    fn is_failing(&self) -> bool {
        self.state.is_failing.load(Ordering::Relaxed)
    }

    fn write(&mut self, batch: impl Iterator<Item = QueuedRecord>) {
        if let Some(files) = lock(&self.state.next).take() {
            (self.files, self.written) = (files, None);
        }
        let lost = self.state.lost.load(Ordering::Relaxed);
        let unreported = lost - self.reported;
        let note =
            (unreported > 0).then(|| record::note("audit/lost", &json!({"records": unreported})));
        let mut records: Vec<_> = note.into_iter().collect();
        let mut waiting = Vec::new();
        for entry in batch {
            records.push(entry.record);
            waiting.push(entry.written);
        }
        match self.files.append(&records, self.written.take()) {
            Ok(written) => {
                self.written = Some(written);
                if unreported > 0 {
                    tracing::warn!(records = unreported, "the audit log is missing records");
                }
                self.reported = lost;
                self.state.is_failing.store(false, Ordering::Relaxed);
                for written in waiting.into_iter().flatten() {
                    written.send(()).ok();
                }
            }
            Err(error) => {
                self.state
                    .lost
                    .fetch_add(waiting.len() as u64, Ordering::Relaxed);
                // The error is logged once, however many records follow.
                if !self.state.is_failing.swap(true, Ordering::Relaxed) {
                    tracing::error!(file = %self.files.path.display(), "failed to write the audit log: {error}");
                }
            }
        }
    }
}
