//! Limit on the processes that a pool starts at a time, which adapts to the other work of the host.
//!
//! ```text
//! quiet ──other work──► busy ──a tenth of a second without any──► quiet
//! ```

use std::num::NonZero;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Processes per core while the host has no other work: so many that no core is idle while another
/// process is created or removed.
const QUIET_PER_CORE: usize = 3;

/// Processes per two cores while the host has other work. A process wants a core above all in its
/// first milliseconds, and other work queues for one behind it.
const BUSY_PER_TWO_CORES: usize = 3;

/// Time for which other work counts, so that the next of its kind finds a core.
const BUSY_TIME: Duration = Duration::from_millis(100);

/// Returns `count` for each core.
pub(crate) fn per_core(count: usize) -> usize {
    /// The system is asked once: each time it takes 16 system calls to find the limits of a cgroup.
    static CORES: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));
    count * *CORES
}

/// Number of processes in their first milliseconds that a pool may have.
#[derive(Debug)]
pub(crate) struct StartLimit {
    quiet: usize,
    busy: usize,
    origin: Instant,
    /// Time at which the last other work stops counting, in milliseconds since `origin`.
    busy_until: AtomicU64,
}

impl StartLimit {
    /// Creates the limit for an executor of `concurrency` processes.
    pub(crate) fn new(concurrency: usize) -> Self {
        Self {
            quiet: concurrency.min(per_core(QUIET_PER_CORE)),
            busy: concurrency.min(per_core(BUSY_PER_TWO_CORES).div_ceil(2)),
            origin: Instant::now(),
            busy_until: AtomicU64::new(0),
        }
    }

    /// Notes that the host has other work.
    pub(crate) fn note_other_work(&self) {
        self.note_other_work_at(Instant::now());
    }

    /// Returns the limit as it is now.
    pub(crate) fn current(&self) -> usize {
        self.at(Instant::now())
    }

    fn note_other_work_at(&self, now: Instant) {
        let end = self.milliseconds(now + BUSY_TIME);
        self.busy_until.fetch_max(end, Relaxed);
    }

    fn at(&self, now: Instant) -> usize {
        let is_busy = self.milliseconds(now) < self.busy_until.load(Relaxed);
        if is_busy { self.busy } else { self.quiet }
    }

    fn milliseconds(&self, time: Instant) -> u64 {
        let since = time.saturating_duration_since(self.origin);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_lower_for_a_moment_after_other_work() {
        let limit = StartLimit::new(usize::MAX);
        let start = Instant::now();
        let quiet = limit.at(start);
        limit.note_other_work_at(start);
        assert!(limit.at(start) < quiet);
        assert!(limit.at(start + BUSY_TIME / 2) < quiet);
        assert_eq!(limit.at(start + 2 * BUSY_TIME), quiet);
        assert_eq!(StartLimit::new(1).current(), 1);
    }
}
