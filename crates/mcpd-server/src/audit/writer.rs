//! The thread that writes an audit log. Whoever has a record puts it into a queue and never waits for a disk; what
//! arrives together is written together.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::files::{Files, Written};
use super::record;
use crate::sync::lock;

/// How many records may wait, those of open requests counted in.
const QUEUE: usize = 4096;
/// How many records are written at once.
const BATCH: usize = 256;

/// For how long records are collected that nobody waits for: what arrives together is written together.
const TOGETHER: Duration = Duration::from_millis(2);

/// How long to wait before writing is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// A record on its way to the file.
#[derive(Debug)]
pub(super) struct Entry {
    /// A JSON object.
    pub(super) record: String,
    /// Told when the record is in the file; dropped if it can't be written.
    pub(super) written: Option<oneshot::Sender<()>>,
}

/// How the writing goes.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Records that are in no file, and never will be.
    pub(super) lost: AtomicU64,
    /// The last attempt to write has failed.
    pub(super) is_failing: AtomicBool,
    /// Where the writing goes on.
    pub(super) next: Mutex<Option<Files>>,
}

struct Writer {
    files: Files,
    written: Option<Written>,
    state: Arc<State>,
    /// How many of the lost records the log tells of.
    told: u64,
}

/// Starts the thread, which ends when every sender is gone and everything is written; then the receiver is told.
///
/// # Errors
///
/// The system refuses a thread.
pub(super) fn start(
    files: Files,
    state: Arc<State>,
) -> io::Result<(mpsc::Sender<Entry>, std_mpsc::Receiver<()>)> {
    let (queue, entries) = mpsc::channel(QUEUE);
    let (ending, ended) = std_mpsc::channel();
    let writer = Writer {
        files,
        written: None,
        state,
        told: 0,
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
    fn run(mut self, mut entries: mpsc::Receiver<Entry>) {
        let mut batch = Vec::new();
        while entries.blocking_recv_many(&mut batch, BATCH) > 0 {
            let is_awaited = batch.iter().any(|entry| entry.written.is_some());
            let is_full = batch.len() == BATCH;
            self.write(batch.drain(..));
            if !is_awaited && !is_full && !entries.is_closed() {
                thread::sleep(TOGETHER);
            }
            // Nobody may call as long as it is known to fail: that it is over has to be found out without.
            while self.is_failing() && entries.is_empty() && !entries.is_closed() {
                thread::sleep(RETRY);
                self.write(std::iter::empty());
            }
        }
    }

    fn is_failing(&self) -> bool {
        self.state.is_failing.load(Ordering::Relaxed)
    }

    fn write(&mut self, batch: impl Iterator<Item = Entry>) {
        if let Some(files) = lock(&self.state.next).take() {
            (self.files, self.written) = (files, None);
        }
        let lost = self.state.lost.load(Ordering::Relaxed);
        let untold = lost - self.told;
        let note = (untold > 0).then(|| record::note("audit/lost", &json!({"records": untold})));
        let mut records: Vec<_> = note.into_iter().collect();
        let mut waiting = Vec::new();
        for entry in batch {
            records.push(entry.record);
            waiting.push(entry.written);
        }
        match self.files.append(&records, self.written.take()) {
            Ok(written) => {
                self.written = Some(written);
                if untold > 0 {
                    tracing::warn!(records = untold, "records are missing in the audit log");
                }
                self.told = lost;
                self.state.is_failing.store(false, Ordering::Relaxed);
                for written in waiting.into_iter().flatten() {
                    written.send(()).ok();
                }
            }
            Err(error) => {
                self.state
                    .lost
                    .fetch_add(waiting.len() as u64, Ordering::Relaxed);
                // Once, however many records follow.
                if !self.state.is_failing.swap(true, Ordering::Relaxed) {
                    tracing::error!(file = %self.files.path.display(), "failed to write the audit log: {error}");
                }
            }
        }
    }
}
