//! Standard error as a bounded queue with one writer thread: a reader that
//! stalls blocks nothing else.
//!
//! ```text
//! log record, remark, panic ──► queue ──► writer thread ──► standard error
//!                                └── full: dropped, counted (servers) or backpressure (commands)
//! ```
//!
//! A server drops text that does not fit, and logs the number of dropped records as soon as
//! standard error takes text again. A command has a user or a pager behind it, so it waits for
//! room until it is asked to end. Nothing else in the program writes to standard error.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, ErrorKind, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{mem, panic, thread};

/// Maximum number of queued bytes; a longer text is accepted when the queue is empty.
const MAX_QUEUED: usize = 1 << 20;

/// Timeout for the remaining queue at the end of a server.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(250);

/// Interval at which a waiting command checks for a request to end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Pause before writing again to a descriptor that is non-blocking and full.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// The queue of this process.
static QUEUE: LazyLock<Arc<Queue>> = LazyLock::new(Arc::default);

/// Queues `text`, which is written in one piece, in the order of the calls.
pub fn write(text: &[u8]) {
    if !QUEUE.push(text, write_all) {
        // The system refuses a thread, so this thread writes.
        write_all(text);
    }
}

/// Drops text that does not fit from now on, as a server must.
pub fn drop_when_full() {
    QUEUE.is_lossy.store(true, Ordering::Relaxed);
}

/// Flag that cancels every wait for room or for the end of the queue: set by a request to end.
#[cfg(unix)]
pub(crate) fn give_up_flag() -> Arc<AtomicBool> {
    Arc::clone(&QUEUE.is_given_up)
}

/// Waits until everything is written; in a server at most a quarter of a second.
pub fn flush() {
    QUEUE.flush();
}

/// Flushes before text goes to standard output, so that a terminal shows both
/// in the order of the calls.
pub fn flush_before_answer() {
    if !QUEUE.is_lossy.load(Ordering::Relaxed) {
        QUEUE.flush();
    }
}

/// Guard that flushes the queue at the end of `main`, also of one that panics.
#[derive(Debug)]
pub struct FlushOnDrop(());

/// Returns a guard that flushes the queue when it is dropped.
#[must_use]
pub fn flush_on_drop() -> FlushOnDrop {
    FlushOnDrop(())
}

impl Drop for FlushOnDrop {
    fn drop(&mut self) {
        flush();
    }
}

/// Reports panics through the queue: the standard hook blocks on an unread standard error.
pub fn report_panics() {
    panic::set_hook(Box::new(|panic| {
        let thread = thread::current();
        let name = thread.name().unwrap_or("<unnamed>");
        let backtrace = Backtrace::capture();
        let mut text = format!("thread '{name}' {panic}\n");
        if backtrace.status() == BacktraceStatus::Captured {
            text += &format!("stack backtrace:\n{backtrace}\n");
        }
        write(text.as_bytes());
    }));
}

