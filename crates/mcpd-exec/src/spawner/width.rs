//! Number of processes in their first milliseconds, in which most want nothing but a core.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Processes per core while the host does nothing else: so many that no core is idle while another
/// process is created or removed.
const ALONE_PER_CORE: usize = 4;

/// Processes per two cores while the host has other work, which queues for a core behind them.
const SHARED_PER_TWO_CORES: usize = 3;

/// Time for which other work counts, so that the next of its kind finds a core.
const SHARED_TIME: Duration = Duration::from_millis(100);

/// Number of processes that a pool starts at a time.
#[derive(Debug)]
pub(crate) struct Width {
    alone: usize,
    shared: usize,
    origin: Instant,
    /// Time until which the host has other work, in milliseconds since `origin`.
    shared_until: AtomicU64,
}

impl Width {
    /// Returns the widths of an executor of `concurrency` processes.
    pub(crate) fn new(concurrency: usize) -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            alone: concurrency.min(cores * ALONE_PER_CORE),
            shared: concurrency.min((cores * SHARED_PER_TWO_CORES).div_ceil(2)),
            origin: Instant::now(),
            shared_until: AtomicU64::new(0),
        }
    }

    /// Narrows it for a moment.
    pub(crate) fn narrow(&self) {
        self.shared_until.store(self.at(SHARED_TIME), Relaxed);
    }

    pub(crate) fn current(&self) -> usize {
        let is_shared = self.at(Duration::ZERO) < self.shared_until.load(Relaxed);
        if is_shared { self.shared } else { self.alone }
    }

    /// Returns the time after a delay from now.
    fn at(&self, delay: Duration) -> u64 {
        (self.origin.elapsed() + delay).as_millis() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_is_narrow_for_a_moment_after_other_work() {
        let width = Width::new(usize::MAX);
        let alone = width.current();
        width.narrow();
        assert!(width.current() < alone);
        thread::sleep(SHARED_TIME + Duration::from_millis(2));
        assert_eq!(width.current(), alone);
        assert_eq!(Width::new(1).current(), 1);
    }
}
