//! How many runs of one script there are at once. Who comes first runs first.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many calls of one script may wait.
const QUEUE: usize = 256;

/// The right to run, given back when dropped.
pub(crate) type Turn = OwnedSemaphorePermit;

/// The turns of one script.
#[derive(Debug)]
pub(crate) struct Turns {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// As many calls as may are waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("run a script: {waiting} calls of it are waiting already")]
pub(crate) struct Busy {
    pub(crate) waiting: usize,
}

impl Turns {
    pub(crate) fn new(at_once: NonZeroUsize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(at_once.get().min(Semaphore::MAX_PERMITS))),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Waits for a turn.
    ///
    /// # Errors
    ///
    /// Too many are waiting already.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the place in the queue.
    pub(crate) async fn take(&self) -> Result<Turn, Busy> {
        // Does not overtake: a turn given back goes to whoever waits first.
        if let Ok(turn) = Arc::clone(&self.free).try_acquire_owned() {
            return Ok(turn);
        }
        let _place = Place::take(&self.waiting)?;
        let turn = Arc::clone(&self.free).acquire_owned().await;
        Ok(turn.expect("nobody closes the semaphore"))
    }
}

/// A place in the queue, given up when dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize) -> Result<Self, Busy> {
        let next = |waiting| (waiting < QUEUE).then_some(waiting + 1);
        match waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(_) => Ok(Self(waiting)),
            Err(waiting) => Err(Busy { waiting }),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