/// Queue of text for the writer thread.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<QueueState>,
    /// Signalled after every change of the state.
    changed: Condvar,
    is_lossy: AtomicBool,
    is_given_up: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct QueueState {
    queued: Vec<u8>,
    is_started: bool,
    is_writing: bool,
    /// Number of texts dropped since the last report.
    dropped: u64,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn must_not_wait(&self) -> bool {
        self.is_lossy.load(Ordering::Relaxed) || self.is_given_up.load(Ordering::Relaxed)
    }

    /// Queues or drops `text`; the first call starts the thread, which passes all text to `write`.
    /// Returns false if there is no thread.
    fn push(self: &Arc<Self>, text: &[u8], write: fn(&[u8])) -> bool {
        let mut state = self.lock();
        if !state.is_started {
            let queue = Arc::clone(self);
            let writer = thread::Builder::new().name("mcpd-stderr".to_owned());
            if writer.spawn(move || queue.run(write)).is_err() {
                return false;
            }
            state.is_started = true;
        }
        while !state.has_room_for(text) {
            if self.must_not_wait() {
                state.dropped += 1;
                return true;
            }
            state = self.wait(state, POLL_INTERVAL);
        }
        state.queued.extend_from_slice(text);
        drop(state);
        self.changed.notify_all();
        true
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, QueueState>,
        limit: Duration,
    ) -> MutexGuard<'a, QueueState> {
        let waited = self.changed.wait_timeout(state, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Writes the queue, for ever.
    fn run(&self, write: fn(&[u8])) {
        loop {
            let mut state = self.lock();
            while state.queued.is_empty() {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            let batch = mem::take(&mut state.queued);
            state.is_writing = true;
            drop(state);
            self.changed.notify_all();
            write(&batch);
            let dropped = {
                let mut state = self.lock();
                state.is_writing = false;
                mem::take(&mut state.dropped)
            };
            if dropped > 0 {
                // An ordinary log record, so that it has the format and
                // passes the filter of the log.
                tracing::warn!(
                    dropped,
                    "log records dropped: standard error was not read in time"
                );
            }
            self.changed.notify_all();
        }
    }

    fn flush(&self) {
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        let mut state = self.lock();
        while state.is_started && state.is_busy() {
            if self.must_not_wait() && Instant::now() >= deadline {
                return;
            }
            state = self.wait(state, POLL_INTERVAL);
        }
    }
}

impl QueueState {
    fn has_room_for(&self, text: &[u8]) -> bool {
        self.queued.is_empty() || self.queued.len() + text.len() <= MAX_QUEUED
    }

    fn is_busy(&self) -> bool {
        self.is_writing || !self.queued.is_empty()
    }
}

/// Writes to standard error itself. A failed write is ignored: there is no
/// other place to report it.
fn write_all(mut text: &[u8]) {
    let mut stderr = io::stderr().lock();
    while !text.is_empty() {
        match stderr.write(text) {
            Ok(0) => return,
            Ok(written) => text = &text[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(RETRY_PAUSE),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, Sender};

    use super::*;

    /// Output that blocks until it has a permit.
    struct Gate {
        permits: Mutex<Receiver<()>>,
        written: Mutex<Vec<u8>>,
    }

    /// Declares a gate for one test: the writer is a plain function.
    macro_rules! gate {
        ($write:ident, $open:ident, $gate:ident) => {
            static CHANNEL: LazyLock<(Mutex<Sender<()>>, Gate)> = LazyLock::new(|| {
                let (open, permits) = mpsc::channel();
                let written = Mutex::default();
                let permits = Mutex::new(permits);
                (Mutex::new(open), Gate { permits, written })
            });
            fn $write(text: &[u8]) {
                CHANNEL.1.permits.lock().unwrap().recv().unwrap();
                CHANNEL.1.written.lock().unwrap().extend_from_slice(text);
            }
            let $open = || CHANNEL.0.lock().unwrap().send(()).unwrap();
            let $gate = &CHANNEL.1;
        };
    }

    static RECORD: [u8; 64 * 1024] = [b'x'; 64 * 1024];

    #[test]
    fn server_drops_and_counts_what_an_unread_stderr_does_not_take() {
        gate!(write, open, gate);
        let queue = Arc::new(Queue::default());
        queue.is_lossy.store(true, Ordering::Relaxed);
        for _ in 0..100 {
            assert!(queue.push(&RECORD, write));
        }
        let begun = Instant::now();
        queue.flush();
        assert!(begun.elapsed() < Duration::from_secs(5));
        let state = queue.lock();
        let held = state.queued.len() / RECORD.len();
        assert!(state.queued.len() <= MAX_QUEUED);
        // The thread holds one batch, of any size up to a queue's.
        assert!(state.dropped > 0 && state.dropped + held as u64 <= 100);
        drop(state);
        // The writer writes the batch it holds, and then the rest.
        open();
        open();
        let deadline = Instant::now() + Duration::from_secs(10);
        while queue.lock().dropped > 0 || queue.lock().is_busy() {
            assert!(Instant::now() < deadline, "{:?}", queue.lock().dropped);
            thread::yield_now();
        }
        assert!(gate.written.lock().unwrap().len() >= MAX_QUEUED);
    }

    #[test]
    fn command_waits_for_room_until_it_is_asked_to_end() {
        gate!(write, open, gate);
        let queue = Arc::new(Queue::default());
        let pushing = thread::spawn({
            let queue = Arc::clone(&queue);
            move || {
                for _ in 0..100 {
                    queue.push(&RECORD, write);
                }
                queue.flush();
            }
        });
        open();
        let deadline = Instant::now() + Duration::from_secs(10);
        // The one permitted write is over, and the next blocks.
        let is_through = || !gate.written.lock().unwrap().is_empty();
        while !is_through() || queue.lock().has_room_for(&RECORD) {
            assert!(Instant::now() < deadline);
            thread::yield_now();
        }
        assert_eq!(queue.lock().dropped, 0);
        assert!(!pushing.is_finished());
        queue.is_given_up.store(true, Ordering::Relaxed);
        pushing.join().unwrap();
        assert!(queue.lock().dropped > 0);
    }
}
