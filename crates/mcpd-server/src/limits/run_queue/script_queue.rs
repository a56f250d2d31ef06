//! Queue of the calls of one script, and the time that its runs take.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::{
    INITIAL_RUN_TIME, MAX_QUEUED_CALLS_PER_SCRIPT, MAX_RETRY_DELAY, MAX_RETRY_FACTOR,
    MIN_RETRY_DELAY,
};

/// Queue and concurrency limit of runs that are alike, such as those of one script.
#[derive(Debug)]
pub(crate) struct ScriptQueue {
    /// Maximum number of queued calls.
    pub(super) capacity: usize,
    // These change only under the lock of the scheduler; atomics merely make them writable behind
    // `Arc`.
    pub(super) limit: AtomicUsize,
    pub(super) running: AtomicUsize,
    pub(super) waiting: AtomicUsize,
    /// Moving average of the duration of a run, in microseconds.
    pub(super) mean_run_time: AtomicU64,
    pub(super) created_at: Instant,
    /// Last suggested retry time, in microseconds after `created_at`.
    pub(super) next_retry_at: AtomicU64,
    /// Time of the first rejection since the queue was last less than half full, in microseconds
    /// after `created_at`; [`NOT_OVERLOADED`] without one.
    pub(super) overloaded_since: AtomicU64,
}

/// Value of `overloaded_since` while no call has been rejected.
pub(super) const NOT_OVERLOADED: u64 = u64::MAX;

impl Default for ScriptQueue {
    /// Creates a queue without a limit of its own.
    fn default() -> Self {
        Self::new(NonZeroUsize::MAX)
    }
}

impl ScriptQueue {
    pub(crate) fn new(limit: NonZeroUsize) -> Self {
        Self::with_capacity(limit, MAX_QUEUED_CALLS_PER_SCRIPT)
    }

    pub(super) fn with_capacity(limit: NonZeroUsize, capacity: usize) -> Self {
        Self {
            limit: limit.get().into(),
            capacity,
            running: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            mean_run_time: AtomicU64::new(micros(INITIAL_RUN_TIME)),
            created_at: Instant::now(),
            next_retry_at: AtomicU64::new(0),
            overloaded_since: AtomicU64::new(NOT_OVERLOADED),
        }
    }

    /// Counts one more queued call, and ends the overload once the queue is less than half full.
    pub(super) fn add_waiting(&self) {
        let before = self.waiting.fetch_add(1, Relaxed);
        if before < self.capacity / 2 {
            self.overloaded_since.store(NOT_OVERLOADED, Relaxed);
        }
    }

    pub(super) fn has_free_slot(&self) -> bool {
        self.running.load(Relaxed) < self.limit.load(Relaxed)
    }

    /// Adds the duration of a run to the moving average, with a weight of one eighth.
    pub(super) fn record_run_time(&self, time: Duration) {
        let before = self.mean_run_time.load(Relaxed);
        self.mean_run_time
            .store(before - before / 8 + micros(time) / 8, Relaxed);
    }

    /// Returns the suggested retry delay: the drain time of the queue at least, and a step later
    /// than the previous suggestion. A caller that returns sooner costs running calls time and is
    /// rejected again. Spacing grows with the length of the overload, because most served callers
    /// come again and take the places that are free by then.
    pub(super) fn retry_delay(&self) -> Duration {
        self.retry_delay_at(self.created_at.elapsed())
    }

    pub(super) fn retry_delay_at(&self, now: Duration) -> Duration {
        let [waiting, running] =
            [&self.waiting, &self.running].map(|number| number.load(Relaxed).max(1) as u32);
        // Permits become free this often, as `running` calls proceed side by side.
        let interval = Duration::from_micros(self.mean_run_time.load(Relaxed)) / running;
        let drain_time = interval
            .saturating_mul(waiting)
            .clamp(MIN_RETRY_DELAY, MAX_RETRY_DELAY);
        // The overload begins now unless an earlier rejection began it.
        let overloaded_since = self.overloaded_since.load(Relaxed).min(micros(now));
        self.overloaded_since.store(overloaded_since, Relaxed);
        // Each drain time of overload adds one interval to the spacing, up to the maximum.
        let rounds = (micros(now) - overloaded_since) / micros(drain_time);
        let steps = 1 + rounds.min(u64::from(MAX_RETRY_FACTOR) - 1) as u32;
        let retry_window = now + drain_time..=now + drain_time * MAX_RETRY_FACTOR;
        let next = Duration::from_micros(self.next_retry_at.load(Relaxed)) + interval * steps;
        // Callers may have ignored earlier suggestions, or the queue may have drained since: the
        // sequence restarts instead of leading into the past or ever further into the future.
        let next = match retry_window.contains(&next) {
            true => next,
            false => now + drain_time,
        };
        self.next_retry_at.store(micros(next), Relaxed);
        (next - now).min(MAX_RETRY_DELAY)
    }
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
